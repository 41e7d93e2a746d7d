"""The claims of part 7.3, loading somewhere else, judged by measured values."""

from typing import Any

from labkit.lesson.verdict import Claim

LOAD = "https://docs.pytorch.org/docs/stable/generated/torch.load.html"


def to_gpu(m: dict[str, Any]) -> str:
    where = (
        "a GPU is not measured here"
        if m["device"] == "cpu"
        else f"measured here on {m['device']}"
    )
    return (
        f"a file saved on the CPU has the tag `{m['tag']}`, and loading it raises: "
        f"{m['raises']}. `load_state_dict` copies into the model's own tensors: "
        f"{m['copied']}, so they stay on their device ({where}). Documented: tensors go "
        "back to the device they were saved from"
    )


CLAIMS = [
    Claim(
        "C7.3a",
        "holds",
        "On a machine without a GPU, a model saved on one does not load unless "
        "`map_location` is given.",
        "without it, loading raises: {raises}; with `map_location='cpu'`: {mapped}, and "
        "all tensors are on `{place}`",
        agrees=lambda m: m["raises"] and not m["mapped"] and m["place"] == "cpu",
        source=LOAD,
    ),
    Claim(
        "C7.3b",
        "holds",
        "Saved on a CPU and loaded for a GPU is mostly fine; give `map_location` all "
        "the same.",
        to_gpu,
        agrees=lambda m: (
            m["tag"] == "cpu" and not m["raises"] and m["copied"] and m["documented"]
        ),
        source=LOAD,
    ),
]
