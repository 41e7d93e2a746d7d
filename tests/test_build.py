"""The build: what a source becomes, which outputs survive, and what `check` sees."""

import json
import shutil
import sysconfig
from pathlib import Path

import build
import nbformat
import pytest
import volatile
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from pages import clean_outputs, copy_alt_texts, normalise_cells, read_source, scrubber
from tree import PageError, Tree, input_hashes

PAGE = """\
# %% [markdown]
# # Title

# %% tags=["parameters"] jupyter={"source_hidden": true}
solve = False

# %% [markdown]
# Text.

# %%
print("first")

# %% [markdown]
# More text.

# %% tags=["volatile"]
import time

print(f"took {time.perf_counter_ns()} ns")
"""


def make_checkout(root: Path) -> Tree:
    """A checkout with one page, two chapters and an empty labkit."""
    for number in ("02", "03"):
        chapter = root / "labkit" / "chapters" / f"ch{number}"
        chapter.mkdir(parents=True)
        (chapter / "traps.py").write_text("TRAPS = []\n")
    (root / "labkit" / "__init__.py").write_text("")
    (root / "labkit" / "chapters" / "__init__.py").write_text("")
    (root / "pyproject.toml").write_text('version = "1.2.3"\n')
    (root / "constraints.txt").write_text("# none\n")
    (root / "notebooks" / "src").mkdir(parents=True)
    (root / "notebooks" / "src" / "02_page.py").write_text(PAGE)
    return Tree(root)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A checkout whose page was never built."""
    return make_checkout(tmp_path / "checkout")


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    tree = make_checkout(tmp_path_factory.mktemp("built") / "checkout")
    assert build.build_page(tree, "02_page", timeout_s=60)
    return tree


@pytest.fixture
def built(built_once: Tree, tmp_path: Path) -> Tree:
    """A checkout with its page built, to change at will."""
    return Tree(shutil.copytree(built_once.root, tmp_path / "checkout"))


# --- from source to notebook ---


def source(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "02_page.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_tags_and_collapsed_cells_are_kept(tmp_path):
    page = read_source(source(tmp_path, PAGE))
    assert [cell.metadata for cell in page.cells if cell.cell_type == "code"] == [
        {"tags": ["parameters"], "jupyter": {"source_hidden": True}},
        {},
        {"tags": ["volatile"]},
    ]


@pytest.mark.parametrize("gap", ["", "\n"])
def test_a_commented_cell_magic_becomes_a_real_one(tmp_path, gap):
    text = (
        f"# %% [markdown]\n# # Title\n\n# %%\n{gap}# %%module shapes\nimport os\n\n"
        "# %time is a comment here\n# !important\n\n\ndef f():\n    return os.sep\n\n\n"
        '# %% tags=["volatile"]\n# %%torchrun --nproc 2\nprint(1)\n'
    )
    module, ranks = read_source(source(tmp_path, text)).cells[1:]
    assert module.source == (
        "%%module shapes\nimport os\n\n# %time is a comment here\n# !important\n\n\n"
        "def f():\n    return os.sep"
    )
    assert ranks.source == "%%torchrun --nproc 2\nprint(1)"
    assert ranks.metadata == {"tags": ["volatile"]}


@pytest.mark.parametrize(
    "text",
    [
        "# %%\nx = 1\n# %%module shapes\ny = 2\n",  # would be a comment
        "# %% [markdown]\n# Text.\n# %%module shapes\n",  # would be text
    ],
)
def test_a_cell_magic_elsewhere_is_refused(tmp_path, text):
    with pytest.raises(PageError, match="line"):
        read_source(source(tmp_path, text))


def test_ids_stay_when_a_cell_is_inserted(tmp_path):
    before = read_source(source(tmp_path, PAGE))
    more = PAGE.replace("# %%\nprint", "# %%\nx = 1\n\n# %%\nx = 1\n\n# %%\nprint")
    after = read_source(source(tmp_path, more))
    ids = [cell["id"] for cell in after.cells]
    assert len(set(ids)) == len(ids) == len(before.cells) + 2
    assert set(ids) > {cell["id"] for cell in before.cells}


def test_outputs_lose_what_belongs_to_one_machine(tmp_path):
    alt = f"a line in {tmp_path}"
    page = new_notebook(cells=[new_code_cell("x")], metadata={"widgets": {"state": 1}})
    page.cells[0].metadata["execution"] = {"iopub.execute_input": "2026"}
    page.cells[0].outputs = [
        new_output("stream", text="one "),
        new_output("stream", text=f"two {tmp_path}/labkit/a.py <f at 0x7f12ab34cd56>"),
        new_output("display_data", {"application/vnd.jupyter.widget-view+json": {}}),
        new_output(
            "display_data",
            {"image/png": "AAAA", "text/plain": f"in {Path.home()}/x"},
            metadata={
                "image/png": {"alt": alt, "width": 3},
                "labkit": [{"observed": f"{tmp_path}/x"}],
                "other": 1,
            },
        ),
    ]
    normalise_cells(page)
    clean_outputs(page, tmp_path)
    copy_alt_texts(page)
    stream, figure = page.cells[0].outputs
    assert stream.text == "one two <repo>/labkit/a.py <f at 0x7f0000000000>"
    assert figure.data["text/plain"] == "in ~/x"
    assert figure.metadata == {
        "image/png": {"alt": "a line in <repo>"},
        "labkit": [{"observed": "<repo>/x"}],
    }
    assert page.cells[0].metadata == {"mystnb": {"image": {"alt": "a line in <repo>"}}}
    assert "widgets" not in page.metadata


def test_scrubbing_leaves_other_folders_alone(tmp_path):
    scrub = scrubber(tmp_path)
    assert scrub(f"{tmp_path}-other/x") != "<repo>-other/x"
    assert scrub({"a": [3, f"{tmp_path}/x", None]}) == {"a": [3, "<repo>/x", None]}


def test_scrubbed_paths_do_not_tell_where_the_packages_lie(tmp_path):
    packages = sysconfig.get_path("purelib")
    inside = Path(packages).parents[2]  # as where .venv lies in the repository
    for root in (tmp_path, inside):
        said = scrubber(root)(f'File "{packages}/torch/x.py", line 3')
        assert said == 'File "<site-packages>/torch/x.py", line 3'


# --- which stored outputs survive ---


def page_with(*outputs: NotebookNode, tags=("volatile",), source="go()", first="a"):
    """A page of two cells; the second one has the outputs."""
    cells = [new_code_cell(first), new_code_cell(source, outputs=list(outputs))]
    cells[1].metadata["tags"] = list(tags)
    page = new_notebook(cells=cells)
    normalise_cells(page)
    return page


def text(value: str, **record) -> NotebookNode:
    metadata = {"labkit": [record]} if record else {}
    return new_output("display_data", {"text/markdown": value}, metadata=metadata)


def figure(alt: str, png: str) -> NotebookNode:
    metadata = {"image/png": {"alt": alt}} if alt else {}
    return new_output("display_data", {"image/png": png}, metadata=metadata)


KEPT = {
    "digits": (text("12.5 ms, 3 runs"), text("9.75 ms, 3 runs")),
    "measured values": (
        text("slow", trap="2.1-x", shown=True, measured={"s": 1}, observed="2 s"),
        text("slow", trap="2.1-x", shown=True, measured={"s": 2}, observed="3.5 s"),
    ),
    "a figure whose text differs in digits": (
        figure("a bar 3.5 long", "AAAA"),
        figure("a bar 12 long", "BBBB"),
    ),
    "widths of columns": (text("x   9.5 y"), text("x  10.5 y")),
    "the clock that counted": (
        text("3 runs, wall time"),
        text("3 runs, processor time"),
    ),
}
REPLACED = {
    "words": (text("12 ms, slower"), text("12 ms, faster")),
    "a unit": (text("950 µs"), text("1.1 ms")),
    "a judgement": (text("x", shown=True), text("x", shown=None)),
    "a version": (text("x", torch="2.12.0"), text("x", torch="2.13.0")),
    "what was observed": (text("x", observed="one"), text("x", observed="two")),
    "a figure's text": (figure("a rising line", "AA"), figure("a falling line", "AA")),
    "a figure without text": (figure("", "AAAA"), figure("", "BBBB")),
    "kinds": (text("12"), new_output("stream", text="12")),
}


@pytest.mark.parametrize(("old", "new"), KEPT.values(), ids=KEPT)
def test_a_volatile_cell_keeps_its_outputs_if_only_numbers_differ(old, new):
    page = page_with(new)
    volatile.keep_outputs(page, page_with(old))
    assert page.cells[1].outputs == [old] != [new]


@pytest.mark.parametrize(("old", "new"), REPLACED.values(), ids=REPLACED)
def test_a_volatile_cell_that_says_something_else_gets_its_new_outputs(old, new):
    page = page_with(new)
    volatile.keep_outputs(page, page_with(old))
    assert page.cells[1].outputs == [new] != [old]


@pytest.mark.parametrize(
    "change",
    [
        {"tags": ()},
        {"source": "go(1)"},
        {"first": "b"},
        {"tags": ("volatile", "nbval-ignore-output")},
    ],
    ids=["not volatile", "own source", "earlier source", "own tags"],
)
def test_a_number_never_survives_a_change_above_it(change):
    old, new = KEPT["digits"]
    page = page_with(new, **change)
    volatile.keep_outputs(page, page_with(old))
    assert page.cells[1].outputs == [new]


def test_one_more_output_replaces_all():
    old, new = KEPT["digits"]
    page = page_with(new, new)
    volatile.keep_outputs(page, page_with(old))
    assert page.cells[1].outputs == [new, new]


def stored_time(tree: Tree) -> str:
    page = nbformat.read(tree.notebook("02_page"), 4)
    return page.cells[5].outputs[0].text


def test_an_unchanged_tree_gives_the_same_bytes(built):
    before = built.notebook("02_page").read_bytes()
    assert not build.build_page(built, "02_page", timeout_s=60)
    assert built.notebook("02_page").read_bytes() == before
    assert b"1.2.3" in before


def test_stored_numbers_go_when_the_chapter_changes(built):
    before = stored_time(built)
    (built.chapter("02_page") / "traps.py").write_text("TRAPS = [1]\n")
    assert build.build_page(built, "02_page", timeout_s=60)
    assert stored_time(built) != before


def test_stored_numbers_stay_when_text_below_is_added(built):
    before = stored_time(built)
    with built.source("02_page").open("a") as file:
        file.write("\n# %% [markdown]\n# The end.\n")
    assert build.build_page(built, "02_page", timeout_s=60)
    assert stored_time(built) == before


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ("labkit/__init__.py", False),
        ("labkit/chapters/ch02/traps.py", False),
        ("constraints.txt", False),
        ("labkit/chapters/ch03/traps.py", True),
        ("labkit/__pycache__/x.pyc", True),
    ],
)
def test_what_stored_numbers_depend_on(tree, changed, same):
    before = input_hashes(tree, "02_page")
    path = tree.root / changed
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write("# changed\n")
    assert build.same_inputs(input_hashes(tree, "02_page"), before) is same


def test_windows_line_ends_are_no_change(tree):
    before = input_hashes(tree, "02_page")
    path = tree.source("02_page")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert input_hashes(tree, "02_page") == before


def test_a_page_that_fails_is_not_stored(built, capsys):
    before = built.notebook("02_page").read_bytes()
    path = built.source("02_page")
    path.write_text(PAGE.replace('print("first")', "1 / 0"))
    assert build.build(built, ["02_page"], jobs=1, timeout_s=60) == 1
    said = capsys.readouterr().out
    assert "FAILED" in said
    assert "ZeroDivisionError" in said
    assert built.notebook("02_page").read_bytes() == before


def test_other_versions_than_the_pinned_ones_are_refused(tree, capsys):
    (tree.root / "constraints.txt").write_text("numpy==1.0.0\nno-such-package==1\n")
    assert build.main(["--root", str(tree.root), "build"]) == 1
    assert "numpy" in capsys.readouterr().out
    assert not tree.notebook("02_page").exists()


# --- check ---


def test_an_up_to_date_page_passes(built, capsys):
    assert build.main(["--root", str(built.root), "check"]) == 0
    assert "1 pages are up to date" in capsys.readouterr().out


def append(path: Path) -> None:
    path.write_text(path.read_text() + "# changed\n")


def edit(tree: Tree, change) -> None:
    page = json.loads(tree.notebook("02_page").read_text())
    change(page)
    tree.notebook("02_page").write_text(json.dumps(page))


STALE = {
    "the page's source has changed": lambda t: append(t.source("02_page")),
    "its chapter folder has changed": lambda t: append(
        t.chapter("02_page") / "traps.py"
    ),
    "labkit has changed": lambda t: append(t.root / "labkit" / "__init__.py"),
    "constraints.txt has changed": lambda t: append(t.root / "constraints.txt"),
    "cell 4 of 02_page.ipynb was not executed": lambda t: edit(
        t, lambda page: page["cells"][3].update(execution_count=None)
    ),
    "edited by hand": lambda t: edit(
        t, lambda page: page["cells"][2].update(source="Other text.")
    ),
    "02_page.ipynb is missing": lambda t: t.notebook("02_page").unlink(),
    "09_other.ipynb has no source": lambda t: shutil.copy(
        t.notebook("02_page"), t.notebook("09_other")
    ),
}


@pytest.mark.parametrize(("says", "change"), STALE.items(), ids=STALE)
def test_check_reports(built, capsys, says, change):
    change(built)
    assert build.main(["--root", str(built.root), "check"]) == 1
    said = capsys.readouterr().out
    assert says in said
    # one problem, and what to do about it
    assert len(said.splitlines()) == 2


def test_an_unknown_page_is_named(tree, capsys):
    assert build.main(["--root", str(tree.root), "check", "04"]) == 1
    assert "'04'" in capsys.readouterr().out
