"""What stands for making and ending the process group, while an answer is looked at."""

import contextlib
from typing import Any
from unittest import mock

import torch.distributed as dist


class Group:
    """What stands for making and ending the process group, which is there already."""

    def __init__(self) -> None:
        self.backends: list[str | None] = []
        self.alive = False

    def begin(self, backend: Any = None, *args: Any, **kwargs: Any) -> None:
        self.backends.append(None if backend is None else str(backend))
        self.alive = True

    def end(self, group: Any = None) -> None:
        if not self.alive:
            raise ValueError("there is no process group that could be destroyed")
        self.alive = False


class Standing:
    """The group that stands in at the moment."""

    group = Group()


def standing_in() -> contextlib.ExitStack:
    """In the block, `torch.distributed` begins and ends the group that stands in."""
    stack = contextlib.ExitStack()
    names = {
        "init_process_group": lambda *x, **named: Standing.group.begin(*x, **named),
        "destroy_process_group": lambda *x, **named: Standing.group.end(*x, **named),
        "is_initialized": lambda: Standing.group.alive,
    }
    for name, value in names.items():
        stack.enter_context(mock.patch.object(dist, name, value))
    return stack
