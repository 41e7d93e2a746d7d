"""Sources to stored pages, and whether the stored ones are up to date.

python tools/build.py build [-j 2] [names]    run the pages and write notebooks/
python tools/build.py check [names]           run nothing, compare hashes
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from importlib import metadata
from pathlib import Path

from tree import INPUTS, PageError, Tree, input_hashes, page_hash


def build_page(tree: Tree, name: str, timeout_s: int) -> bool:
    """Run one page and write it; say whether the file changed.

    Raises PageError where the page cannot be read or does not run to its end; the file
    is then left as it was.
    """
    # here and not above: `check` needs none of it and answers four times as fast
    from execute import run_page
    from pages import (
        clean_outputs,
        copy_alt_texts,
        dump,
        load,
        normalise_cells,
        read_source,
    )
    from volatile import keep_outputs

    hashes = input_hashes(tree, name)
    page = run_page(read_source(tree.source(name)), tree, timeout_s=timeout_s)
    normalise_cells(page)
    clean_outputs(page, tree.root)
    target = tree.notebook(name)
    before = target.read_text(encoding="utf-8") if target.exists() else None
    if before is not None:
        old = load(target)
        if same_inputs(hashes, old.metadata.get("labkit", {})):
            keep_outputs(page, old)
    copy_alt_texts(page)
    page.metadata["labkit"] = {
        **hashes,
        "page": name,
        "page_sha256": page_hash(page.cells),
        "version": version(tree),
    }
    text = dump(page)
    if text == before:
        return False
    target.write_text(text, encoding="utf-8", newline="\n")
    return True


def same_inputs(hashes: dict[str, str], stored: dict[str, str]) -> bool:
    """Whether a page's chapter, labkit and constraints are those it was built from.

    The source is not asked: how far into the page it is unchanged is seen cell by cell.
    """
    names = set(INPUTS) - {"source_sha256"}
    return all(hashes[name] == stored.get(name) for name in names)


def version(tree: Tree) -> str:
    """The version of labkit in a tree."""
    text = (tree.root / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(r'^version = "(.+)"$', text, re.MULTILINE)
    if match is None:
        raise PageError('pyproject.toml has no line `version = "…"`')
    return match.group(1)


def check_page(tree: Tree, name: str) -> list[str]:
    """What is out of date in a stored page, a sentence each; nothing is run."""
    target = tree.notebook(name)
    if not target.exists():
        return [f"{target.name} is missing"]
    page = json.loads(target.read_text(encoding="utf-8"))
    stored = page["metadata"].get("labkit", {})
    hashes = input_hashes(tree, name)
    problems = [
        f"{what} has changed since {target.name} was built"
        for key, what in INPUTS.items()
        if hashes[key] != stored.get(key)
    ]
    if page_hash(page["cells"]) != stored.get("page_sha256"):
        problems.append(
            f"{target.name} was edited by hand: its source is src/{name}.py"
        )
    for number, cell in enumerate(page["cells"], start=1):
        if (
            cell["cell_type"] == "code"
            and "".join(cell["source"]).strip()
            and cell["execution_count"] is None
        ):
            problems.append(f"cell {number} of {target.name} was not executed")
    return problems


def wrong_versions(tree: Tree) -> list[str]:
    """The installed packages that differ from constraints.txt.

    Stored outputs are those of the pinned set: built with another, they would differ.
    """
    wrong = []
    for line in (
        (tree.root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    ):
        name, pinned, wanted = line.partition("==")
        if not pinned:
            continue
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # needed on another system, or by another tool
        if found.partition("+")[0] != wanted:
            wrong.append(f"{name} {found} is installed, constraints.txt has {wanted}")
    return wrong


def build(tree: Tree, names: list[str], jobs: int, timeout_s: int) -> int:
    """Build pages, some at a time, and say how each went; return how many failed."""
    wrong = wrong_versions(tree)
    if wrong:
        print("Pages are built with the pinned packages only:", *wrong, sep="\n  ")
        return len(wrong)
    failed = 0
    started = time.perf_counter()
    with ProcessPoolExecutor(jobs) as pool:
        futures: dict[Future[bool], str] = {
            pool.submit(build_page, tree, name, timeout_s): name for name in names
        }
        for future in as_completed(futures):
            name = futures[future]
            try:
                outcome = "changed" if future.result() else "same"
            except PageError as error:
                failed += 1
                outcome = f"FAILED: {error}"
            print(f"{name:20} {time.perf_counter() - started:6.1f} s  {outcome}")
    return failed


def check(tree: Tree, names: list[str]) -> int:
    """Check pages against their sources and print what is wrong; return how many."""
    problems = [problem for name in names for problem in check_page(tree, name)]
    orphans = {path.stem for path in tree.notebooks.glob("*.ipynb")} - set(tree.names())
    problems += [f"{name}.ipynb has no source in src/" for name in sorted(orphans)]
    if problems:
        print(*problems, sep="\n")
        print("Build the pages: python tools/build.py build")
    else:
        print(f"{len(names)} pages are up to date.")
    return len(problems)


def main(arguments: list[str] | None = None) -> int:
    """The command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--root", type=Path, help="another checkout (default: this one)"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="run the pages and write notebooks/")
    checking = commands.add_parser("check", help="compare hashes, run nothing")
    for command in (building, checking):
        command.add_argument(
            "names", nargs="*", help="as 02_tensors or 02; all if none"
        )
    building.add_argument("-j", "--jobs", type=int, default=2, help="pages at a time")
    building.add_argument(
        "--timeout", type=int, default=120, help="seconds that one cell may take"
    )
    chosen = parser.parse_args(arguments)
    tree = Tree(chosen.root.resolve()) if chosen.root else Tree()
    try:
        names = _selected(tree, chosen.names)
        if chosen.command == "check":
            return 1 if check(tree, names) else 0
        return 1 if build(tree, names, chosen.jobs, chosen.timeout) else 0
    except PageError as error:
        print(error)
        return 1


def _selected(tree: Tree, wanted: list[str]) -> list[str]:
    known = tree.names()
    chosen = []
    for word in wanted or known:
        matching = [name for name in known if name == word or name[:2] == word]
        if not matching:
            raise PageError(f"no page is called {word!r}; there are {', '.join(known)}")
        chosen += matching
    if not chosen:
        raise PageError(f"there is no source in {tree.notebooks / 'src'}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
