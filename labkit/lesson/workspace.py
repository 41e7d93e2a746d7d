"""The learner's own copies of the pages: made by ``python -m labkit start``.

Standard library only, and no import from labkit: ``tools/lab.py`` loads this file by
its path, so that opening the workbook does not wait for torch.
"""

from __future__ import annotations

import copy
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]


class WorkspaceError(ValueError):
    """What keeps the pages from being copied, in one sentence."""


@dataclass(frozen=True)
class Started:
    """What ``start`` did: the folder, and names of pages such as ``02_tensors``.

    added: pages copied now. changed: pages whose source is newer than the learner's
    copy, which was left as it is. renewed: for each page given to ``fresh``, the name
    that the learner's old copy has now.
    """

    folder: Path
    added: tuple[str, ...]
    changed: tuple[str, ...]
    renewed: dict[str, str]

    def __str__(self) -> str:
        lines = [f"Your pages are in {self.folder}."]
        if self.added:
            lines.append(f"New there: {', '.join(self.added)}.")
        for name, kept in self.renewed.items():
            lines.append(f"{name} is the newest version; your old copy is {kept}.")
        if self.changed:
            lines.append(
                f"There is a newer version of {', '.join(self.changed)}; your copy is "
                "untouched. To get the new one and keep yours beside it:\n"
                f"    python -m labkit start --fresh {self.changed[0]}"
            )
        return "\n".join(lines)


def work_folder(checkout: Path = CHECKOUT) -> Path:
    """The folder of the learner's copies, which need not exist yet.

    LABKIT_WORK if it is set; else ``work`` in the checkout; where that cannot be
    written (a shared installation), ``work`` in the current folder.
    """
    wanted = os.environ.get("LABKIT_WORK")
    if wanted:
        return Path(wanted).expanduser().absolute()
    inside = checkout / "work"
    nearest = inside if inside.exists() else checkout
    if (checkout / "notebooks").is_dir() and os.access(nearest, os.W_OK):
        return inside
    return Path.cwd() / "work"


def start(
    fresh: list[str] | None = None,
    checkout: Path = CHECKOUT,
    folder: Path | None = None,
) -> Started:
    """Copy the pages, outputs cleared, to the learner's folder; overwrite nothing.

    fresh: pages (``02`` or ``02_tensors``) to copy anew; the learner's copy is renamed.
    Raises WorkspaceError for an unknown page, where there are no pages to copy, or
    where the folder cannot be written.

    Example: ``print(start())``.
    """
    pages = {
        path.stem: path for path in sorted((checkout / "notebooks").glob("*.ipynb"))
    }
    if not pages:
        raise WorkspaceError(
            f"start copies the pages of a checkout, and {checkout} has no notebooks/: "
            "clone the repository and run it there"
        )
    folder = work_folder(checkout) if folder is None else folder
    wanted = {_page_named(word, pages) for word in fresh or []}
    added, changed, renewed = [], [], {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, source in pages.items():
            page = json.loads(source.read_text(encoding="utf-8"))
            target = folder / source.name
            if target.exists() and name in wanted:
                renewed[name] = _set_aside(target).name
            if not target.exists():
                _write_new(target, cleared(page))
                if name not in renewed:
                    added.append(name)
            elif _page_hash(target) != page["metadata"].get("labkit", {}).get(
                "page_sha256"
            ):
                changed.append(name)
    except OSError as error:
        raise WorkspaceError(
            f"start cannot write the pages to {folder} ({error.strerror}): set "
            "LABKIT_WORK to a folder that you can write to"
        ) from error
    return Started(folder, tuple(added), tuple(changed), renewed)


def cleared(page: dict[str, Any]) -> dict[str, Any]:
    """A copy of a notebook (plain JSON) without outputs and without what tells of them.

    The page's own hash stays in its metadata: by it a later ``start`` sees that the
    source has changed.  Stored outputs would spoil every prediction.
    """
    page = copy.deepcopy(page)
    for cell in page["cells"]:
        # the site's copy of a picture's alternative text tells what the picture shows
        cell["metadata"].pop("mystnb", None)
        if cell["cell_type"] == "code":
            cell["outputs"] = []
            cell["execution_count"] = None
    return page


def _page_named(word: str, pages: dict[str, Path]) -> str:
    name = Path(word).name.removesuffix(".ipynb")
    matching = [page for page in pages if page == name or page.split("_")[0] == name]
    if not matching:
        raise WorkspaceError(
            f"start --fresh {word}: there is no such page; the pages are "
            f"{', '.join(pages)}"
        )
    return matching[0]


def _page_hash(path: Path) -> str | None:
    """The hash of the page that a copy was made from; None where it tells none."""
    try:
        page = json.loads(path.read_text(encoding="utf-8"))
        return page["metadata"].get("labkit", {}).get("page_sha256")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None  # the learner's file is no longer a notebook: say it has changed


def _set_aside(path: Path) -> Path:
    """Rename a learner's copy to the first free name and return that."""
    number = 1
    while True:
        suffix = "_old" if number == 1 else f"_old{number}"
        kept = path.with_name(f"{path.stem}{suffix}.ipynb")
        if not kept.exists():
            return path.rename(kept)
        number += 1


def _write_new(path: Path, page: dict[str, Any]) -> None:
    # a whole file or none: a copy cut short by a full disk would never be mended,
    # since copies are not overwritten
    text = json.dumps(page, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    # of this process alone, since two may start at once
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        if not path.exists():
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)
