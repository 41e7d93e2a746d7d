"""The claims of part 3.2, accumulation and zeroing, judged by measured values."""

from typing import Any

from labkit.lesson.verdict import Claim


def accumulated(m: dict[str, Any]) -> str:
    return (
        f"with equal batches, a mean loss and no BatchNorm the same up to rounding; "
        f"unequal batches {m['unequal']:.0%} off, padded ones {m['padded']:.0%}, BatchNorm "
        f"{m['batchnorm']:.0%}; the sum over all labels ÷ their number again the same"
    )


def divided(m: dict[str, Any]) -> str:
    return (
        f"{m['undivided']:g} times as long without the division by 4, for a mean; a sum "
        f"needs the number of samples, and ÷ 4 leaves it {m['summed']:g} times too long. "
        f"After 50 steps of SGD the weights are {m['sgd']:.0%} apart, of Adam, without "
        "clipping and decay, less than 1%"
    )


CLAIMS = [
    Claim(
        "C3.2a",
        "wrong",
        "The three lines have one order; `zero_grad()` must come before `backward()`.",
        "loss {first:.2f} at first; after 100 rounds {before:.2f} with `zero_grad` ahead, "
        "{within:.2f} between forward and backward, {after:.2f} at the end; {gap:.2f} "
        "between backward and step, and {obeying:.2f} for `zero_grad`, `step`, `backward`, "
        "which keeps to the rule",
        agrees=lambda m: (
            m["before"] == m["within"] == m["after"] < 0.8 * m["first"]
            and m["gap"] == m["obeying"] == m["first"]
        ),
    ),
    Claim(
        "C3.2b",
        "holds",
        "Without it gradients add up.",
        "two backwards through the same batch: {ratio:g} times the gradient of one",
        agrees=lambda m: m["ratio"] == 2,
    ),
    Claim(
        "C3.2c",
        "conditions",
        "Accumulating is equivalent to a large batch.",
        accumulated,
        agrees=lambda m: (
            m["equal"] < 1e-5
            and m["weighted"] < 0.01
            and min(m["unequal"], m["padded"], m["batchnorm"]) > 0.1
        ),
        source="https://github.com/huggingface/transformers/pull/34191",
    ),
    Claim(
        "C3.2d",
        "conditions",
        "Divide the loss by the number of steps, or gradients grow by that factor.",
        divided,
        agrees=lambda m: (
            abs(m["undivided"] - 4) < 1e-3
            and m["summed"] > 4
            and m["adam"] < 0.01 < m["sgd"]
        ),
    ),
    Claim(
        "C3.2e",
        "wrong",
        "(The sample: step and zero where `(i + 1) % steps == 0`.)",
        "ten batches an epoch, steps of four: updates of {updates} batches, and {left} "
        "never used; the first of the second epoch is {error:.0%} off",
        agrees=lambda m: (
            m["updates"] == [4, 4, 6, 4] and m["left"] == 2 and m["error"] > 0.1
        ),
        source="https://github.com/huggingface/transformers/pull/22098",
    ),
    Claim(
        "C3.2f",
        "conditions",
        "The effect is almost that of a bigger batch.",
        "{updates} updates an epoch instead of {batches}, so schedules must count updates; "
        "clipped after every batch instead of once, the direction differs (cosine "
        "{cosine:.2f})",
        agrees=lambda m: m["cosine"] < 0.95 and m["updates"] < m["batches"],
    ),
]
