"""From the text of an error message to the page that explains it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from labkit.lesson.evidence import LabError, code, page_call, say
from labkit.lesson.registry import find

# the pages that are written, by chapter
PAGES = {
    0: "00_start",
    2: "02_tensors",
    3: "03_autograd",
    4: "04_data",
    5: "05_training",
    6: "06_multi_gpu",
    7: "07_checkpoints",
}
GAP = "…"
ENOUGH = 8  # characters of a message's part that are worth looking for
NEAR = 0.5  # share of a text's words that a message must have to be named as near


@dataclass(frozen=True)
class ErrorText:
    """What a message of torch contains, and the trap that raises it.

    `text` is literal; … stands for what varies (names, numbers).  `elsewhere` says
    which other build or device shows it, where the stored pages do not.
    """

    text: str
    trap: str
    elsewhere: str = ""

    @property
    def page(self) -> str:
        """The file name of the page, without its ending."""
        return PAGES[int(self.trap.split(".")[0])]

    def stands_in(self, message: str) -> bool:
        """Whether a message contains the text, whatever stands for the gaps.

        A piece of a message, of at least 8 characters, may also be a part of the text.
        """
        parts = [re.escape(part.strip()) for part in self.text.split(GAP)]
        flat = re.sub(r"\s+", " ", message).strip()
        if re.search(".{0,40}?".join(parts), flat, re.IGNORECASE):
            return True
        return len(flat) >= ENOUGH and flat.lower() in self.text.lower()

    def nearness(self, message: str) -> float:
        """The share of the text's words that a message has too, from 0 to 1."""
        words = set(re.findall(r"\w+", self.text.lower()))
        return len(words & set(re.findall(r"\w+", message.lower()))) / len(words)


ERRORS = (
    ErrorText("mat1 and mat2 must have the same dtype", "2.1.2"),
    ErrorText("expected target dtype to be Long or Byte, but got", "2.1.2"),
    ErrorText("Target … is out of bounds", "2.1.2"),
    ErrorText("view size is not compatible with input tensor's size", "2.1.4"),
    ErrorText("Target size … must be the same as input size", "2.2.1"),
    ErrorText("has been modified by an inplace operation", "2.2.4"),
    ErrorText("Torch not compiled with CUDA enabled", "2.3.1"),
    ErrorText("Found no NVIDIA driver on your system", "2.3.1", "CUDA build, no GPU"),
    ErrorText("No CUDA GPUs are available", "2.3.1", "CUDA build, GPU hidden"),
    ErrorText("Tensor on device cpu is not on the expected device meta", "2.3.2"),
    ErrorText("Expected all tensors to be on the same device", "2.3.2", "with a GPU"),
    ErrorText("expected dtype float for `end` but got dtype double", "2.3.5"),
    ErrorText("Trying to backward through the graph a second time", "3.1.2"),
    ErrorText("'NoneType' object has no attribute 'norm'", "3.2.5"),
    ErrorText("does not require grad and does not have a grad_fn", "3.3.1"),
    ErrorText("Function … returned nan values in its", "3.3.3"),
    ErrorText("Can't call numpy() on Tensor that requires grad", "3.3.5"),
    ErrorText("persistent_workers option needs num_workers > 0", "4.2.1"),
    ErrorText(
        "prefetch_factor option could only be specified in multiprocessing", "4.2.1"
    ),
    ErrorText("unable to resize file … to the right size", "4.2.4"),
    ErrorText("Can't pickle local object", "4.2.5"),
    ErrorText("Can't get attribute … on <module '__main__'", "4.2.5"),
    ErrorText("DataLoader worker (pid … exited unexpectedly", "4.2.5"),
    ErrorText("Got pickle error when attempting to start a worker Process", "4.2.5"),
    ErrorText("stack expects each tensor to be equal size", "4.3.1"),
    ErrorText(
        "Expected tensor for argument #1 'indices' to have one of the following "
        "scalar types: Long, Int",
        "4.3.1",
    ),
    ErrorText("Expected more than 1 value per channel when training", "5.1.5"),
    ErrorText(
        "Detected call of `lr_scheduler.step()` before `optimizer.step()`", "5.2.3"
    ),
    ErrorText("Attempting to unscale FP16 gradients", "5.3.6"),
    ErrorText("Got unsupported ScalarType BFloat16", "5.3.6"),
    ErrorText("`torch.cuda.amp.autocast(args...)` is deprecated", "5.3.7"),
    ErrorText(
        "torch.cuda.amp.GradScaler is enabled, but CUDA is not available", "5.3.7"
    ),
    ErrorText("Expected to have finished reduction in the prior iteration", "6.2.5"),
    ErrorText("Timed out waiting … operation to complete", "6.2.6"),
    ErrorText("Connection closed by peer", "6.2.6", "gloo, where a rank has ended"),
    ErrorText("Watchdog caught collective operation timeout", "6.2.6", "nccl"),
    ErrorText("SyncBatchNorm layers only work with GPU modules", "6.3.2"),
    ErrorText("SyncBatchNorm expected input tensor to be on GPU", "6.3.2"),
    ErrorText("failed finding central directory", "6.3.8"),
    ErrorText("Missing key(s) in state_dict", "7.1.2"),
    ErrorText("Unexpected key(s) in state_dict", "7.1.2"),
    ErrorText("copying a param with shape", "7.1.3"),
    ErrorText("Unsupported global: GLOBAL numpy", "7.2.2"),
    ErrorText("RNG state must be a torch.ByteTensor", "7.2.5"),
    ErrorText("PytorchStreamReader failed", "7.2.7"),
    ErrorText("Attempting to deserialize object on a CUDA device", "7.3.1"),
    ErrorText(
        "Attempting to deserialize object on CUDA device … but "
        "torch.cuda.device_count() is",
        "7.3.1",
        "fewer GPUs than where it was saved",
    ),
    ErrorText("with `weights_only` set to `False` will likely succeed", "7.3.4"),
)


@page_call
def errors(message: str = "") -> None:
    """Show which page explains an error: all of them, or those that fit `message`.

    `message` is the text of an error, or a part of it, pasted as it is.  Raises LabError
    where it is no string.

    >>> errors("Torch not compiled with CUDA enabled")
    the message contains · where
    Torch not compiled with CUDA enabled · trap 2.3.1 in 02_tensors
    """
    if not isinstance(message, str):
        raise LabError(
            f"errors: message is the text of an error; a {type(message).__name__} came"
        )
    rows = [row for row in ERRORS if row.stands_in(message)] if message else ERRORS
    if rows:
        say(table(rows))
        return
    said = (
        "No page explains this text yet. The last line of the message, without "
        "names and numbers, is what to search PyTorch's issues for."
    )
    near = [row for row in ERRORS if row.nearness(message) >= NEAR]
    near.sort(key=lambda row: row.nearness(message), reverse=True)
    say(f"{said} Like it, but not the same:\n\n{table(near[:3])}" if near else said)


def table(rows: Iterable[ErrorText]) -> str:
    """The rows as a Markdown table."""
    return "\n".join(
        ["| the message contains | where |", "|---|---|", *map(line, rows)]
    )


def line(row: ErrorText) -> str:
    """One line of the table, with a link to the page."""
    number = find("trap", row.trap).number
    note = f" ({row.elsewhere})" if row.elsewhere else ""
    return (
        f"| {code(row.text)}{note} | trap {number} in [{row.page}]({row.page}.ipynb) |"
    )
