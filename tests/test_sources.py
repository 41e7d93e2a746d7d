"""What every page's source has in common: its set-up cell and its link to Colab."""

import re

import pytest
from tree import REPOSITORY, Tree

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
