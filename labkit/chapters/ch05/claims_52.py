"""What the article says about schedules and warm-up, judged by the page's values."""

from typing import Any

from labkit.lesson.verdict import Claim


def warm_up(m: dict[str, Any]) -> str:
    """What the runs with and without warm-up showed, in words that do not flicker."""
    rise = m["rise_without"] - m["rise_with"]
    early = "stays lower with warm-up" if rise > 0.1 else "is the same with warm-up"
    everywhere = m["better"] == m["rates"]
    end = "better at every rate" if everywhere else "not better at every rate"
    return (
        f"at a high rate the loss of the first 20 steps {early}; the accuracy in the end "
        f"is {end} (a small Transformer, {m['rates']} rates, {m['seeds']} seeds each)"
    )


CLAIMS: list[Claim] = [
    Claim(
        id="C5.2a",
        judgement="holds",
        article="`torch.optim.lr_scheduler` has StepLR, CosineAnnealingLR, "
        "ReduceLROnPlateau and more.",
        measured="from 1, after ten calls: StepLR(5) {step:g}, CosineAnnealingLR(10) "
        "{cosine:g}, ReduceLROnPlateau(patience=3) at a standstill {plateau:g}. Their "
        "old argument `verbose`: {verbose}",
        agrees=lambda m: (
            (m["step"], m["cosine"], m["plateau"]) == (0.01, 0, 0.01)
            and m["verbose"] in ("TypeError", "warned")
        ),
    ),
    Claim(
        id="C5.2b",
        judgement="conditions",
        article="ReduceLROnPlateau watches the validation loss and lowers the rate when "
        "the loss stops falling.",
        measured="it watches what `step(metric)` is given: a rising accuracy, {rising:g} "
        "times the rate; ten times NaN, {nan:g} times; no metric at all, {missing}; "
        "inside SequentialLR, {inside}",
        agrees=lambda m: (
            m["rising"] < 1
            and m["nan"] < 1
            and (m["missing"], m["inside"]) == ("TypeError", "ValueError")
        ),
    ),
    Claim(
        id="C5.2c",
        judgement="conditions",
        article="A patience of 3 to 5 is about right.",
        measured="the unit is calls: with 3, a loss that stands still is cut at call "
        "{first} (the default is {default}). Ten epochs of digits at 0.1: called once an "
        "epoch, the rate ends at {epoch:g}; called once a batch, at {batch:g}",
        agrees=lambda m: (
            m["first"] == 5 and m["default"] == 10 and m["batch"] < 1e-4 < m["epoch"]
        ),
    ),
    Claim(
        id="C5.2d",
        judgement="conditions",
        article="(In the sample) warm up with `step / warmup_steps`.",
        measured="the first optimizer steps at rate 0: {per_step} of 390 when stepped once "
        "a step, {per_epoch} when stepped once an epoch; with `(step + 1)`, {plus_one}",
        agrees=lambda m: (m["per_step"], m["per_epoch"], m["plus_one"]) == (1, 13, 0),
    ),
    Claim(
        id="C5.2e",
        judgement="incomplete",
        article='Warm up for "the first few hundred steps"; the sample says 1,000 and '
        "shows no `scheduler.step()`.",
        measured="after 30 epochs, 390 steps, the sample has reached {epoch:.0%} of the "
        "rate when stepped once an epoch, {step:.0%} when stepped once a step",
        agrees=lambda m: m["epoch"] < 0.05 and 0.3 < m["step"] < 1,
    ),
    Claim(
        id="C5.2f",
        judgement="conditions",
        article="Warm-up avoids instability early in training, for Transformers above all.",
        measured=warm_up,
        agrees=lambda m: (
            m["rise_without"] > m["rise_with"] + 0.1 and m["better"] < m["rates"]
        ),
    ),
    Claim(
        id="C5.2g",
        judgement="incomplete",
        article="(Left unsaid: the order of the two steps.)",
        measured="optimizer first: {right}; scheduler first: {ahead}, with a warning: "
        "{warned}. The same warning comes when a GradScaler skips the first step: "
        "{skipped}",
        agrees=lambda m: (
            m["right"] == [0.1, 0.1, 0.01, 0.01]
            and m["ahead"] == [0.1, 0.01, 0.01, 0.001]
            and m["warned"]
            and m["skipped"]
        ),
    ),
]
