"""Two small language models and what really happens when one's state meets the other."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

SAME, MODULE, RENAMED = "the same model", "wrapped: module.", "renamed: out → head"
NO_NORM, WIDER, WORDS = "no norm layer", "wider: 12 for 8", "more words: 24 for 20"
ONCE = "tied, saved once"
SAVED = (SAME, MODULE, RENAMED, NO_NORM, WIDER, WORDS, ONCE)
PLAIN, TIED = "plain", "tied: out is embed"
NOTHING, STRIP, DROP = "nothing", "strip module.", "drop other shapes"
FIRST = (NOTHING, STRIP, DROP)

LOADED, DROPPED, UNEXPECTED, SHAPE = "loaded", "dropped", "unexpected", "other shape"
KEPT, THROUGH, OVERWRITTEN = "as it was", "by embed.weight", "overwritten"


@dataclass(frozen=True)
class Key:
    """One name on either side, its shape, and what became of it."""

    name: str
    shape: tuple[int, ...]
    fate: str


@dataclass(frozen=True)
class Outcome:
    """What a load did: both lists of names, and the complaints (none: it returned)."""

    saved: list[Key]
    model: list[Key]
    complaints: list[str]

    @property
    def good(self) -> int:
        """How many of the model's tensors hold what the checkpoint has for them."""
        return sum(key.fate in (LOADED, THROUGH) for key in self.model)


class LanguageModel(nn.Module):
    """Four layers whose tensors all differ, from each other and from another seed's."""

    def __init__(self, seed: int, width: int = 8, words: int = 20) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.body = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, words, bias=False)
        seeded = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for tensor in self.parameters():
                tensor.normal_(generator=seeded)


def checkpoint(saved: str) -> dict[str, Tensor]:
    """The state that was saved, by one of SAVED."""
    sizes = {WIDER: {"width": 12}, WORDS: {"words": 24}}.get(saved, {})
    state = dict(LanguageModel(1, **sizes).state_dict())
    if saved == MODULE:
        return {f"module.{name}": value for name, value in state.items()}
    if saved == RENAMED:
        return {name.replace("out.", "head."): value for name, value in state.items()}
    if saved == NO_NORM:
        return {n: value for n, value in state.items() if not n.startswith("norm.")}
    if saved == ONCE:
        del state["out.weight"]
    return state


def loaded(saved: str, model: str, first: str, strict: bool) -> Outcome:
    """Load the checkpoint `saved` into `model` and look at every tensor.

    `saved` is one of SAVED, `model` PLAIN or TIED; `first` is what is done to the state
    before, one of FIRST; `strict` is handed on.
    """
    into = LanguageModel(2)
    if model == TIED:
        into.out.weight = into.embed.weight
    before = {name: value.clone() for name, value in into.state_dict().items()}
    state = checkpoint(saved)
    if first == STRIP:
        state = {n.removeprefix("module."): value for n, value in state.items()}
    dropped = {
        name
        for name, value in state.items()
        if first == DROP and name in before and value.shape != before[name].shape
    }
    handed = {name: value for name, value in state.items() if name not in dropped}
    raised = False
    try:
        into.load_state_dict(handed, strict=strict)
    except RuntimeError:
        raised = True
    after = into.state_dict()
    given = [
        Key(name, tuple(value.shape), fate_of_saved(name, value, before, dropped))
        for name, value in state.items()
    ]
    held = [
        Key(name, tuple(value.shape), fate_of_model(name, value, before, handed))
        for name, value in after.items()
    ]
    return Outcome(given, held, complaints(before, handed) if raised else [])


def fate_of_saved(
    name: str, value: Tensor, before: dict[str, Tensor], dropped: set[str]
) -> str:
    if name in dropped:
        return DROPPED
    if name not in before:
        return UNEXPECTED
    return LOADED if value.shape == before[name].shape else SHAPE


def fate_of_model(
    name: str, after: Tensor, before: dict[str, Tensor], handed: dict[str, Tensor]
) -> str:
    """Judged by the values that the tensor holds now."""
    if name in handed and torch.equal(after, handed[name]):
        return LOADED
    if torch.equal(after, before[name]):
        return SHAPE if name in handed else KEPT
    return OVERWRITTEN if name in handed else THROUGH


def complaints(before: dict[str, Tensor], handed: dict[str, Tensor]) -> list[str]:
    """What the error is about, counted."""
    missing = len(before.keys() - handed.keys())
    unexpected = len(handed.keys() - before.keys())
    shapes = sum(before[n].shape != handed[n].shape for n in before.keys() & handed)
    counted = {"missing": missing, "unexpected": unexpected, "of another shape": shapes}
    return [f"{count} {what}" for what, count in counted.items() if count]
