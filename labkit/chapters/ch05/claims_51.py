"""What the article says about train and eval mode, judged by the page's values."""

from typing import Any

from labkit.lesson.verdict import Claim


def noise(m: dict[str, Any]) -> str:
    higher = "and each one above" if m["least"] > m["right"] else "not all above"
    return (
        f"five validations in train mode gave {m['different']} different losses, "
        f"{higher} the one of eval mode; one image's score was {m['alone']:.0f} in a "
        f"batch of 2 and {m['crowd']:.0f} in a batch of 400"
    )


def pollution(m: dict[str, Any]) -> str:
    return (
        f"the test images, {m['before']:.1f} read rightly: after 20 images of the same "
        f"kind {m['small']:.1f}, after 400 {m['large']:.1f}, after 400 grey ones "
        f"{m['grey']:.1f}. What counts is how strange the images are and how many "
        f"batches come: 20 replace {m['moved']:.0%} of the statistics, under `no_grad` "
        "and `inference_mode` too"
    )


def further(m: dict[str, Any]) -> str:
    kept = m["rates"][0] == m["rates"][1]
    return (
        f"the next step's gradients are identical: {m['train']}; with a frozen BatchNorm: "
        f"{m['frozen']}. Validated on grey images in train mode and in eval mode, the "
        f"schedule ends at {'the same' if kept else 'another'} learning rate, and "
        f"epoch {m['best'][0]} or {m['best'][1]} is the best. After 20 training batches "
        f"{m['washed']:.1f} are read rightly again"
    )


CLAIMS: list[Claim] = [
    Claim(
        id="C5.1a",
        judgement="holds",
        article="`train` and `eval` set the `training` flag of all modules of a model.",
        measured="{reached} of {modules} modules after one `eval()`, which returns the "
        "model itself: {itself}; a module appended afterwards is in train mode: {late}",
        agrees=lambda m: (
            m["reached"] == m["modules"] >= 8 and m["itself"] is m["late"] is True
        ),
    ),
    Claim(
        id="C5.1b",
        judgement="conditions",
        article="Dropout zeroes values in train mode, and none in eval mode.",
        measured="of 1,000 values, {train} zeroed in train mode, {eval} in eval mode; "
        "by `F.dropout`, which knows no mode, {function}",
        agrees=lambda m: (
            m["eval"] == 0 and all(400 < m[way] < 600 for way in ("train", "function"))
        ),
    ),
    Claim(
        id="C5.1c",
        judgement="conditions",
        article="BatchNorm uses the batch's statistics in train mode and updates the "
        "running ones, which it uses in eval mode.",
        measured="batch mean subtracted: {batch}, running mean moved: {updated}, used in "
        "eval mode: {running}; made without running statistics, both modes give the "
        "same: {without}; a batch of one image works in train mode: {single}",
        agrees=lambda m: (
            all(m[name] for name in ("batch", "updated", "running", "without"))
            and not m["single"]
        ),
    ),
    Claim(
        id="C5.1d",
        judgement="holds",
        article="Without `eval`, validation results vary and are wrong.",
        measured=noise,
        agrees=lambda m: (
            m["different"] == 5
            and m["steady"] == 1
            and m["least"] > m["right"]
            and abs(m["alone"] - m["crowd"]) > 1
        ),
    ),
    Claim(
        id="C5.1e",
        judgement="conditions",
        article="Worse, a small validation set pollutes BatchNorm's running statistics.",
        measured=pollution,
        agrees=lambda m: (
            min(m["small"], m["large"]) > m["before"] - 0.05
            and m["grey"] < m["before"] - 0.1
            and m["moved"] > 0.8
        ),
    ),
    Claim(
        id="C5.1f",
        judgement="conditions",
        article="That affects the training that follows.",
        measured=further,
        agrees=lambda m: (
            m["train"]
            and not m["frozen"]
            and m["rates"][0] != m["rates"][1]
            and m["best"][0] != m["best"][1]
            and m["washed"] > 0.85
        ),
    ),
    Claim(
        id="C5.1g",
        judgement="holds",
        article="`train` before training, `eval` and `no_grad` for validation.",
        measured="the six-block model reads {rule} of the test images with the rule and "
        "{without} without. What the rule does not keep: a frozen BatchNorm's features are "
        "the same after `train()`: {kept}",
        agrees=lambda m: m["rule"] > 0.8 > 0.3 > m["without"] and not m["kept"],
    ),
]
