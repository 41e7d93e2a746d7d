"""Previews of learning rates: what is found, and what is left alone."""

import copy
import math
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW, Optimizer
from torch.optim import lr_scheduler as ls
from torch.optim.swa_utils import SWALR

from labkit.probe.schedule_curve import rises
from labkit.probe.schedules import preview_schedule

RATE = 0.1


def sgd(rate: float = RATE) -> Optimizer:
    return SGD([torch.zeros(3, requires_grad=True)], lr=rate, momentum=0.9)


def making(schedule, optimizer=sgd):
    """A function that builds an optimizer and what `schedule` makes of it."""

    def make():
        built = optimizer()
        return built, schedule(built)

    return make


def said(preview) -> str:
    return "\n".join(map(str, preview.findings))


def only(preview):
    assert len(preview.findings) == 1, said(preview)
    return preview.findings[0]


def in_use(schedule, updates: int, every: int = 1, calls: int = 1):
    """An optimizer and a scheduler after a loop; `every` 0 never steps the scheduler."""
    model = nn.Linear(3, 2)
    optimizer = AdamW(model.parameters(), lr=RATE)
    scheduler = schedule(optimizer)
    for step in range(updates):
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if every and (step + 1) % every == 0:
            for _ in range(calls):
                scheduler.step()
    return optimizer, scheduler


def cosine_between(start: int, end: int):
    """A warm-up over `start` steps and a cosine to `end`, as one function."""

    def factor(step: int) -> float:
        if step < start:
            return (step + 1) / start
        done = min(1.0, (step - start) / (end - start))
        return 0.5 * (1 + math.cos(math.pi * done))

    return factor


HEALTHY = {
    "constant": (lambda o: ls.LambdaLR(o, lambda step: 1.0), 50),
    "step": (lambda o: ls.StepLR(o, 30), 100),
    "milestones": (lambda o: ls.MultiStepLR(o, [30, 80]), 100),
    "milestones out of reach": (lambda o: ls.MultiStepLR(o, [30, 800]), 40),
    "exponential": (lambda o: ls.ExponentialLR(o, 0.95), 100),
    "cosine": (lambda o: ls.CosineAnnealingLR(o, 100), 100),
    "cosine to the last step": (lambda o: ls.CosineAnnealingLR(o, 99), 100),
    "cosine with a floor": (lambda o: ls.CosineAnnealingLR(o, 60, eta_min=0.01), 60),
    "polynomial": (lambda o: ls.PolynomialLR(o, 100, power=2), 100),
    "linear decay": (lambda o: ls.LinearLR(o, 1.0, 0.0, 100), 100),
    "linear decay to a floor": (lambda o: ls.LinearLR(o, 1.0, 0.1, 40), 100),
    "linear warm-up": (lambda o: ls.LinearLR(o, 0.1, 1.0, 5), 100),
    "constant warm-up": (lambda o: ls.ConstantLR(o, 0.1, 5), 100),
    "one cycle": (lambda o: ls.OneCycleLR(o, 1.0, total_steps=100), 100),
    "three phases": (
        lambda o: ls.OneCycleLR(o, 1.0, total_steps=100, three_phase=True),
        100,
    ),
    "cycles": (lambda o: ls.CyclicLR(o, 0.01, 0.1, step_size_up=20), 100),
    "warm restarts": (lambda o: ls.CosineAnnealingWarmRestarts(o, 25), 100),
    "growing restarts": (lambda o: ls.CosineAnnealingWarmRestarts(o, 10, 2), 70),
    "plateau": (lambda o: ls.ReduceLROnPlateau(o), 100),
    "product": (lambda o: ls.MultiplicativeLR(o, lambda step: 0.97), 100),
    "averaging": (lambda o: SWALR(o, swa_lr=0.2), 50),
    "warm-up, then cosine": (
        lambda o: ls.SequentialLR(
            o, [ls.LinearLR(o, 0.01, 1.0, 10), ls.CosineAnnealingLR(o, 90)], [10]
        ),
        100,
    ),
    "constant warm-up, then decay": (
        lambda o: ls.SequentialLR(
            o, [ls.ConstantLR(o, 0.1, 20), ls.ExponentialLR(o, 0.9)], [20]
        ),
        60,
    ),
    "two cosines in sequence": (
        lambda o: ls.SequentialLR(
            o, [ls.CosineAnnealingLR(o, 50), ls.CosineAnnealingLR(o, 50)], [50]
        ),
        100,
    ),
    "a second warm-up in sequence": (
        lambda o: ls.SequentialLR(
            o,
            [
                ls.CosineAnnealingLR(o, 40),
                ls.LinearLR(o, 0.1, 1.0, 10),
                ls.CosineAnnealingLR(o, 50),
            ],
            [40, 50],
        ),
        100,
    ),
    "chained": (
        lambda o: ls.ChainedScheduler(
            [ls.ConstantLR(o, 0.1, 5), ls.ExponentialLR(o, 0.9)]
        ),
        60,
    ),
    "two side by side": (
        lambda o: [ls.LinearLR(o, 0.1, 1.0, 5), ls.MultiStepLR(o, [30, 60])],
        100,
    ),
    "warm-up beside a plateau": (
        lambda o: [ls.LinearLR(o, 0.1, 1.0, 5), ls.ReduceLROnPlateau(o)],
        100,
    ),
    "warm-up and cosine in one": (
        lambda o: ls.LambdaLR(o, cosine_between(10, 100)),
        100,
    ),
    "hard restarts in one": (
        lambda o: ls.LambdaLR(
            o, lambda step: 0.5 * (1 + math.cos(math.pi * (step % 25) / 25))
        ),
        100,
    ),
    "inverse square root": (
        lambda o: ls.LambdaLR(
            o, lambda s: 5 * min((s + 1) ** -0.5, (s + 1) * 40**-1.5)
        ),
        200,
    ),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_silent_on_a_healthy_schedule(name):
    schedule, steps = HEALTHY[name]
    preview = preview_schedule(making(schedule), steps)
    assert not preview.findings, said(preview)
    assert [len(rates) for rates in preview.rates] == [steps]


@pytest.mark.parametrize("name", HEALTHY)
def test_the_rates_are_those_of_the_loop(name):
    schedule, steps = HEALTHY[name]
    preview = preview_schedule(making(schedule), steps)
    optimizer, scheduler = making(schedule)()
    used = []
    for _ in range(steps):
        used.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        for each in scheduler if isinstance(scheduler, list) else [scheduler]:
            if not isinstance(each, ls.ReduceLROnPlateau):
                each.step()
    np.testing.assert_allclose(preview.rates[0], used, rtol=1e-9)


class TestUnit:
    """A length that is counted in another unit than the scheduler is stepped in."""

    UPDATES, MICRO = 12, 3

    def decay(self, optimizer):
        return ls.LinearLR(optimizer, 1.0, 0.0, total_iters=self.UPDATES)

    def test_stepped_at_each_micro_batch(self):
        make = making(self.decay)
        broken = preview_schedule(
            make, self.UPDATES, stepped="batch", accumulate=self.MICRO
        )
        assert "wrong unit: total_iters=12 is the number of optimizer steps" in said(
            broken
        )
        assert "36 times, once a micro-batch" in said(broken)
        assert "permanent zero" in said(broken)
        # the rate of update 2 is the one after 2 × 3 + 2 calls
        assert broken.rates[0][2] == pytest.approx(RATE * (1 - 8 / 12))
        fixed = preview_schedule(make, self.UPDATES, accumulate=self.MICRO)
        assert not fixed.findings, said(fixed)

    def test_the_same_told_in_scheduler_steps(self):
        broken = preview_schedule(making(self.decay), self.UPDATES * self.MICRO)
        assert "3 times as often" in said(broken)
        assert "the rate is 0 from step 12 to the end, 24 of 36 steps" in said(broken)

    def test_counted_in_micro_batches_and_stepped_at_each_update(self):
        total = self.UPDATES * self.MICRO
        make = making(lambda o: ls.CosineAnnealingLR(o, total))
        broken = preview_schedule(make, self.UPDATES, accumulate=self.MICRO)
        assert "is the number of micro-batches" in only(broken).what
        fixed = preview_schedule(
            make, self.UPDATES, stepped="batch", accumulate=self.MICRO
        )
        assert not fixed.findings, said(fixed)

    def test_counted_in_epochs_and_stepped_at_each_step(self):
        make = making(lambda o: ls.CosineAnnealingLR(o, 8))
        broken = preview_schedule(make, 400, steps_per_epoch=50)
        assert "T_max=8 is the number of epochs" in said(broken)
        assert broken.findings[0].sure == "certain"
        assert "rise after decay: the rate falls to 0 at step 8" in said(broken)
        fixed = preview_schedule(make, 400, stepped="epoch", steps_per_epoch=50)
        assert not fixed.findings, said(fixed)
        assert fixed.scheduler_steps == 8

    def test_without_the_epochs_length_it_is_likely(self):
        make = making(lambda o: ls.CosineAnnealingLR(o, 8))
        broken = preview_schedule(make, 400)
        assert "50 times as often" in said(broken)
        assert broken.findings[0].sure == "likely"

    def test_counted_in_steps_and_stepped_once_an_epoch(self):
        make = making(lambda o: ls.CosineAnnealingLR(o, 400))
        broken = preview_schedule(make, 400, stepped="epoch", steps_per_epoch=50)
        assert "T_max=400 is the number of optimizer steps" in only(broken).what
        assert "2 % of that" in only(preview_schedule(make, 8)).what

    @pytest.mark.parametrize(
        "schedule",
        [
            lambda o: ls.LinearLR(o, 0.01, 1.0, total_iters=1000),
            lambda o: ls.LambdaLR(o, lambda step: min(1.0, step / 1000)),
            lambda o: ls.OneCycleLR(o, 1.0, total_steps=3000),
            lambda o: ls.StepLR(o, 1000),
            lambda o: ls.SequentialLR(
                o, [ls.LinearLR(o), ls.ExponentialLR(o, 0.9)], [1000]
            ),
        ],
        ids=["linear", "function", "one cycle", "step", "sequence"],
    )
    def test_a_schedule_that_hardly_begins(self, schedule):
        assert only(preview_schedule(making(schedule), 30)).what.startswith(
            "wrong unit"
        )

    def test_one_cycle_that_is_stepped_past_its_end(self):
        make = making(lambda o: ls.OneCycleLR(o, 1.0, total_steps=30))
        preview = preview_schedule(make, 300)
        assert "call 31 of the scheduler raises ValueError" in only(preview).what
        assert len(preview.rates[0]) == 31

    def test_milestones_in_epochs(self):
        make = making(lambda o: ls.MultiStepLR(o, [3, 6]))
        assert "the last milestone is call 6" in only(preview_schedule(make, 400)).what
        assert not preview_schedule(make, 9).findings

    def test_a_warm_up_that_is_cut_off(self):
        def schedule(length):
            return making(
                lambda o: ls.SequentialLR(
                    o,
                    [ls.LinearLR(o, 0.01, 1.0, length), ls.CosineAnnealingLR(o, 40)],
                    [10],
                )
            )

        finding = only(preview_schedule(schedule(1000), 50))
        assert "jump: the warm-up of total_iters=1000 is cut off" in finding.what
        assert not preview_schedule(schedule(10), 50).findings

    def test_a_cosine_that_forgot_the_warm_up(self):
        def schedule(end):
            return making(
                lambda o: ls.SequentialLR(
                    o,
                    [ls.LinearLR(o, 0.01, 1.0, 20), ls.CosineAnnealingLR(o, end)],
                    [20],
                )
            )

        assert "rise after decay" in only(preview_schedule(schedule(60), 100)).what
        assert not preview_schedule(schedule(80), 100).findings


class TestZero:
    def warm_up(self, offset):
        return making(lambda o: ls.LambdaLR(o, lambda s: min(1.0, (s + offset) / 10)))

    def test_a_first_step_of_zero_is_a_note(self):
        preview = preview_schedule(self.warm_up(0), 200)
        assert not preview.findings
        assert "first step is 0" in preview.notes[0]
        assert not preview_schedule(self.warm_up(1), 200).notes

    def test_stepped_once_an_epoch_it_is_a_finding(self):
        preview = preview_schedule(
            self.warm_up(0), 400, stepped="epoch", steps_per_epoch=20
        )
        assert "the rate is 0 for the first 20 updates" in only(preview).what
        fixed = preview_schedule(
            self.warm_up(1), 400, stepped="epoch", steps_per_epoch=20
        )
        assert not fixed.findings

    def test_a_decay_that_ends_too_early(self):
        make = making(lambda o: ls.LambdaLR(o, lambda s: max(0.0, 1 - s / 30)))
        finding = only(preview_schedule(make, 300))
        assert "permanent zero: the rate is 0 from step 30 to the end" in finding.what
        assert not preview_schedule(make, 30).findings

    def test_as_good_as_zero(self):
        make = making(lambda o: ls.ExponentialLR(o, 0.95))
        assert "as good as 0" in only(preview_schedule(make, 3000)).what

    def test_a_group_frozen_by_its_rate(self):
        def optimizer():
            groups = [
                {"params": [torch.zeros(1)]},
                {"params": [torch.zeros(1)], "lr": 0},
            ]
            return SGD(groups, lr=RATE)

        preview = preview_schedule(making(lambda o: ls.StepLR(o, 3), optimizer), 9)
        assert not preview.findings
        assert "parameter group 1 is 0 throughout" in preview.notes[0]

    def test_negative_rates(self):
        make = making(lambda o: ls.LambdaLR(o, lambda s: 1 - s / 50))
        assert "negative from step 51" in only(preview_schedule(make, 100)).what


class TestStacks:
    """Several schedulers on one optimizer."""

    @staticmethod
    def warm_up(optimizer):
        return ls.LambdaLR(optimizer, lambda s: min(1.0, s / 10))

    def test_the_spike(self):
        make = making(lambda o: [self.warm_up(o), ls.CosineAnnealingLR(o, 50)])
        preview = preview_schedule(make, 60)
        assert "jump: the rate reaches 0.4" in said(preview)
        assert "4 times the 0.1" in said(preview)
        assert "LambdaLR sets the rate from its base" in said(preview)
        assert preview.marks
        assert max(preview.rates[0]) == pytest.approx(0.3996, abs=1e-4)

    @pytest.mark.parametrize("turned", [False, True], ids=["first", "last"])
    def test_one_that_undoes_the_other(self, turned):
        def schedule(optimizer):
            both = [self.warm_up(optimizer), ls.CosineAnnealingLR(optimizer, 50)]
            return both[::-1] if turned else both

        finding = only(preview_schedule(making(schedule), 50))
        assert "undoes what CosineAnnealingLR made" in finding.what
        assert finding.page == "9.5"

    def test_the_same_chained(self):
        make = making(
            lambda o: ls.ChainedScheduler(
                [self.warm_up(o), ls.CosineAnnealingLR(o, 50)]
            )
        )
        assert "undoes" in said(preview_schedule(make, 50))

    def test_the_fixed_twin_is_silent(self):
        make = making(
            lambda o: ls.SequentialLR(
                o, [ls.LinearLR(o, 0.1, 1.0, 10), ls.CosineAnnealingLR(o, 50)], [10]
            )
        )
        assert not preview_schedule(make, 60).findings


class TestNeverStepped:
    def test_built_and_not_returned(self):
        def broken():
            optimizer = sgd()
            ls.LambdaLR(optimizer, lambda s: min(1.0, s / 10))
            return optimizer, ls.CosineAnnealingLR(optimizer, 50)

        preview = preview_schedule(broken, 50)
        assert "never stepped: it was built on this optimizer" in said(preview)
        assert "permanent zero: the rate is 0 at every step" in said(preview)

    def test_built_and_not_given(self):
        optimizer = sgd()
        left = ls.LambdaLR(optimizer, lambda s: min(1.0, s / 10))
        scheduler = ls.CosineAnnealingLR(optimizer, 50)
        assert "never stepped" in said(preview_schedule(optimizer, scheduler, 50))
        del left

    def test_not_stepped_in_the_loop(self):
        def schedule(optimizer):
            return ls.CosineAnnealingLR(optimizer, 40)

        finding = only(preview_schedule(*in_use(schedule, 10, every=0), 40))
        assert "the optimizer has made 10 updates" in finding.what
        assert not preview_schedule(*in_use(schedule, 10), 30).findings

    def test_once_an_epoch_the_first_epoch_may_not_be_over(self):
        given = in_use(lambda o: ls.StepLR(o, 4), 10, every=0)
        plan = {"stepped": "epoch", "steps_per_epoch": 20}
        assert not preview_schedule(*given, 200, **plan).findings

    def test_of_another_optimizer(self):
        first, second = sgd(), sgd()
        preview = preview_schedule(second, ls.StepLR(first, 3), 9)
        assert "built on another optimizer" in only(preview).what
        assert set(preview.rates[0]) == {RATE}


class TestInUse:
    def test_it_goes_on_from_where_they_are(self):
        optimizer, scheduler = in_use(lambda o: ls.CosineAnnealingLR(o, 40), 10)
        preview = preview_schedule(optimizer, scheduler, steps=30)
        assert preview.rates[0][0] == optimizer.param_groups[0]["lr"]
        assert preview.rates[0][29] < 0.01 * RATE

    def test_stepped_once_an_epoch(self):
        given = in_use(lambda o: ls.CosineAnnealingLR(o, 6), 20, every=10)
        assert not preview_schedule(*given, 4).findings

    def test_stepped_at_each_micro_batch(self):
        given = in_use(lambda o: ls.CosineAnnealingLR(o, 120), 10, calls=4)
        assert "stepped 40 times in 10 updates" in said(preview_schedule(*given, 20))

    def test_a_rate_that_something_else_set(self):
        optimizer, scheduler = in_use(lambda o: ls.CosineAnnealingLR(o, 40), 10)
        optimizer.param_groups[0]["lr"] = RATE
        assert (
            "something else changed it"
            in only(preview_schedule(optimizer, scheduler, 30)).what
        )

    def test_nothing_of_them_changes(self):
        optimizer, scheduler = in_use(
            lambda o: ls.SequentialLR(
                o, [ls.LinearLR(o, 0.1, 1.0, 5), ls.CosineAnnealingLR(o, 40)], [5]
            ),
            10,
        )
        states = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
        parameters = [p.detach().clone() for p in optimizer.param_groups[0]["params"]]
        keys = set(vars(optimizer)), set(vars(scheduler))
        random = torch.get_rng_state()
        preview_schedule(optimizer, scheduler, 30)
        assert str((optimizer.state_dict(), scheduler.state_dict())) == str(states)
        for now, before in zip(
            optimizer.param_groups[0]["params"], parameters, strict=True
        ):
            assert torch.equal(now, before)
        assert (set(vars(optimizer)), set(vars(scheduler))) == keys
        assert torch.equal(torch.get_rng_state(), random)

    def test_a_make_that_gives_what_is_in_use(self):
        optimizer, scheduler = in_use(lambda o: ls.StepLR(o, 3), 1)
        preview_schedule(lambda: (optimizer, scheduler), 30)
        assert scheduler.last_epoch == 1
        assert optimizer.param_groups[0]["lr"] == RATE

    def test_a_function_that_belongs_to_a_trainer(self):
        class Trainer:
            def __init__(self):
                self.model = nn.Linear(2, 2)
                self.asked = 0
                self.held = (step for step in range(3))  # cannot be copied

            def factor(self, step):
                self.asked += 1
                return 1.0

        trainer = Trainer()
        optimizer = SGD(trainer.model.parameters(), lr=RATE)
        scheduler = ls.LambdaLR(optimizer, trainer.factor)
        asked = trainer.asked
        assert not preview_schedule(optimizer, scheduler, 10).findings
        assert trainer.asked == asked

    def test_classes_are_left_as_they_were(self):
        before = ls.LRScheduler.__init__, ls.ReduceLROnPlateau.__init__

        def failing():
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            preview_schedule(failing, 10)
        assert (ls.LRScheduler.__init__, ls.ReduceLROnPlateau.__init__) == before

    def test_it_draws_no_random_numbers_and_warns_of_nothing(self):
        def make():
            optimizer = AdamW(nn.Linear(5, 5).parameters(), lr=RATE)
            return optimizer, ls.StepLR(optimizer, 5)

        torch.manual_seed(3)
        before = torch.get_rng_state()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            preview_schedule(make, 10)
        assert torch.equal(torch.get_rng_state(), before)


class TestPlateau:
    @staticmethod
    def plateau(mode):
        return making(lambda o: ls.ReduceLROnPlateau(o, mode, patience=2))

    def test_an_accuracy_read_as_a_loss(self):
        accuracy = [0.5 + 0.02 * epoch for epoch in range(20)]
        broken = preview_schedule(self.plateau("min"), 20, metrics=accuracy)
        assert 'wrong direction: with mode="min"' in only(broken).what
        assert min(broken.rates[0]) < RATE
        fixed = preview_schedule(self.plateau("max"), 20, metrics=accuracy)
        assert not fixed.findings
        assert set(fixed.rates[0]) == {RATE}

    def test_a_loss_read_as_an_accuracy(self):
        losses = [2.0 * 0.9**epoch for epoch in range(20)]
        broken = preview_schedule(self.plateau("max"), 20, metrics=losses)
        assert "wrong direction" in only(broken).what

    def test_a_loss_that_rises_late_is_over_fitting(self):
        losses = [abs(epoch - 6) + 1.0 for epoch in range(20)]
        preview = preview_schedule(self.plateau("min"), 20, metrics=losses)
        assert not preview.findings
        assert min(preview.rates[0]) < RATE

    def test_patience_counts_calls(self):
        plan = {"stepped": "step", "steps_per_epoch": 50}
        broken = preview_schedule(self.plateau("min"), 200, **plan)
        assert "a patience of 2 counts calls" in only(broken).what
        plan["stepped"] = "epoch"
        fixed = preview_schedule(self.plateau("min"), 200, **plan)
        assert not fixed.findings
        assert "taken never to act" in fixed.notes[0]


def test_rises_of_a_saw():
    found = list(rises([1.0, 0.5, 0.1, 0.1, 1.0, 0.5, 0.2, 0.4, 0.6]))
    assert [(r.start, r.end, r.at_once) for r in found] == [(3, 4, True), (6, 8, False)]


def test_groups_of_their_own():
    def optimizer():
        groups = [{"params": [torch.zeros(1)]}, {"params": [torch.zeros(1)], "lr": 1.0}]
        return SGD(groups, lr=RATE)

    make = making(
        lambda o: ls.LambdaLR(o, [lambda s: 1.0, lambda s: max(0.0, 1 - s / 10)]),
        optimizer,
    )
    preview = preview_schedule(make, 50)
    assert only(preview).where == "learning rate of parameter group 1"
    assert preview.rates[0] == (RATE,) * 50


def test_a_rate_in_a_tensor():
    make = making(lambda o: ls.StepLR(o, 2), lambda: sgd(torch.tensor(RATE)))
    assert preview_schedule(make, 4).rates[0] == pytest.approx([0.1, 0.1, 0.01, 0.01])


def test_what_it_shows():
    preview = preview_schedule(making(lambda o: ls.CosineAnnealingLR(o, 20)), 40)
    assert repr(preview) == (
        "<SchedulePreview: CosineAnnealingLR over 40 steps, "
        "rate 0.1 first, 0.1 at most, 0.0994 last; 2 findings>"
    )
    shown = preview._repr_markdown_()
    assert "| 0 | 0.1 | 0.1 | 0 | 0.0994 |" in shown
    assert "rise after decay" in shown
    figure = preview.plot()
    assert figure.get_label() == (
        "Learning rate over 40 optimizer steps: rate 0.1 first, 0.1 at most, "
        "0.0994 last; findings are marked at step 20."
    )
    (axes,) = figure.axes
    assert list(axes.lines[0].get_ydata()) == list(preview.rates[0])


OPTIMIZER = sgd()
SCHEDULER = ls.StepLR(OPTIMIZER, 3)

REFUSED = {
    "a scheduler for the optimizer": (
        lambda: preview_schedule(SCHEDULER, 10),
        "got the scheduler StepLR",
    ),
    "both turned round": (
        lambda: preview_schedule(SCHEDULER, OPTIMIZER, 10),
        "got the scheduler StepLR",
    ),
    "no scheduler": (lambda: preview_schedule(OPTIMIZER, 10), "and no scheduler"),
    "no steps": (lambda: preview_schedule(OPTIMIZER, SCHEDULER), "got nothing"),
    "zero steps": (lambda: preview_schedule(OPTIMIZER, SCHEDULER, 0), "got 0"),
    "half a step": (lambda: preview_schedule(OPTIMIZER, SCHEDULER, 2.5), "got 2.5"),
    "a model": (lambda: preview_schedule(nn.Linear(1, 1), 10), "got Linear"),
    "nothing": (lambda: preview_schedule(None, 10), "got NoneType"),
    "an optimizer for a scheduler": (
        lambda: preview_schedule(OPTIMIZER, OPTIMIZER, 5),
        "got SGD",
    ),
    "make of a number": (lambda: preview_schedule(lambda: 3, 10), "and got int"),
    "make of three": (
        lambda: preview_schedule(lambda: (OPTIMIZER, SCHEDULER, 1), 10),
        "got tuple of 3",
    ),
    "make turned round": (
        lambda: preview_schedule(lambda: (SCHEDULER, OPTIMIZER), 10),
        "its first part is StepLR",
    ),
    "make without a scheduler": (
        lambda: preview_schedule(lambda: (OPTIMIZER, None), 10),
        "got NoneType",
    ),
    "make and a scheduler": (
        lambda: preview_schedule(lambda: (OPTIMIZER, SCHEDULER), SCHEDULER, 10),
        "followed by steps alone",
    ),
    "an unknown unit": (
        lambda: preview_schedule(OPTIMIZER, SCHEDULER, 5, stepped="week"),
        "got 'week'",
    ),
    "epochs of unknown length": (
        lambda: preview_schedule(OPTIMIZER, SCHEDULER, 5, stepped="epoch"),
        "needs steps_per_epoch",
    ),
    "metrics for nobody": (
        lambda: preview_schedule(OPTIMIZER, SCHEDULER, 5, metrics=[1.0] * 5),
        "metrics is for a ReduceLROnPlateau",
    ),
    "metrics that are no numbers": (
        lambda: preview_schedule(OPTIMIZER, SCHEDULER, 5, metrics=["a"] * 5),
        "metrics is a sequence of numbers",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_gets_one_sentence(name):
    call, match = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=match) as caught:
        call()
    text = str(caught.value)
    assert text.startswith("preview_schedule")
    assert text.endswith(".")
    assert "\n" not in text


def test_too_few_metrics():
    make = making(lambda o: ls.ReduceLROnPlateau(o))
    with pytest.raises(ValueError, match=r"5 times, and metrics has 2 values"):
        preview_schedule(make, 5, metrics=[1.0, 2.0])
