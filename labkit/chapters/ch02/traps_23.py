"""The traps and claims of part 2.3."""

import re
from typing import Any

from labkit.lesson.symptom import raises, silent
from labkit.lesson.trap import Trap
from labkit.lesson.verdict import Claim

NO_GPU = (
    "not compiled with CUDA|Found no NVIDIA driver|No CUDA GPUs are available"
    "|no CUDA-capable device"
)
TWO_DEVICES = "not on the expected device|tensors to be on the same device"

TRAPS: list[Trap] = [
    Trap(
        "2.3.1",
        "2.3-hard-coded-cuda",
        raises((AssertionError, RuntimeError), NO_GPU),
        "What does `move` do on a machine without a GPU?",
        {
            "it raises": "Right: a move to a device that is not there never falls back.",
            "it leaves the tensor on the CPU, with a warning": "Some features do so "
            "(autocast, pinning). A move does not: `.to` goes where it is told, or "
            "raises.",
            "it leaves the tensor on the CPU and says nothing": "That is what the "
            "fixed line does, since it asks first. `.to` itself does not ask.",
        },
        claims=("C2.3a", "C2.3b"),
    ),
    Trap(
        "2.3.2",
        "2.3-new-tensor-on-cpu",
        raises(RuntimeError, TWO_DEVICES),
        "What does `add_offset()` return?",
        {
            "nothing: it raises": "Right: an operator wants its operands on one device "
            "and moves none of them by itself.",
            "a tensor on the second device": "An addition copies no operand to another "
            "device: the copy could cost far more than the sum.",
            "a tensor on the CPU": "For that, `x` would have to be copied back, and an "
            "addition copies no operand between devices.",
        },
        claims=("C2.3f", "C2.3g"),
        core=True,
    ),
    Trap(
        "2.3.3",
        "2.3-to-needs-assignment",
        silent(lambda dtype: str(dtype) == "torch.float32", "x is what it was before"),
        "What does `convert()` return?",
        {
            "`torch.float32`": "Right: `.to` gives a new tensor, and nobody kept it.",
            "`torch.float64`": "`x.to(...)` does not change `x`. It gives a new tensor, "
            "and this line drops it.",
            "nothing: it raises": "Python lets you drop a result: no "
            "error, and no conversion.",
        },
        claims=("C2.3h",),
    ),
    Trap(
        "2.3.4",
        "2.3-list-not-moved",
        silent(
            lambda m: m["changed"] == [False, False, True], "two layers never trained"
        ),
        "Which layers have other weights after the 200 steps?",
        {
            "only the last": "Right: the optimizer was given the last layer, and nothing "
            "else.",
            "all three": "All three run in `forward` and all three get gradients, but "
            "the optimizer changes what `parameters()` lists.",
            "none: the optimizer has nothing to train and raises": "It would if every "
            "layer were in the list. Here the last one is an attribute of its own.",
        },
        claims=("C2.3h",),
        core=True,
    ),
    Trap(
        "2.3.5",
        "2.3-moved-after-first-step",
        raises(RuntimeError, "dtype"),
        "What does the second step do?",
        {
            "it raises": "Right: the weights are float64 now, and Adam's averages are "
            "still float32.",
            "it trains on, in float64": "The weights and their gradients are float64, "
            "but Adam's running averages are not part of the model.",
            "it trains on, in float32": "`model.to` did change the weights in place. "
            "What it cannot reach is the optimizer.",
        },
        claims=("C2.3h",),
    ),
]


def about_cuda(m: dict[str, Any]) -> str:
    """What is known of `.cuda()`: what torch documents, and what a GPU showed."""
    same = "the tensor itself" if m["cuda_same"] else "another tensor"
    here = (
        "there is no CUDA device here to measure it"
        if m["cuda_same"] is None
        else f"here `.cuda()` on the right device gave back {same}"
    )
    own = "the tensor itself" if m["to_same"] else "another tensor"
    return (
        "torch documents of both that on the right device nothing is copied and the "
        f"tensor itself comes back; {here}; `.to` on the CPU gave back {own}"
    )


def moving(m: dict[str, Any]) -> str:
    """What `.to` did where there was nothing to do."""
    came = "the same tensor" if m["same"] else "another tensor"
    copied = "a copy" if m["copied"] else "no copy"
    equal = "are equal" if m["one_name"] else "are not equal"
    return (
        f"of a tensor it is true: {came} came back, and with `copy=True` {copied}; "
        f"`model.to` still visited all {m['visited']} parameters. As devices, `cuda` "
        f"and `cuda:0` {equal}"
    )


def left_behind(m: dict[str, Any]) -> str:
    """The dtypes after a conversion to float64, by what was converted."""
    short = {name: value.removeprefix("torch.") for name, value in m.items()}
    return (
        "after `.to(torch.float64)` a tensor without assignment was {tensor} and the "
        "module's own layer {layer}; a layer in a list was {listed}, and Adam's state "
        "{state}"
    ).format(**short)


CLAIMS: list[Claim] = [
    Claim(
        "C2.3a",
        "holds",
        "Code with `.cuda()` in it breaks on a machine without a GPU.",
        lambda m: (
            f'`.cuda()` raised “{m["cuda"].split(".")[0]}”, and `.to("cuda")` said '
            + ("the same" if m["to"] == m["cuda"] else f"“{m['to']}”")
        ),
        lambda m: m["cuda"] == m["to"] and re.search(NO_GPU, m["cuda"]) is not None,
    ),
    Claim(
        "C2.3b",
        "incomplete",
        'Choose the device with `"cuda" if torch.cuda.is_available() else "cpu"`.',
        "the line knows two devices, and picked {picked}; torch also has {others}, which "
        "`torch.accelerator` finds where there is one",
        lambda m: (
            m["picked"] in ("cuda", "cpu")
            and "mps" in m["others"]
            and (m["accelerator"] == m["picked"] or m["accelerator"] in m["others"])
        ),
    ),
    Claim(
        "C2.3c",
        "conditions",
        "`.to(device)` does nothing where the data are there already, so call it in "
        "loops freely.",
        moving,
        lambda m: (
            m["same"]
            and m["copied"]
            and m["visited"] == m["parameters"] > 100
            and not m["one_name"]
        ),
    ),
    Claim(
        "C2.3d",
        "wrong",
        "`.cuda()`, unlike `.to`, checks on every call and may synchronise.",
        about_cuda,
        lambda m: (
            m["cuda_documented"]
            and m["to_documented"]
            and m["to_same"]
            and m["cuda_same"] in (None, True)
        ),
        "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.cuda.html",
    ),
    Claim(
        "C2.3e",
        "incomplete",
        "Calling `.cuda()` in the loader's workers costs efficiency.",
        "the cost is not measured here; but where the main process uses CUDA, a forked "
        "worker cannot use it at all: torch's source raises “{message}”. Return CPU "
        "tensors; `pin_memory=True` and `.to(device, non_blocking=True)` in the loop move "
        "them",
        lambda m: "Cannot re-initialize CUDA in forked subprocess" in m["message"],
        "https://docs.pytorch.org/docs/stable/notes/multiprocessing.html",
    ),
    Claim(
        "C2.3f",
        "conditions",
        "New tensors are made on the CPU, and using one with a tensor elsewhere raises.",
        "a CPU tensor with one axis gave a {vector}; a number and a 0-dim CPU tensor were "
        'accepted. Under `torch.device("meta")` a new layer was on {layer}, a '
        "`from_numpy` tensor on {from_numpy}",
        lambda m: (
            m["vector"] == "RuntimeError"
            and m["number"] == m["scalar"] != "cpu"
            and m["layer"] == "meta"
            and m["from_numpy"] == "cpu"
        ),
    ),
    Claim(
        "C2.3g",
        "incomplete",
        "Make new tensors with `torch.zeros(10, device=x.device)`.",
        "with a bfloat16 `x` the sum became {by_device}; with `x.new_zeros(10)` it stayed "
        "{by_tensor}",
        lambda m: (
            m["by_device"] == "torch.float32" and m["by_tensor"] == "torch.bfloat16"
        ),
    ),
    Claim(
        "C2.3h",
        "incomplete",
        "(Not said: what `.to` does not reach.)",
        left_behind,
        lambda m: (
            m["tensor"] == m["listed"] == m["state"] == "torch.float32"
            and m["layer"] == "torch.float64"
        ),
    ),
]
