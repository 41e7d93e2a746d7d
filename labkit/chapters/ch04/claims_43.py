"""The claims of part 4.3, samples of unequal length, judged by measured values."""

from typing import Any

from labkit.lesson.verdict import Claim


def other_samples(m: dict[str, str]) -> str:
    """Which kinds of samples ran, and what the others raised."""
    ran = [kind for kind, result in m.items() if result == "runs"]
    raised = [f"{kind}: {result}" for kind, result in m.items() if result != "runs"]
    return f"ran: {', '.join(ran)}; raised: {', '.join(raised)}"


def zero_pads(m: dict[str, Any]) -> str:
    """What pads do where nothing masks them, and zeros as pads anyway."""
    norms, losses = m["norms"], m["losses"]
    return (
        f"{m['spaces']:,} names have a real 0, the space; `padding_idx=0` left its vector "
        f"without a gradient. With a mask from lengths {max(m['masked_mean']):.2f} of the "
        f"languages were right whatever the batch, without one {min(m['mean']):.2f} to "
        f"{max(m['mean']):.2f}. BatchNorm kept {norms[0]:.1f} for {norms[1]:.1f}; a GRU's "
        f"last state was up to {m['padded']:.1f} off, packed {m['packed']:.1f}; the loss "
        f"was {losses[0]:.1f} with the pads, {losses[1]:.1f} without"
    )


def masked(m: dict[str, Any]) -> str:
    """What a mask keeps out of the gradients, and two ways in which it does not."""
    turned = m["quiz"]["function, pads"]
    return (
        "the pads' vector got a gradient from the plain mean, none from the masked one. "
        f"One row that is masked entirely put NaN into {m['step']} of 5 gradients, "
        "although its loss was left out; turned the wrong way round, a mask let "
        f"{turned['pads']} pads take part and {turned['letters']} letters"
    )


CLAIMS = [
    Claim(
        "C4.3a",
        "holds",
        "The default collate stacks the samples of a batch, and needs equal shapes.",
        "unequal ones: `{said}`. Lists it does not stack: two lists of three numbers "
        "became {turned}",
        agrees=lambda m: (
            "equal size" in m["said"] and m["turned"] == [[1, 4], [2, 5], [3, 6]]
        ),
    ),
    Claim(
        "C4.3b",
        "holds",
        "Sequences of unequal length need a `collate_fn` of one's own that pads.",
        "with `pad_sequence`, 64 names of at most {longest} letters became a batch "
        "{batch} of {dtype}",
        agrees=lambda m: m["batch"] == (64, m["longest"]) and m["dtype"] == "int64",
    ),
    Claim(
        "C4.3c",
        "wrong",
        "The sample fills a rectangle from `torch.zeros` with the sequences.",
        "integers became {dtype}, and the embedding said: `{error:.75}…`; 16777217 became "
        "{big}, and float64 {double}",
        agrees=lambda m: (
            m["dtype"] == m["double"] == "float32"
            and m["big"] == 16777216
            and "Long, Int" in m["error"]
        ),
    ),
    Claim(
        "C4.3d",
        "incomplete",
        "The sample handles sequences of unequal length, such as sentences.",
        other_samples,
        agrees=lambda m: (
            m["tensors"] == "runs"
            and [m[k] for k in ("lists", "arrays")] == ["TypeError"] * 2
            and m["features"] == "RuntimeError"
            and m["vector labels"] != "runs"
        ),
    ),
    Claim(
        "C4.3e",
        "conditions",
        "The pad value must fit the masks; usually it is 0, with a mask made from lengths.",
        zero_pads,
        agrees=lambda m: (
            m["spaces"] > 0
            and not m["learns"]
            and len(set(m["masked_mean"])) == 1
            and m["masked_mean"][0] > max(m["mean"]) > min(m["mean"])
            and m["norms"][0] < 0.8 * m["norms"][1]
            and m["packed"] < 1e-5 < 0.1 < m["padded"]
            and m["losses"][0] < m["losses"][1] - 0.5
        ),
    ),
    Claim(
        "C4.3f",
        "conditions",
        "With a mask, padding does not influence the gradients.",
        masked,
        agrees=lambda m: (
            m["pad_learns"] == [True, False]
            and m["step"] > 0
            and m["rows"][True][0] == "NaN"
            and m["rows"][False][0] == "finite"
            and m["quiz"]["module, pads"]["pads"] == 0
            and m["quiz"]["function, ~pads"]["pads"] == 0
            and m["quiz"]["function, pads"]["letters"] == 0
        ),
    ),
]
