"""What every page's source has in common: its set-up cell and its link to Colab."""

import re

import pytest
from tree import REPOSITORY, Tree

from labkit.lesson.registry import chapter_list

TREE = Tree()
SET_UP = (REPOSITORY / "tools" / "bootstrap_cell.py").read_text(encoding="utf-8")
COLAB = (
    "https://colab.research.google.com/github/pytorch-pitfall-lab/pytorch-pitfall-lab"
    "/blob/learn/notebooks/{name}.ipynb"
)


@pytest.mark.parametrize("name", TREE.names())
def test_every_page_begins_alike(name):
    source = TREE.source(name).read_text(encoding="utf-8")
    cells = re.split(r"(?m)^# %%.*\n", source)
    assert SET_UP.strip() in [cell.strip() for cell in cells]
    assert source.index(SET_UP.strip()) < source.index("lk.setup(")
    assert f"]({COLAB.format(name=name)})" in source
    chapter = int(name.split("_")[0])
    assert f"session = lk.setup({chapter}, solve=solve, version=made_with)" in source


def test_the_set_up_notes_the_version_that_is_installed():
    import labkit

    assert f'made_with = "{labkit.__version__}"' in SET_UP
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{labkit.__version__}"' in project


@pytest.mark.parametrize("name", [n for n in TREE.names() if n != "00_start"])
def test_a_star_marks_the_traps_of_the_core_route(name):
    source = TREE.source(name).read_text(encoding="utf-8")
    heading = {}
    for line in source.splitlines():
        if re.match(r"# #{2,4} ", line):
            last = line
        asked = re.search(r'lk\.predict\("([\d.]+)"', line)
        if asked:
            heading[asked.group(1)] = last
    traps = chapter_list("trap", int(name.split("_")[0]))
    assert heading.keys() == {trap.number for trap in traps}
    for trap in traps:
        assert ("★" in heading[trap.number]) == trap.core, heading[trap.number]
