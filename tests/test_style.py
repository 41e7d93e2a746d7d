"""The code's own rules: ruff, mypy, who may import whom, and what an import costs."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tree import REPOSITORY

LABKIT = REPOSITORY / "labkit"
FOLDERS = ("labkit", "tools", "tests", "benchmarks", "notebooks/src", "conftest.py")
# What measure and probe may import: they are used in scripts, and next to any notebook.
LIGHT = {"torch", "numpy", "labkit"} | sys.stdlib_module_names
# What a chapter may import: never another chapter, nor the package as a whole.
BELOW = ("launch", "lesson", "measure", "probe")
HEAVY = ("IPython", "matplotlib", "ipywidgets", "PIL")


def run(*command: str) -> str:
    """What a command says; it fails the test where the command fails."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def existing() -> list[str]:
    return [name for name in FOLDERS if (REPOSITORY / name).exists()]


def test_ruff_finds_nothing():
    run("-m", "ruff", "check", "--no-cache", *existing())


def test_code_is_formatted():
    run("-m", "ruff", "format", "--no-cache", "--check", *existing())


def test_mypy_finds_nothing():
    said = run("-m", "mypy")
    assert "Success: no issues found" in said


def imports(path: Path, everywhere: bool = True) -> Iterator[str]:
    """The modules that a file imports; only at its top level where asked for that."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield node.module or ""


def files(*folders: str) -> list[Path]:
    return sorted(
        path for folder in folders for path in (LABKIT / folder).rglob("*.py")
    )


@pytest.mark.parametrize("path", files("measure", "probe"), ids=lambda p: p.name)
def test_lower_layers_do_not_know_the_upper_ones(path):
    above = [
        name
        for name in imports(path)
        if name.startswith(("labkit.lesson", "labkit.chapters"))
    ]
    assert not above


@pytest.mark.parametrize("path", files("measure", "probe"), ids=lambda p: p.name)
def test_instruments_need_torch_and_numpy_only(path):
    first = {name.partition(".")[0] for name in imports(path, everywhere=False)}
    assert first <= LIGHT


@pytest.mark.parametrize("path", files(""), ids=lambda p: p.name)
def test_chapters_are_found_by_number(path):
    if path.is_relative_to(LABKIT / "chapters"):
        own = f"labkit.chapters.{path.parent.name}"
        allowed = (own, *(f"labkit.{name}" for name in BELOW))
        named = [n for n in imports(path) if n.startswith("labkit.")]
        assert all(name.startswith(allowed) for name in named), named
    else:
        assert not [n for n in imports(path) if n.startswith("labkit.chapters.ch")]


def test_importing_labkit_brings_in_little():
    said = run(
        "-c",
        "import sys, numpy, torch\n"
        "before = set(sys.modules)\n"
        "import labkit\n"
        "print(*sorted(set(sys.modules) - before), sep='\\n')",
    )
    added = said.split()
    # torch may have brought one of these itself: only what labkit adds counts
    assert not [n for n in added if n.partition(".")[0] in HEAVY]
    own = [name for name in added if name.partition(".")[0] == "labkit"]
    assert "labkit" in own
    assert not [name for name in own if name.startswith("labkit.chapters.ch")]
    # a standard-library module costs a millisecond or so: the count is the budget
    assert len(added) - len(own) <= 40, added
