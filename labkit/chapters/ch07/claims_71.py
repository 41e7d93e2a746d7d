"""The claims of part 7.1, what is in a state_dict, judged by measured values."""

from typing import Any

from labkit.lesson.verdict import Claim


def other_shapes(m: dict[str, Any]) -> str:
    said = (
        f"`strict=False` raised for a tensor of another shape, with {m['changed']} of "
        f"{m['tensors']} tensors changed by then"
    )
    kinds = {
        "shape": "shape `(1,)` for `()`",
        "cast": "float64 for float32",
        "nan": "NaN",
    }
    taken = [text for name, text in kinds.items() if m[name]]
    return f"{said}; accepted without a word under `strict=True`: {', '.join(taken)}"


CLAIMS = [
    Claim(
        "C7.1a",
        "incomplete",
        "`model.state_dict()` returns a Python dict of names and tensors.",
        "an `{kind}`, and {shared} of its {tensors} tensors are the model's own memory: of "
        "the best weights, seen at {best}, the plain `state_dict()` put back {put_back}, a "
        "deep copy {copied}",
        agrees=lambda m: (
            m["kind"] == "OrderedDict"
            and m["shared"] == m["tensors"]
            and m["best"] - m["put_back"] > 0.1
            and m["copied"] == m["best"]
        ),
    ),
    Claim(
        "C7.1b",
        "incomplete",
        "With BatchNorm it holds `running_mean` and `running_var` too.",
        "of a BatchNorm layer {norm}; not in it: {absent} (a non-persistent buffer, a "
        "plain tensor, layers in a list, a counter); two tied names: {tied} tensor",
        agrees=lambda m: (
            all(
                name in m["norm"].split(", ")
                for name in ("running_mean", "running_var", "num_batches_tracked")
            )
            and m["absent"] == "mask, plain, layers, steps"
            and m["tied"] == 1
        ),
    ),
    Claim(
        "C7.1c",
        "holds",
        "Loading only some of the keys raises: `strict=True` is the default, and the names "
        "must match entirely.",
        "by default it raised, once for the missing and once for the unexpected name "
        "({lines} lines)",
        agrees=lambda m: m["missing"] and m["lines"] == 2,
    ),
    Claim(
        "C7.1d",
        "holds",
        "`strict=False` silently ignores what does not match, and layers stay random "
        "unnoticed; print the missing and unexpected keys.",
        "{warnings} warnings; what it returns lists {missing} missing and {unexpected} "
        "unexpected name. An `assert` on them stops, a print does not",
        agrees=lambda m: m["warnings"] == 0 and m["missing"] == m["unexpected"] == 1,
    ),
    Claim(
        "C7.1e",
        "incomplete",
        "If the structure has changed, load with `strict=False`: what does not match is "
        "ignored.",
        other_shapes,
        agrees=lambda m: (
            m["raised"]
            and 0 < m["changed"] < m["tensors"]
            and m["shape"]
            and m["cast"]
            and m["nan"]
        ),
    ),
]
