"""``%%module``: a cell's classes reach processes started in any way."""

import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page import showing

from labkit.launch import cellmodule
from labkit.launch.cellmodule import Cells, register, run_module
from labkit.lesson.evidence import LabError, shell

SQUARES = """
class Squares:
    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        return x ** {power}
"""
METHODS = multiprocessing.get_all_start_methods()


@pytest.fixture(autouse=True)
def forget_the_cells() -> Iterator[None]:
    yield
    if Cells.folder is not None:
        for path in Cells.folder.glob("*.py"):
            path.unlink()
            sys.modules.pop(path.stem, None)


def run_cell(name: str, source: str) -> tuple[str, dict[str, Any]]:
    """Run the magic in a notebook; what it said, and the page's names afterwards."""
    with showing() as page:
        register()
        shell().run_cell_magic("module", name, source)
        names = dict(shell().user_ns)
    return page.text, names


def in_child(method: str, call: Any, x: int) -> Any:
    with multiprocessing.get_context(method).Pool(1) as pool:
        return pool.apply(call, (x,))


@pytest.mark.parametrize("method", METHODS)
def test_a_class_of_a_cell_reaches_a_child_and_so_does_its_edit(method: str) -> None:
    _, names = run_cell("lab_squares", SQUARES.format(power=2))
    assert in_child(method, names["Squares"](3), 5) == 25
    # as long as before, and within the same second: compiled code must not survive
    _, names = run_cell("lab_squares", SQUARES.format(power=3))
    assert names["Squares"](3)(5) == 125
    assert in_child(method, names["Squares"](3), 5) == 125


def test_a_dataset_of_a_cell_reaches_loader_workers() -> None:
    source = """
import torch
from torch.utils.data import Dataset

class Ten(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, n):
        return torch.tensor(n)
"""
    _, names = run_cell("lab_ten", source)
    from torch.utils.data import DataLoader

    loader = DataLoader(
        names["Ten"](), batch_size=5, num_workers=1, multiprocessing_context="spawn"
    )
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_the_page_gets_the_names_and_is_told_those_of_the_cell() -> None:
    source = (
        "import json\nfrom pathlib import Path\nSIZE = 3\n_hidden = 1\n"
        "def double(x):\n    return 2 * x\n"
    )
    said, names = run_cell("lab_names", source)
    assert said == "Module `lab_names` gives this page `SIZE`, `double`."
    assert names["double"](names["SIZE"]) == 6
    assert names["json"].dumps([1]) == "[1]"
    assert names["Path"] is Path
    assert "_hidden" not in names


def test_all_is_respected() -> None:
    source = "__all__ = ['_b']\na = 1\n_b = 2\n"
    said, names = run_cell("lab_all", source)
    assert said == "Module `lab_all` gives this page `_b`."
    assert names["_b"] == 2
    assert "a" not in names


def test_a_module_without_names_says_so() -> None:
    said, _ = run_cell("lab_nothing", "1 + 1")
    assert said == "Module `lab_nothing` gives this page no name."


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "takes one name for the cell, like `%%module my_dataset`; '' came"),
        ("my dataset", "'my dataset' came"),
        ("3d", "'3d' came"),
        ("a.b", "'a.b' came"),
        ("../evil", "'../evil' came"),
        ("class", "'class' is a word of Python's own"),
        ("__cell__", "two underscores are Python's own"),
        ("torch", "'torch' is the name of an installed module"),
        ("colorsys", "'colorsys' is the name of an installed module"),
        ("labkit", "'labkit' is the name of an installed module"),
    ],
)
def test_names_that_cannot_be_used(name: str, says: str) -> None:
    before = sys.modules.get(name)
    said, _ = run_cell(name, "x = 1")
    assert says in said
    assert sys.modules.get(name) is before


def test_a_cell_that_raises_shows_its_line_and_can_be_run_again() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_module("lab_raises", "x = 1\ny = 1 / 0\n")
    last = caught.traceback[-1]
    assert (Path(last.path).name, last.lineno + 1) == ("lab_raises.py", 3)
    assert "lab_raises" not in sys.modules
    assert run_module("lab_raises", "y = 2").y == 2


def test_a_name_used_before_by_a_cell_may_be_used_again() -> None:
    assert run_module("lab_again", "SIZE = 3").SIZE == 3
    assert run_module("lab_again", "SIZE = 4").SIZE == 4
    with pytest.raises(LabError, match="installed module"):
        run_module("json", "SIZE = 4")


def test_old_objects_still_unpickle_as_the_new_class() -> None:
    _, names = run_cell("lab_pickle", SQUARES.format(power=2))
    stored = pickle.dumps(names["Squares"](3))
    run_cell("lab_pickle", SQUARES.format(power=3))
    assert pickle.loads(stored)(2) == 8


def test_register_does_nothing_outside_ipython() -> None:
    assert shell() is None
    register()


def test_the_folder_goes_with_the_process_but_not_with_its_children() -> None:
    program = """
import os, sys
from labkit.launch.cellmodule import Cells, run_module
run_module("lab_child", "SIZE = 3")
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:
        sys.exit(0)  # runs what is registered for the exit
    os.waitpid(child, 0)
assert (Cells.folder / "lab_child.py").exists()
print(Cells.folder)
"""
    root = Path(cellmodule.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    folder = Path(done.stdout.strip())
    assert folder.name.startswith("labkit-cells-")
    assert not folder.exists()
