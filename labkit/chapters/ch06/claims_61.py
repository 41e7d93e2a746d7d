"""The claims of part 6.1, DataParallel, judged by what torch's documentation says."""

from labkit.lesson.verdict import Claim

CLAIMS = [
    Claim(
        "C6.1a",
        "wrong",
        "`DataParallel` is the simplest way to several GPUs; use it for now where one GPU "
        "works and is only slow, up to four GPUs.",
        "its own documentation recommends `DistributedDataParallel` instead, “even if "
        "there is only a single node”, and it has no other case. It is one line, and "
        "renames: `{names}`",
        agrees=lambda m: (
            m["instead"] and m["single"] and m["names"] == "module.weight, module.bias"
        ),
        source="https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-nn-ddp-instead",
    ),
    Claim(
        "C6.1b",
        "holds",
        "In each forward the main GPU copies the weights to the others, and in the "
        "backward the gradients are gathered on it.",
        "read, and not measured here: the model “is replicated on each device” in each "
        "forward, gradients are “summed into the original module”",
        agrees=lambda m: m["replicated"] and m["summed"],
        source="https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html",
    ),
    Claim(
        "C6.1c",
        "unmeasured",
        "Its overhead grows linearly with the GPUs, GPU 0 needs more memory, ResNet-50 "
        "gained 2.5 times on four GPUs, and small models may become slower.",
        "needs several GPUs. Parameters and outputs are on `device_ids[0]`, says the "
        "documentation; what follows for the time is in the model above, which is a model",
        agrees=lambda m: m["on_first"],
        source="https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html",
    ),
]
