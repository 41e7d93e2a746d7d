"""Names that differ by what a wrapper adds to them, and the line that mends them."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

# What DistributedDataParallel and DataParallel, torch.compile, activation
# checkpointing and FSDP put into a name: each holds the wrapped module under this name.
WRAPPERS = (
    "module",
    "_orig_mod",
    "_checkpoint_wrapped_module",
    "_fsdp_wrapped_module",
)


@dataclass(frozen=True)
class Renaming:
    """How a state's names become the model's.

    Attributes:
        prefix: what the names differ by.
        added: True where the state has it and the model has not.
        names: the model's name for each name of the state; other names are kept.
        fix: the line of code that does it, given `state`; "" where there is none.
    """

    prefix: str
    added: bool
    names: dict[str, str]
    fix: str


def find_renaming(expected: Iterable[str], given: Iterable[str]) -> Renaming | None:
    """Return the renaming that makes more of the given names fit, or None.

    Example:
        >>> find_renaming(["weight", "bias"], ["module.weight", "module.bias"]).fix
        "state = {k.removeprefix('module.'): v for k, v in state.items()}"
    """
    expected, given = list(expected), list(given)
    fitting = len(set(expected) & set(given))
    renaming = _by_wrappers(expected, given) or _by_prefix(expected, given)
    if renaming is None:
        return None
    renamed = {renaming.names.get(name, name) for name in given}
    return renaming if len(renamed & set(expected)) > fitting else None


def _by_wrappers(expected: list[str], given: list[str]) -> Renaming | None:
    bare_expected = {_bare(name): name for name in expected}
    bare_given = {_bare(name): name for name in given}
    # without the wrappers' parts two names may be one: then nothing is certain
    if len(bare_expected) < len(expected) or len(bare_given) < len(given):
        return None
    table = {
        name: bare_expected[bare]
        for bare, name in bare_given.items()
        if bare in bare_expected and bare_expected[bare] != name
    }
    if not table:
        return None
    there = Counter(part for name in table for part in _parts(name))
    here = Counter(part for name in table.values() for part in _parts(name))
    extra = [part for part in WRAPPERS if there[part] > here[part]]
    lacking = [part for part in WRAPPERS if there[part] < here[part]]
    parts = extra or lacking
    long, short = next(iter(table.items()))
    if not extra:
        long, short = short, long
    whole = long.endswith(short)
    prefix = long.removesuffix(short) if whole else "".join(f"{p}." for p in parts)
    for line, rename in _lines(prefix, parts, bool(extra)):
        if all(rename(name) == new for name, new in table.items()):
            return Renaming(prefix, bool(extra), table, line)
    return Renaming(prefix, bool(extra), table, "")


def _by_prefix(expected: list[str], given: list[str]) -> Renaming | None:
    for added, short, long in ((True, expected, given), (False, given, expected)):
        ends = Counter(
            name.removesuffix(end)
            for end in short[:1]
            for name in long
            if name.endswith(f".{end}")
        )
        best, most = "", 0
        for prefix in ends:
            count = len({f"{prefix}{name}" for name in short} & set(long))
            if count > most:
                best, most = prefix, count
        if most * 2 <= len(expected):
            continue
        pairs = [(f"{best}{name}", name) for name in short if best + name in set(long)]
        table = dict(pairs) if added else {name: full for full, name in pairs}
        line = _lines(best, [], added)[0][0]
        return Renaming(best, added, table, line)
    return None


def _lines(
    prefix: str, parts: list[str], added: bool
) -> list[tuple[str, Callable[[str], str]]]:
    if not added:
        line = f"state = {{{prefix!r} + k: v for k, v in state.items()}}"
        return [(line, lambda name: prefix + name)]

    def without(name: str) -> str:
        for part in parts:
            name = name.replace(f"{part}.", "")
        return name

    calls = "".join(f".replace({part + '.'!r}, '')" for part in parts)
    return [
        (
            f"state = {{k.removeprefix({prefix!r}): v for k, v in state.items()}}",
            lambda name: name.removeprefix(prefix),
        ),
        (f"state = {{k{calls}: v for k, v in state.items()}}", without),
    ]


def _parts(name: str) -> list[str]:
    return [part for part in name.split(".") if part in WRAPPERS]


def _bare(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)
