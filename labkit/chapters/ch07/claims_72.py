"""The claims of part 7.2, a checkpoint that resumes, judged by measured values."""

from typing import Any

from labkit.lesson.verdict import Claim

DIVIDES = ("Adam 0.01", "RMSprop 0.01")
HARDLY = ("Adam 0.001", "SGD 0.1", "SGD 0.1, momentum")


def rise(m: dict[str, Any]) -> str:
    risen = [name for name, times in m.items() if times > 2]
    rest = [name for name in m if name not in risen]
    return (
        f"without its state the loss more than doubles with {', '.join(risen)}; with "
        f"{', '.join(rest)} it does not"
    )


def forever(m: dict[str, Any]) -> str:
    early = m["early"]
    lost = [name for name, wrong in early.items() if wrong > 60]
    once = [name for name, wrong in early.items() if wrong == 1]
    fine = [name for name, wrong in early.items() if wrong == 0]
    return (
        f"loaded before the scheduler is made, a rate of {m['first']:g} instead of "
        f"{m['right']:g}; {' and '.join(lost)} never recover, {' and '.join(once)} are off "
        f"for one step, {' and '.join(fine)} not at all. Made first: {m['late']} wrong"
    )


CLAIMS: list[Claim] = [
    Claim(
        "C7.2a",
        "holds",
        "The weights alone are not enough: Adam keeps a mean and a variance of each "
        "gradient.",
        lambda m: (
            f"it keeps {', '.join(m['entries'])}; the first step after a restart is "
            f"{m['kept']:.1f} long with them and {m['new']:.1f} without"
        ),
        agrees=lambda m: (
            m["new"] > 3 * m["kept"] and {"exp_avg", "exp_avg_sq"} <= set(m["entries"])
        ),
    ),
    Claim(
        "C7.2b",
        "conditions",
        "With a new optimizer the loss may rise at first, and then fall.",
        rise,
        agrees=lambda m: (
            all(m[name] > 2 for name in DIVIDES)
            and all(m[name] < 1.5 for name in HARDLY)
        ),
    ),
    Claim(
        "C7.2c",
        "conditions",
        "A complete checkpoint is a dict: epoch, the three state dicts, the best loss.",
        lambda m: (
            f"of {m['passing'] + len(m['refused'])} kinds of values {m['passing']} load "
            f"with `weights_only=True`; refused are {', '.join(m['refused'])}"
        ),
        agrees=lambda m: (
            m["passing"] >= 10
            and {"np.float64", "np.float32", "Path", "Namespace"} <= set(m["refused"])
        ),
        source="https://docs.pytorch.org/docs/stable/notes/serialization.html",
    ),
    Claim(
        "C7.2d",
        "wrong",
        "From such a checkpoint the training goes on seamlessly.",
        "the same bits two epochs later: {without}; with the random state as well: "
        "{restored}. A seed at the start repeats the order of epoch 0: {replays}. Of the "
        "function in a `LambdaLR` is saved: {lambdas}",
        agrees=lambda m: (
            m["restored"]
            and not m["without"]
            and m["replays"]
            and m["lambdas"] == "[None]"
        ),
    ),
    Claim(
        "C7.2e",
        "incomplete",
        "Load each part in the corresponding way (the order is not said).",
        forever,
        agrees=lambda m: (
            m["first"] < 0.02 * m["right"]
            and m["early"]["SequentialLR"] > 60
            and 1 in m["early"].values()
            and m["late"] == 0
        ),
        source="https://github.com/pytorch/pytorch/issues/119168",
    ),
    Claim(
        "C7.2f",
        "incomplete",
        "The optimizer's state dict brings its state back.",
        "by position: sizes of {before} become {after} where two layers of one shape have "
        "changed places. It also brings the rate, {lr} instead of the 0.5 passed, takes "
        "the dtype of the weights ({dtype}), and is no copy: {alias}",
        agrees=lambda m: (
            m["before"]["query"] == m["after"]["key"] > m["after"]["query"]
            and m["lr"] == 0.01
            and m["dtype"] == "torch.bfloat16"
            and m["alias"]
        ),
    ),
]
