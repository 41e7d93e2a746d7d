"""Answers to the exercise of part 7.1 that people really give, right and wrong."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

State = Mapping[str, Tensor]


def partial_load(
    model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    own = model.state_dict()
    fits = {n for n in own if n in state and own[n].shape == state[n].shape}
    problems = []
    for name in sorted((own.keys() | state.keys()) - fits):
        if name.startswith(tuple(allowed)):
            continue
        sides = {"model": own, "state": state}
        here = [f"{k} {tuple(s[name].shape)}" for k, s in sides.items() if name in s]
        problems.append(f"{name}: {' but '.join(here)}")
    if problems:
        raise ValueError("nothing was loaded; these do not fit: " + "; ".join(problems))
    model.load_state_dict({name: state[name] for name in fits}, strict=False)
    return sorted(fits)


def copied_by_hand(
    model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    own = model.state_dict()
    other = {
        name
        for name in {*own, *state}
        if name not in own or name not in state or own[name].shape != state[name].shape
    }
    refused = sorted(n for n in other if not any(n.startswith(a) for a in allowed))
    if refused:
        shapes = [
            [s[n].shape if n in s else None for s in (own, state)] for n in refused
        ]
        raise ValueError(str(list(zip(refused, shapes, strict=True))))
    loaded = sorted(own.keys() - other)
    with torch.no_grad():
        for name in loaded:
            own[name].copy_(state[name])  # the model's own memory
    return loaded


def unexpected_or_missing(
    own: State, state: State, allowed: Sequence[str]
) -> list[str]:
    names = own.keys() ^ state.keys()
    return sorted(n for n in names if not n.startswith(tuple(allowed)))


def other_shape(own: State, state: State, allowed: Sequence[str]) -> list[str]:
    return sorted(
        f"{n}: {tuple(own[n].shape)} and {tuple(state[n].shape)}"
        for n in own.keys() & state.keys()
        if own[n].shape != state[n].shape and not n.startswith(tuple(allowed))
    )


def fitting(own: State, state: State) -> dict[str, Tensor]:
    return {n: v for n, v in state.items() if n in own and v.shape == own[n].shape}


def filtered_only(
    model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    """Takes what fits, and says nothing about the rest."""
    fits = fitting(model.state_dict(), state)
    model.load_state_dict(fits, strict=False)
    return sorted(fits)


def strict_false(
    model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    """Looks at the names, and trusts `strict=False` with the shapes."""
    refused = unexpected_or_missing(model.state_dict(), state, allowed)
    if refused:
        raise ValueError(", ".join(refused))
    answer = model.load_state_dict(state, strict=False)
    return sorted(state.keys() - set(answer.unexpected_keys))


def shapes_dropped(
    model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    """Refuses names; another shape is left out without a word."""
    own = model.state_dict()
    refused = unexpected_or_missing(own, state, allowed)
    if refused:
        raise ValueError(", ".join(refused))
    return filtered_only(model, state)


def missing_only(
    model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    """Looks at what the model lacks, not at what is left over."""
    own = model.state_dict()
    refused = [n for n in own if n not in state and not n.startswith(tuple(allowed))]
    refused += other_shape(own, state, allowed)
    if refused:
        raise ValueError(", ".join(refused))
    return filtered_only(model, state)


def first_only(
    model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    """Stops at the first name that does not fit."""
    own = model.state_dict()
    refused = unexpected_or_missing(own, state, allowed)
    for problem in [*refused, *other_shape(own, state, allowed)]:
        raise ValueError(problem)
    return filtered_only(model, state)


def names_without_shapes(
    model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    own = model.state_dict()
    refused = unexpected_or_missing(own, state, allowed)
    refused += [text.split(":")[0] for text in other_shape(own, state, allowed)]
    if refused:
        raise ValueError(", ".join(refused))
    return filtered_only(model, state)


def loaded_first(
    model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    """Loads, and complains afterwards."""
    own = model.state_dict()
    loaded = filtered_only(model, state)
    refused = unexpected_or_missing(own, state, allowed)
    refused += other_shape(own, state, allowed)
    if refused:
        raise ValueError(", ".join(refused))
    return loaded


def checked(own: State, state: State, allowed: Sequence[str]) -> dict[str, Tensor]:
    refused = unexpected_or_missing(own, state, allowed)
    refused += other_shape(own, state, allowed)
    if refused:
        raise ValueError(", ".join(refused))
    return fitting(own, state)


def parameters_only(
    model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    """Copies the parameters, and forgets that there are buffers."""
    fits = checked(model.state_dict(), state, allowed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name in fits:
                value.copy_(fits[name])
    return sorted(fits)


def put_into_the_dict(
    model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    """Puts the tensors into the dictionary, which is not the model."""
    own = model.state_dict()
    fits = checked(own, state, allowed)
    own.update(fits)
    return sorted(fits)


def assigned(model: nn.Module, state: State, allowed: Sequence[str] = ()) -> list[str]:
    """Hands the state's tensors to the model instead of copying them."""
    fits = checked(model.state_dict(), state, allowed)
    model.load_state_dict(fits, strict=False, assign=True)
    return sorted(fits)


def anywhere_in_the_name(
    model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    """Allows a name that has the string in it, wherever."""
    own = model.state_dict()
    names = own.keys() | state.keys()
    free = tuple(n for n in names if any(a in n for a in allowed))
    fits = checked(own, state, free)
    model.load_state_dict(fits, strict=False)
    return sorted(fits)


def nothing_told(
    model: nn.Module, state: State, allowed: Sequence[str] = ()
) -> list[str]:
    """Returns what was left out."""
    own = model.state_dict()
    fits = checked(own, state, allowed)
    model.load_state_dict(fits, strict=False)
    return sorted(own.keys() - fits.keys())
