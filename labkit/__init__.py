"""labkit: the instruments and the page pieces of the workbook."""

__version__ = "0.1.0"

import importlib
from typing import TYPE_CHECKING, Any

from labkit.chapters.index import errors
from labkit.launch.report import report
from labkit.lesson.data import data_path
from labkit.lesson.doctor import doctor
from labkit.lesson.exercise import TODO, check, hint, solution
from labkit.lesson.explore import explore
from labkit.lesson.figure import show_figure
from labkit.lesson.progress import progress
from labkit.lesson.session import setup
from labkit.lesson.trap import fix, predict, trap
from labkit.lesson.verdict import verdicts

if TYPE_CHECKING:
    from labkit.measure.memory import track_memory
    from labkit.measure.timing import compare
    from labkit.probe.gradients import gradient_report
    from labkit.probe.loaders import watch_loader
    from labkit.probe.modes import mode_report
    from labkit.probe.schedules import preview_schedule
    from labkit.probe.state import diff_state

# The instruments are loaded when they are first named: no page needs them all, and
# together they would double what `import labkit` takes.
INSTRUMENTS = {
    "compare": "labkit.measure.timing",
    "diff_state": "labkit.probe.state",
    "gradient_report": "labkit.probe.gradients",
    "mode_report": "labkit.probe.modes",
    "preview_schedule": "labkit.probe.schedules",
    "track_memory": "labkit.measure.memory",
    "watch_loader": "labkit.probe.loaders",
}

__all__ = [
    "TODO",
    "check",
    "compare",
    "data_path",
    "diff_state",
    "doctor",
    "errors",
    "explore",
    "fix",
    "gradient_report",
    "hint",
    "mode_report",
    "predict",
    "preview_schedule",
    "progress",
    "report",
    "setup",
    "show_figure",
    "solution",
    "track_memory",
    "trap",
    "verdicts",
    "watch_loader",
]


def __getattr__(name: str) -> Any:
    if name not in INSTRUMENTS:
        raise AttributeError(f"module 'labkit' has no attribute {name!r}")
    return getattr(importlib.import_module(INSTRUMENTS[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *INSTRUMENTS})
