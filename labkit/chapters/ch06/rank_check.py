"""A learner's function on real ranks: the page's side of the exercises of part 6.2.

The function stands in a ``%%module`` cell, so that the ranks can import it.
"""

import re
import sys
import weakref
from types import FunctionType
from typing import Any

from labkit.chapters.ch06.rank_side import UNMATCHED
from labkit.launch.rank_run import launch
from labkit.lesson.answer import NotAttempted
from labkit.lesson.evidence import code

NPROC, PATIENCE = 2, 90.0  # ranks, seconds

Noted = tuple[dict[str, Any], ...]
"""What each rank noted about one answer."""

# One launch an answer, however many tests ask; a cell that is run anew makes a new one.
_known: "weakref.WeakKeyDictionary[FunctionType, Noted]" = weakref.WeakKeyDictionary()


def noted(answer: Any, bench: str) -> Noted:
    """What each rank noted when the module `bench` ran the answer there.

    The first call launches the ranks.  AssertionError where the answer cannot be brought
    to them, where it raised, and where the launch did not come to its end; NotAttempted
    for a stub.
    """
    assert isinstance(answer, FunctionType), (
        f"a function is expected that is written with `def`, and a "
        f"`{type(answer).__name__}` came"
    )
    if "TODO" in answer.__code__.co_names:
        raise NotAttempted
    home = answer.__module__
    assert home != "__main__", (
        f"the ranks are processes of their own and cannot import `{answer.__name__}`: "
        "leave its `%%module` line at the top of the cell"
    )
    if answer not in _known:
        run_on_ranks(answer, home, bench)
    found = _known[answer]
    errors = {rank: v["error"] for rank, v in enumerate(found) if v["error"]}
    # a rank that waits for one that has raised is not the cause
    for rank, error in sorted(errors.items(), key=lambda item: UNMATCHED in item[1]):
        raise AssertionError(f"rank {rank} raised {error}")
    return found


def run_on_ranks(answer: FunctionType, home: str, bench: str) -> None:
    """Launch the ranks for this answer, and remember what they noted."""
    # Known answers share a launch: else their tests would start fifty processes.
    together = getattr(sys.modules[home], "TOGETHER", ())
    answers = list(together) if answer in together else [answer]
    names = [one.__name__ for one in answers]
    script = f"from {bench} import run\n\nrun({home!r}, {names!r})\n"
    ranks = launch(script, nproc=NPROC, timeout=PATIENCE)
    for one in answers:
        seen = tuple(values.get(one.__name__, {}) for values in ranks)
        if all(seen) or any(values.get("error") for values in seen):
            nothing = {"error": ""}
            _known[one] = tuple(values or nothing for values in seen)
    if answer not in _known:
        why = re.sub(r"^\[rank\d+\]:\s*", "", ranks.problem) or "nothing was reported"
        cause = ""
        if "not finished" in why or any("collective mis" in x for x in ranks.output):
            cause = f". The usual cause is {UNMATCHED}"
        raise AssertionError(f"the launch did not come to its end: {code(why)}{cause}")
