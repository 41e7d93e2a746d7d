"""What the article says about creation and layout, judged by the page's values."""

from typing import Any

from labkit.lesson.verdict import Claim


def creation(m: dict[str, Any]) -> str:
    least = min(m["list"], m["tolist"])
    how = "at least 4 times" if least >= 4 else "less than 4 times"
    return (
        f"through Python, value by value (a list of arrays, a nested list), it takes {how} "
        "as long as stacking; for one array the difference is the one copy above"
    )


def saving(m: dict[str, Any]) -> str:
    return (
        f"a loader that does nothing but copy takes {share(m['copying'])} less time; one "
        f"that decodes JPEGs, {share(m['decoding'])} less"
    )


def share(saved: float) -> str:
    return "at least 20 %" if saved >= 0.2 else "less than 20 %"


CLAIMS: list[Claim] = [
    Claim(
        id="C2.1a",
        judgement="holds",
        article="`torch.tensor` copies the data.",
        measured="a new address for {copied} of {dtypes} dtypes",
        agrees=lambda m: m["copied"] == m["dtypes"] >= 8,
    ),
    Claim(
        id="C2.1b",
        judgement="holds",
        article="`torch.as_tensor` shares memory where the data already has the right "
        "type.",
        measured="the same address with the same dtype: {same}; with another: {other}, "
        "and nothing says so",
        agrees=lambda m: m["same"] is True and m["other"] is False,
    ),
    Claim(
        id="C2.1c",
        judgement="holds",
        article="`torch.from_numpy` copies nothing: array and tensor see each other's "
        "changes.",
        measured="a write to the array reaches the tensor: {to_tensor}; the other way: "
        "{to_array}; after `a = a + 1`, a new array: {rebound}",
        agrees=lambda m: m["to_tensor"] and m["to_array"] and not m["rebound"],
    ),
    Claim(
        id="C2.1d",
        judgement="holds",
        article="(In the sample) an array of integers becomes a tensor of integers.",
        measured="whole numbers give {whole}, the array's own dtype; decimals {decimal} "
        "from an array, but {listed} from a list",
        agrees=lambda m: (
            m["whole"].startswith("int")
            and m["whole"] == m["array"]
            and (m["decimal"], m["listed"]) == ("float64", "float32")
        ),
    ),
    Claim(
        id="C2.1e",
        judgement="conditions",
        article="Ways of making a tensor differ hugely in memory and speed.",
        measured=creation,
        agrees=lambda m: min(m["list"], m["tolist"]) >= 4,
    ),
    Claim(
        id="C2.1f",
        judgement="conditions",
        article="Changing `torch.tensor` to `from_numpy` cut loading time by 40 %.",
        measured=saving,
        agrees=lambda m: m["copying"] >= 0.2 > m["decoding"],
    ),
    Claim(
        id="C2.1g",
        judgement="wrong",
        article="`view` needs contiguous memory.",
        measured="{worked} of {tried} views of tensors that are not contiguous worked",
        agrees=lambda m: 0 < m["worked"] < m["tried"],
    ),
    Claim(
        id="C2.1h",
        judgement="conditions",
        article="`transpose` and then `view` most likely raises.",
        measured="{raised} of {tried} raised; an axis of size 1, or one that is only "
        "split, does no harm",
        agrees=lambda m: 0 < m["raised"] < m["tried"],
    ),
    Claim(
        id="C2.1i",
        judgement="incomplete",
        article="The fix is `contiguous().view(...)`.",
        measured="it gives the values of `reshape`: {same_values}; after a transpose "
        "either one copies, so a write is lost: {write_lost}",
        agrees=lambda m: m["same_values"] and m["write_lost"],
    ),
    Claim(
        id="C2.1j",
        judgement="conditions",
        article="`contiguous` costs a copy, so use it with care.",
        measured="of a contiguous tensor it copies {already} bytes (it gives back the "
        "tensor itself: {itself}); of its transpose {turned}",
        agrees=lambda m: m["itself"] and m["already"] == 0 < m["turned"],
    ),
    Claim(
        id="C2.1k",
        judgement="incomplete",
        article="Keep transposes and reshapes out of `forward`.",
        measured="100 transposes and views: {views} bytes; one `reshape` that must "
        "copy: {copy} bytes",
        agrees=lambda m: m["views"] == 0 < m["copy"],
    ),
]
