"""The claims of part 6.2, DistributedDataParallel, judged by measured values."""

from typing import Any

from labkit.lesson.verdict import Claim


def unsaid(m: dict[str, Any]) -> str:
    waiting = f"{m['stuck'][0]} and {m['stuck'][1]} steps"
    return (
        f"unequal batches: the gradient is off by {m['mean']:.0%}; a summed loss gives "
        f"{m['sum']:g} of the sum; unequal numbers of batches: stuck after {waiting}, and "
        f"under `join()` a last step of {m['last']:g} for 2; unused parameters: an error "
        f"after {m['steps']} step; `ddp.module(x)`: {m['bypassed']} messages; accumulation "
        f"over four batches: {m['plain']} messages, with `no_sync` {m['no_sync']}"
    )


CLAIMS = [
    Claim(
        "C6.2a",
        "conditions",
        "In DDP each device keeps a whole copy of the model, and only gradients are "
        "synchronised.",
        "from 0 and 1: weights after wrapping {weights}, buffers after a forward "
        "{buffers}; of gradients 1 and 2: {gradients}. Parameters once, buffers in each "
        "forward, and gradients, averaged",
        agrees=lambda m: (
            m["weights"] == m["buffers"] == (0.0, 0.0) and m["gradients"] == (1.5, 1.5)
        ),
    ),
    Claim(
        "C6.2b",
        "conditions",
        'To set up: `init_process_group(backend="nccl")`, `LOCAL_RANK`, `set_device`, '
        "`DDP(model, device_ids=[local_rank])`.",
        "ran with {backend}; with {gpus} GPUs nccl raises {nccl}; `device_ids` for a model "
        "on the CPU: {on_cpu}; without `torchrun`: {without}. `import os` is missing, and "
        "the backend follows the device",
        agrees=lambda m: (
            m["backend"] in ("gloo", "nccl")
            and (m["nccl"] == "nothing") == (m["gpus"] > 0)
            and m["on_cpu"] == m["without"] == "ValueError"
        ),
    ),
    Claim(
        "C6.2c",
        "incomplete",
        "The `DataLoader` needs a `DistributedSampler`.",
        "yes, and it needs `set_epoch` (without it three epochs had {orders} order), one "
        "seed for all (with two, {never} samples of 12 are never seen), and no padding in "
        "an evaluation ({repeated} of 9 counted twice on four ranks); with `shuffle=True` "
        "in the loader as well: {both}; `batch_size` is each rank's, {batches} batches of "
        "3 for 12",
        agrees=lambda m: (
            m["orders"] == 1
            and m["never"] > 0
            and m["repeated"] == 3
            and m["both"] == "ValueError"
            and m["batches"] == 2
        ),
    ),
    Claim(
        "C6.2d",
        "holds",
        "Start it with `torchrun`.",
        "it started ranks {ranks} of {world} and told each its place",
        agrees=lambda m: m["ranks"] == list(range(m["world"])) and m["world"] > 1,
    ),
    Claim(
        "C6.2e",
        "unmeasured",
        "DDP is close to linear, usually 3.7 times and more on four GPUs.",
        "needs several GPUs. Counted: {messages} message in a step of a small model; what "
        "that costs depends on its size and on the link, see the model in part 6.1",
        agrees=lambda m: m["messages"] == 1,
        source="https://arxiv.org/abs/2006.15704",
    ),
    Claim(
        "C6.2f",
        "incomplete",
        "(Nothing on what happens when the ranks' work differs.)",
        unsaid,
        agrees=lambda m: (
            m["mean"] > 0.05
            and m["part"] == 0
            and abs(m["sum"] - 0.5) < 0.01
            and m["stuck"] == [6, 6]
            and m["last"] == 1
            and m["steps"] == 1
            and m["bypassed"] == 0
            and m["plain"] == 4 * m["no_sync"] > 0
        ),
    ),
]
