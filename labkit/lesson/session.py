"""The first call of every page, and what the page's calls share."""

import platform
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from labkit.lesson.evidence import LabError, page_call, say, short

BUDGETS = ("quick", "full")


@dataclass(frozen=True)
class Session:
    """What the calls of one page share: `device`, `seed`, `budget`, and whether to solve.

    `notes` is the page's memory, by topic: traps that ran, hints that were given.
    """

    chapter: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    seed: int = 0
    budget: str = "quick"
    solve: bool = False
    notes: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)

    def note(self, topic: str) -> dict[str, Any]:
        """The page's memory for one topic, a dict that lives as long as the session."""
        return self.notes.setdefault(topic, {})


_session = Session()


def current() -> Session:
    """The session that the page's `setup` started, or one with defaults."""
    return _session


@page_call
def setup(
    chapter: int,
    seed: int = 0,
    device: str | torch.device = "auto",
    budget: str = "quick",
    solve: bool = False,
    version: str | None = None,
) -> Session:
    """Start a page: seed, one thread, figure style, and the environment in one line.

    `chapter` is the page's number, `seed` goes to random, NumPy and torch, `device` is
    "auto" (the accelerator where there is one) or a name torch knows, `budget` is
    "quick" or "full" (long sweeps), `solve` runs the reference answers instead of the
    learner's, `version` is the labkit version that the page was made with.  One thread,
    so that sums come out the same on every machine.

    >>> session = setup(2)
    """
    global _session
    if not isinstance(chapter, int) or isinstance(chapter, bool) or chapter < 0:
        raise LabError(
            f"setup: chapter is the page's number, like 2; {short(chapter)} came"
        )
    if not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise LabError(
            f"setup: seed is a whole number from 0 to {2**32 - 1}; {short(seed)} came"
        )
    if budget not in BUDGETS:
        raise LabError(f"setup: budget is 'quick' or 'full'; {short(budget)} came")
    _session = Session(chapter, pick_device(device), seed, budget, bool(solve))
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    style_figures()
    register_magics()
    clear_up()
    say(environment(_session) + stale(version))
    return _session


def pick_device(device: str | torch.device) -> torch.device:
    """The device meant by "auto" or by a name, if it can be used here.

    torch.accelerator is asked whether one is available first: a CUDA build without a
    GPU still names "cuda" as its accelerator (2.14), or raises (2.6).
    """
    if device == "auto":
        if torch.accelerator.is_available():
            found = torch.accelerator.current_accelerator()
            return found if found is not None else torch.device("cpu")
        return torch.device("cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except Exception as error:
        raise LabError(
            f"setup: device is 'auto' or a device that works here; {short(device)} came, "
            f"and torch says: {str(error).splitlines()[0]}"
        ) from None
    return chosen


def environment(session: Session) -> str:
    """The environment in one line of Markdown."""
    return (
        f"Python {platform.python_version()} · torch {torch.__version__} · "
        f"NumPy {np.__version__} · device `{session.device}` · "
        f"{torch.get_num_threads()} thread · seed {session.seed} · {session.budget}"
    )


def stale(version: str | None) -> str:
    """A sentence where the page was made with another labkit than the one that runs."""
    from labkit import __version__

    if version is None or version == __version__:
        return ""
    return (
        f"  \nThis page was made with labkit {version}, and {__version__} is installed: "
        "`python -m labkit start` says which pages have changed."
    )


def style_figures() -> None:
    """White figures with readable text, so that they also read on dark themes."""
    import sys

    if "matplotlib" in sys.modules or "ipykernel" in sys.modules:
        try:
            import matplotlib as mpl
        except ImportError:  # the page goes on; each picture says that it is missing
            return
        mpl.rcParams.update(STYLE)  # type: ignore[arg-type]


STYLE = {
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "figure.figsize": (6.4, 3.6),
    "figure.dpi": 100,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
}


def register_magics() -> None:
    """Make %%module and %%torchrun known where the page runs in IPython."""
    from labkit.launch import cellmodule, ranks

    cellmodule.register()
    ranks.register()


def clear_up() -> None:
    """Remove what killed pages have left, and let this one leave less."""
    from labkit.launch import folders

    folders.remove_stale()
    folders.keep_sockets_here()
    folders.clear_at_sigterm()
