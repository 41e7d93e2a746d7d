"""What the exercise of part 7.1 is tested with: models, their states, and refusals."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from labkit.lesson.exercise import given

Answer = Callable[..., Any]
State = dict[str, Tensor]


class Model(nn.Module):
    """A body with a BatchNorm layer, a head, and a name that has "head" inside."""

    def __init__(self, seed: int, classes: int = 3, width: int = 4) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, width), nn.BatchNorm1d(width))
        self.forehead = nn.Linear(width, width)
        self.head = nn.Linear(width, classes)
        seeded = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for value in self.state_dict().values():
                if value.is_floating_point():
                    value.normal_(generator=seeded)
                else:
                    value.fill_(seed)


def saved(seed: int = 1, **sizes: int) -> State:
    """The state of another model, in memory of its own."""
    return {name: v.clone() for name, v in Model(seed, **sizes).state_dict().items()}


def copied(model: nn.Module) -> State:
    return {name: value.clone() for name, value in model.state_dict().items()}


def load(
    answer: Answer, model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    """What the answer returns; that it raises where it should not is a failed test."""
    try:
        got = given(answer, model, state, allowed)
    except (RuntimeError, ValueError) as error:
        why = " ".join(str(error).split())[:90]
        hint = ""
        if "size mismatch" in why:
            hint = ": `strict=False` excuses names, and never another shape"
        raise AssertionError(
            f"all of this fits or is allowed, and {type(error).__name__} came{hint} ({why})"
        ) from None
    assert isinstance(got, list | tuple), (
        f"the names of what was loaded are asked for; {type(got).__name__} came"
    )
    return list(got)


def refusal(
    answer: Answer, model: nn.Module, state: State, allowed: Sequence[str], why: str
) -> str:
    """The message of the ValueError that must come."""
    try:
        given(answer, model, state, allowed)
    except ValueError as error:
        return str(error)
    except RuntimeError as error:
        first = str(error).split("\n")[0]
        raise AssertionError(
            f"a ValueError is asked for, before anything is copied; {why}, and torch's "
            f"own RuntimeError came: {first}"
        ) from None
    raise AssertionError(f"{why}, and no ValueError came")


def check_values(
    model: nn.Module, expected: Mapping[str, Tensor], names: Sequence[str], why: str
) -> None:
    now = model.state_dict()
    for name in names:
        assert torch.equal(now[name], expected[name]), f"`{name}` {why}"
