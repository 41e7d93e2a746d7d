"""The traps of part 7.3, loading somewhere else."""

from labkit.chapters.ch07.claims_73 import CLAIMS
from labkit.lesson.costs import heavier
from labkit.lesson.symptom import raises, silent
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS = [
    Trap(
        number="7.3.1",
        slug="7.3-no-map-location",
        symptom=raises(RuntimeError, "deserialize object on a? ?CUDA device"),
        question="What does `open_file()` do on a machine without a GPU?",
        choices={
            "it raises a `RuntimeError`": (
                "Right: the file says where each tensor was, `torch.load` puts it back "
                "there, and there is no such place here."
            ),
            "it returns the names; the tensors are on the CPU": (
                "They are read into ordinary memory first, but do not stay there: "
                "`torch.load` moves them to where they were saved. It never falls back."
            ),
            "it returns the names; the tensors are on `meta`, without values": (
                "Only if asked: `map_location='meta'` gives exactly that. Nothing "
                "switches to `meta` by itself."
            ),
            "it raises an `UnpicklingError`, because of `weights_only=True`": (
                "Tensors of any device are on its list. `weights_only` is about which "
                "objects may be made, not about where they go."
            ),
        },
        claims=("C7.3a", "C7.3b", "E7.2"),
        core=True,
        simulated=True,  # the tag is written by hand; the error is the real one
    ),
    Trap(
        number="7.3.2",
        slug="7.3-slice-saves-storage",
        symptom=heavier(factor=100, count="bytes"),
        question="How large is the file with the one vector?",
        choices={
            "somewhat more than 1,024,000 bytes": (
                "Right: the vector is a view of the batch, and `torch.save` writes the "
                "memory that a view looks at, all of it."
            ),
            "somewhat more than 1,024 bytes": (
                "That is the vector and what the format adds. But the vector has no "
                "memory of its own: what is written is the memory it looks at."
            ),
            "none: `torch.save` refuses a view": (
                "It takes any tensor, and brings a view back as a view. For that it "
                "needs the memory behind it."
            ),
        },
        claims=("E7.4",),
    ),
    Trap(
        number="7.3.3",
        slug="7.3-compile-prefix",
        symptom=silent(
            lambda share: share < 0.5,
            "the trained model reads 0.9 of the digits, the loaded one",
        ),
        question=(
            "The trained model reads 0.9 of the digits. What does `evaluate()` return?"
        ),
        choices={
            "0.1": (
                "Right: a compiled model saves every name with a prefix. No name fits, "
                "`strict=False` accepts that, and the new model stays as it was."
            ),
            "0.9": (
                "It would, if the names were those of the plain model. The wrapper has "
                "put a prefix before each."
            ),
            "nothing: `load_state_dict` raises": (
                "It does when it is strict. With `strict=False`, names that do not fit "
                "are handed back in the result, which nobody looks at here."
            ),
            "nothing: `torch.load` refuses what a compiled model saved": (
                "A `state_dict` is a dictionary of tensors in any case. What compiling "
                "made is not in it."
            ),
        },
        claims=("E7.3",),
    ),
    Trap(
        number="7.3.4",
        slug="7.3-unpickling-runs-code",
        symptom=silent(
            lambda names: "proof" in names,
            "opening the file made a folder; what lies there now",
        ),
        question="Which names are in the folder after `open_weights()`?",
        choices={
            "`proof` and `weights.pt`": (
                "Right: the pickle says which function makes the object, and reading it "
                "calls that function. No method of what was loaded was called."
            ),
            "`weights.pt`: reading a file runs nothing": (
                "Reading bytes runs nothing. Turning a pickle into objects does: it "
                "calls whatever the file names."
            ),
            "`weights.pt`: the function is called once `config` is used": (
                "It is called to make the object, so before anybody can use it."
            ),
            "none: a file that calls `os.mkdir` is refused": (
                "Python's pickle refuses nothing that it can import. That refusal is "
                "what `weights_only=True` adds."
            ),
        },
    ),
]
