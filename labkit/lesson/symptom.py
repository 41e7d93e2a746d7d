"""Symptoms: what must be true of the broken code and must not be true of the fixed."""

import re
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from labkit.lesson.evidence import LabError, one_line, short
from labkit.lesson.guard import Runaway, guarded

MOST = sys.float_info.max
RUN_LIMIT = 60.0  # seconds a trap's code may take before it is stopped
Run = Callable[[], Any]


@dataclass(frozen=True)
class Seen:
    """What one run showed.

    `shown`: the symptom or not; None where only a comparison can tell.  `observed`: what
    came out, in one line.  `measured`: numbers, the unit in the name.  `failed`: the run
    gave nothing that could be judged, so that it is neither broken nor fixed.
    """

    shown: bool | None
    observed: str
    measured: Mapping[str, float] = field(default_factory=dict)
    failed: bool = False

    @property
    def healthy(self) -> bool:
        return self.shown is False and not self.failed


class Symptom:
    """One kind of symptom: looks at a run, and compares a broken with a fixed one."""

    kind = ""
    says = ""

    def look(self, run: Run) -> Seen:
        """Run the code once, within limits, and tell what it showed."""
        from labkit.launch.children import ending_children

        try:
            with ending_children(), guarded(seconds=RUN_LIMIT):
                return self.observe(run)
        except Runaway:
            return Seen(
                False, f"stopped: not finished after {RUN_LIMIT:g} s", failed=True
            )
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return Seen(False, one_line(error), failed=True)

    def observe(self, run: Run) -> Seen:
        raise NotImplementedError

    def judge(self, broken: Run, before: Seen, fixed: Run) -> tuple[Seen, Seen]:
        """What broken and fixed code showed, side by side."""
        return before, self.look(fixed)


@dataclass(frozen=True)
class Raises(Symptom):
    errors: tuple[type[BaseException], ...]
    match: str
    kind = "raises"

    def observe(self, run: Run) -> Seen:
        try:
            value = run()
        except self.errors as error:
            found = re.search(self.match, str(error), re.IGNORECASE)
            return Seen(bool(found), one_line(error, self.match), failed=not found)
        return Seen(False, short(value))


@dataclass(frozen=True)
class Warns(Symptom):
    category: type[Warning]
    match: str
    kind = "warns"

    def observe(self, run: Run) -> Seen:
        # Some of torch's warnings are given once per process unless asked otherwise.
        always = torch.is_warn_always_enabled()
        torch.set_warn_always(True)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                value = run()
        finally:
            torch.set_warn_always(always)
        for warning in caught:
            text = str(warning.message)
            if issubclass(warning.category, self.category) and re.search(
                self.match, text, re.IGNORECASE
            ):
                line = next(
                    x for x in text.splitlines() if re.search(self.match, x, re.I)
                )
                return Seen(True, f"{warning.category.__name__}: {line.strip()}")
        return Seen(False, short(value))


@dataclass(frozen=True)
class Silent(Symptom):
    wrong: Callable[[Any], bool]
    says: str
    kind = "silent"

    def observe(self, run: Run) -> Seen:
        value = run()
        try:
            return Seen(bool(self.wrong(value)), short(value), numbers(value))
        except Exception as error:
            why = one_line(error)
            return Seen(
                False, f"{short(value)}, which cannot be judged: {why}", failed=True
            )


@dataclass(frozen=True)
class Varies(Symptom):
    says: str
    repeats: int = 3
    seed: int | None = None
    kind = "varies"

    def observe(self, run: Run) -> Seen:
        values = []
        for _ in range(self.repeats):
            if self.seed is not None:
                torch.manual_seed(self.seed)
                np.random.seed(self.seed)
            values.append(run())
        seeded = f", each after seed {self.seed}" if self.seed is not None else ""
        alike = all(same(values[0], other) for other in values[1:])
        says = f"always {short(values[0])}" if alike else "not the same result"
        return Seen(not alike, f"{self.repeats} runs{seeded}: {says}")


@dataclass(frozen=True)
class Hangs(Symptom):
    seconds: float
    kind = "hangs"

    def look(self, run: Run) -> Seen:
        from labkit.launch.children import ending_children

        try:
            with ending_children(), guarded(seconds=self.seconds):
                value = run()
            with guarded(seconds=self.seconds):  # a repr may not end either
                return Seen(False, short(value))
        except Runaway:
            return Seen(True, f"not finished after {self.seconds:g} s")
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return Seen(False, one_line(error), failed=True)


def raises(
    errors: type[BaseException] | tuple[type[BaseException], ...], match: str
) -> Symptom:
    """The code stops with one of `errors`, and the pattern `match` is in its message.

    `errors` and `match` fit all supported torch versions, and a CPU as well as a CUDA
    build.  Another error is no symptom, and no cure either.
    """
    kinds = errors if isinstance(errors, tuple) else (errors,)
    if not kinds or not all(
        isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds
    ):
        raise LabError(f"raises: errors takes exception types; {errors!r} came")
    return Raises(kinds, pattern("raises", match))


def warns(category: type[Warning], match: str) -> Symptom:
    """The code warns with `category`, and `match` is in the text.

    Warnings that torch gives once per process are switched to every time.
    """
    if not (isinstance(category, type) and issubclass(category, Warning)):
        raise LabError(f"warns: category takes a Warning type; {category!r} came")
    return Warns(category, pattern("warns", match))


def silent(wrong: Callable[[Any], bool], says: str) -> Symptom:
    """The code runs without a word and `wrong(result)` is true.

    `says` tells in a few words what went wrong.
    """
    if not callable(wrong):
        raise LabError(f"silent: wrong takes a function of the result; {wrong!r} came")
    return Silent(wrong, says)


def varies(says: str, repeats: int = 3, seed: int | None = None) -> Symptom:
    """`repeats` runs do not all give the same result.

    With `seed`, torch and NumPy are seeded with it before every run; without, nothing is.
    """
    if not isinstance(repeats, int) or repeats < 2:
        raise LabError(f"varies: repeats is a whole number from 2; {repeats!r} came")
    return Varies(says, repeats, seed)


def hangs(seconds: float) -> Symptom:
    """The code has not finished after `seconds`; processes it started are then ended."""
    if not isinstance(seconds, int | float) or not 0 < seconds <= RUN_LIMIT:
        raise LabError(
            f"hangs: seconds is a number up to {RUN_LIMIT:g}; {seconds!r} came"
        )
    return Hangs(float(seconds))


def pattern(who: str, match: str) -> str:
    try:
        re.compile(match)
    except (re.error, TypeError):
        raise LabError(f"{who}: match takes a pattern; {match!r} came") from None
    return match


def same(one: Any, other: Any) -> bool:
    """Equal in value, for tensors, arrays and collections of them; NaN equals NaN."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape and bool(
            torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)
        )
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    return bool(one == other) or (one != one and other != other)


def numbers(value: Any) -> dict[str, float]:
    """The result as numbers for the evidence, where it is a few.

    NaN, infinities and whole numbers beyond a float are left out: the JSON of a
    notebook has no word for them.
    """
    if isinstance(value, torch.Tensor):
        if value.numel() > 8 or value.is_complex() or value.layout is not torch.strided:
            return {}
        if value.device.type == "meta":
            return {}
        value = value.detach().flatten().tolist()
    if isinstance(value, dict):
        named = {str(k): v for k, v in value.items() if isinstance(v, int | float)}
    else:
        items = value if isinstance(value, list | tuple) else [value]
        if len(items) > 8 or not all(isinstance(x, int | float) for x in items):
            return {}
        one = len(items) == 1
        named = {"value" if one else f"value_{n}": x for n, x in enumerate(items)}
    return {name: x for name, x in named.items() if -MOST <= x <= MOST}
