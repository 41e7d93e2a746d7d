"""Running a page: papermill, a kernel of its own, and nothing of the learner's."""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from tree import PageError, Tree

CELL_TIMEOUT_S = 120
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def run_page(
    notebook: NotebookNode,
    tree: Tree,
    parameters: Mapping[str, Any] | None = None,
    timeout_s: int = CELL_TIMEOUT_S,
) -> NotebookNode:
    """Run a notebook from its first cell to its last and return it with its outputs.

    It runs in the tree's notebook folder, under LABKIT_STRICT, with that tree's labkit
    and with a progress folder of its own.

    parameters: values for the names in the cell tagged ``parameters``.
    timeout_s: seconds that one cell may take.
    Raises PageError, which names the cell, where one fails or does not end in time.
    """
    import papermill
    from nbclient.exceptions import (
        CellExecutionError,
        CellTimeoutError,
        DeadKernelError,
    )
    from papermill.exceptions import PapermillExecutionError

    with tempfile.TemporaryDirectory(prefix="page") as folder:
        before, after = Path(folder, "in.ipynb"), Path(folder, "out.ipynb")
        nbformat.write(notebook, before)
        try:
            with (
                page_environment(tree, Path(folder, "home")),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                papermill.execute_notebook(
                    str(before),
                    str(after),
                    parameters=dict(parameters or {}),
                    cwd=str(tree.notebooks),
                    kernel_name="python3",
                    execution_timeout=timeout_s,
                    progress_bar=False,
                    log_output=False,
                    record_timing=False,
                    request_save_on_cell_execute=False,
                    config=_kernel_config(folder),
                )
        except PapermillExecutionError as error:
            trace = COLOURS.sub("", "\n".join(error.traceback)).strip()
            raise PageError(
                f"cell [{error.exec_count}] raised {error.ename}: {error.evalue}\n"
                f"{_indented(error.source)}\n{_indented(trace)}"
            ) from None
        except CellTimeoutError as error:
            raise PageError(
                f"a cell did not end within {timeout_s} s\n{_indented(str(error))}"
            ) from None
        except (CellExecutionError, DeadKernelError) as error:
            raise PageError(f"the page stopped: {error}") from None
        return nbformat.read(after, as_version=4)


@contextmanager
def page_environment(tree: Tree, home: Path) -> Iterator[None]:
    """The environment that a page is built and tested in, for a with block.

    home: the folder for the learner's progress while the block runs.
    """
    wanted = {
        "LABKIT_STRICT": "1",
        "LABKIT_HOME": str(home),
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": str(tree.root),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "TZ": "UTC",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _kernel_config(folder: str) -> Any:
    """Kernels that talk over files: over ports, two started at once may want the same.

    Windows has no such sockets for Jupyter; there the ports stay.
    """
    from traitlets.config import Config

    if os.name != "posix":
        return Config()
    return Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines()[-40:])
