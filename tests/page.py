"""A page for tests: what labkit shows in a notebook, caught, with its evidence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


class Page:
    """The rich outputs of the calls made inside a `showing` block."""

    def __init__(self) -> None:
        self.outputs: list[Any] = []

    @property
    def text(self) -> str:
        return "\n".join(o.data.get("text/markdown", "") for o in self.outputs)

    @property
    def records(self) -> list[dict[str, Any]]:
        return [r for o in self.outputs for r in (o.metadata or {}).get("labkit", [])]


@contextmanager
def showing() -> Iterator[Page]:
    """Run labkit calls as in a notebook; the page is filled when the block ends."""
    page = Page()
    InteractiveShell.instance()
    try:
        with capture_output() as caught:
            yield page
    finally:
        page.outputs = list(caught.outputs)
        InteractiveShell.clear_instance()
