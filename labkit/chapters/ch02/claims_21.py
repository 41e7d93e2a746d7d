"""What the article says about creation and layout, judged by the page's values."""

from typing import Any

from labkit.lesson.costs import size
from labkit.lesson.verdict import Claim


def address(same: bool) -> str:
    return "the array's address" if same else "an address of its own"


def arrives(seen: bool) -> str:
    return "is seen in" if seen else "does not reach"


def as_tensor(m: dict[str, Any]) -> str:
    return (
        f"with the same dtype the tensor has {address(m['same'])}, with another dtype "
        f"{address(m['other'])}: asked to convert, `as_tensor` copies and says nothing"
    )


def from_numpy(m: dict[str, Any]) -> str:
    return (
        f"a write to the array {arrives(m['to_tensor'])} the tensor, and a write to the "
        f"tensor {arrives(m['to_array'])} the array; `a = a + 1` makes a new array, "
        f"which {arrives(m['rebound'])} the tensor"
    )


def flattened(m: dict[str, Any]) -> str:
    same = "the same values as" if m["same_values"] else "other values than"
    lost = "does not reach" if m["write_lost"] else "reaches"
    return (
        f"it gives {same} `reshape(...)`. After a transpose both copy, and a write to "
        f"the result {lost} the tensor"
    )


def contiguous(m: dict[str, Any]) -> str:
    what = "the tensor itself" if m["itself"] else "another tensor"
    return (
        f"a contiguous tensor gives back {what} and takes {size(m['already'])}; its "
        f"transpose is copied, {size(m['turned'])}"
    )


def layout(m: dict[str, Any]) -> str:
    return (
        f"100 transposes and views took {size(m['views'])} of new memory, one `reshape` "
        f"that has to copy took {size(m['copy'])}"
    )


def creation(m: dict[str, Any]) -> str:
    least = min(m["list"], m["tolist"])
    how = "at least 4 times" if least >= 4 else "less than 4 times"
    return (
        "a batch made value by value, from a list of arrays or a nested list, takes "
        f"{how} as long as stacking; from one array the routes differ by one copy"
    )


def saving(m: dict[str, Any]) -> str:
    return (
        f"a loader that only copies takes {share(m['copying'])} less time, one that "
        f"decodes JPEGs {share(m['decoding'])} less"
    )


def share(saved: float) -> str:
    return "at least 20 %" if saved >= 0.2 else "less than 20 %"


CLAIMS: list[Claim] = [
    Claim(
        id="C2.1a",
        judgement="holds",
        article="`torch.tensor` copies the data.",
        measured="arrays of {dtypes} dtypes were tried, and {copied} of the tensors had a "
        "new address",
        agrees=lambda m: m["copied"] == m["dtypes"] >= 8,
    ),
    Claim(
        id="C2.1b",
        judgement="holds",
        article="`torch.as_tensor` shares memory where the data already has the right "
        "type.",
        measured=as_tensor,
        agrees=lambda m: m["same"] is True and m["other"] is False,
    ),
    Claim(
        id="C2.1c",
        judgement="holds",
        article="`torch.from_numpy` copies nothing: array and tensor see each other's "
        "changes.",
        measured=from_numpy,
        agrees=lambda m: m["to_tensor"] and m["to_array"] and not m["rebound"],
    ),
    Claim(
        id="C2.1d",
        judgement="holds",
        article="(In the sample) an array of integers becomes a tensor of integers.",
        measured="an array of whole numbers gives {whole}, its own dtype; decimals give "
        "{decimal} from an array, but {listed} from a list",
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
        measured="of {tried} views of tensors that are not contiguous, {worked} worked",
        agrees=lambda m: 0 < m["worked"] < m["tried"],
    ),
    Claim(
        id="C2.1h",
        judgement="conditions",
        article="`transpose` and then `view` most likely raises.",
        measured="it raised in {raised} of {tried} cases; an axis of size 1, or one that "
        "the view only splits, does no harm",
        agrees=lambda m: 0 < m["raised"] < m["tried"],
    ),
    Claim(
        id="C2.1i",
        judgement="incomplete",
        article="The fix is `contiguous().view(...)`.",
        measured=flattened,
        agrees=lambda m: m["same_values"] and m["write_lost"],
    ),
    Claim(
        id="C2.1j",
        judgement="conditions",
        article="`contiguous` costs a copy, so use it with care.",
        measured=contiguous,
        agrees=lambda m: m["itself"] and m["already"] == 0 < m["turned"],
    ),
    Claim(
        id="C2.1k",
        judgement="incomplete",
        article="Keep transposes and reshapes out of `forward`.",
        measured=layout,
        agrees=lambda m: m["views"] == 0 < m["copy"],
    ),
]
