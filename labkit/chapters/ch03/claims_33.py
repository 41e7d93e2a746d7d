"""The claims of part 3.3, what cuts the gradient, judged by measured values."""

from typing import Any

from labkit.lesson.verdict import Claim


def masks(m: dict[str, Any]) -> str:
    return (
        f"a mask behind the function gave NaN gradients in {m['after_nan']} of "
        f"{m['after']} cases (log, square root, reciprocal; `where`, `masked_fill`, "
        f"product, `nan_to_num`); one in front of it in {m['before_nan']} of "
        f"{m['before']}"
    )


CLAIMS = [
    Claim(
        "C3.3a",
        "holds",
        "`.detach()` cuts the gradient.",
        "the result needs a gradient: {needs}. It is the same memory: {shares}; an edit "
        "through it of a value that the backward needs is refused: {refused}",
        agrees=lambda m: not m["needs"] and m["shares"] and m["refused"],
    ),
    Claim(
        "C3.3b",
        "holds",
        "What is computed inside `torch.no_grad()` is cut off.",
        "a product made under `no_grad` needs a gradient: {no_grad}; under "
        "`inference_mode`: {inference}; made outside: {outside}",
        agrees=lambda m: not m["no_grad"] and not m["inference"] and m["outside"],
    ),
    Claim(
        "C3.3c",
        "conditions",
        "Going through a NumPy array and back cuts the gradient.",
        "not in silence: {raised} of {tried} direct ways raise. After `.detach()` the "
        "gradient is {detached}, and nothing is said",
        agrees=lambda m: m["raised"] == m["tried"] >= 3 and m["detached"] == "None",
    ),
    Claim(
        "C3.3d",
        "incomplete",
        "Using Python scalars cuts the gradient in some operations.",
        "constants never: {constants} of 3 keep it. Of {tried} operations, {cut} cut "
        "without an error, {zero} pass on a gradient of 0, {raised} raise",
        agrees=lambda m: (
            m["constants"] == 3
            and m["cut"] >= 10
            and m["zero"] >= 4
            and m["raised"] >= 2
            and m["cut"] + m["zero"] + m["raised"] < m["tried"]
        ),
    ),
    Claim(
        "C3.3e",
        "holds",
        "In the discriminator's step of a GAN, detach what the generator made.",
        "detached, the generator's gradient is {detached} and the discriminator's is "
        "the same: {same}; not detached, the generator gets one of size {leaked:.1g}. "
        "Detached in the generator's own step, its gradient is {own}",
        agrees=lambda m: (
            m["detached"] == m["own"] == "None" and m["same"] and m["leaked"] > 0.01
        ),
    ),
    Claim(
        "C3.3f",
        "conditions",
        "`.item()` in `forward` breaks the chain of gradients.",
        "it breaks one way of several: a gradient of {item:g} where {truth:g} is "
        "right, and no error; only where no other way is left does `backward` raise",
        agrees=lambda m: (
            abs(m["item"]) > 0 and abs(m["item"] - m["truth"]) > 0.1 and m["raises"]
        ),
    ),
    Claim(
        "C3.3g",
        "wrong",
        "Conditions belong into `torch.where()` or masks, so that gradients survive.",
        masks,
        agrees=lambda m: (
            0.8 * m["after"] < m["after_nan"] and m["before_nan"] == 0 < m["before"]
        ),
        source="https://github.com/pytorch/pytorch/issues/23395",
    ),
]
