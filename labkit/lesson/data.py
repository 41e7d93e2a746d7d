"""Where the workbook's data files are."""

from pathlib import Path

from labkit.lesson.evidence import LabError

FOLDER = Path(__file__).resolve().parents[2] / "data"


def data_path(name: str) -> Path:
    """The path of one of the workbook's data files or folders, like "digits.npz".

    What is in each file, and whose it is, stands in data/README.md.  Raises LabError,
    naming what there is, if there is nothing of that name.

    >>> data_path("digits.npz").name
    'digits.npz'
    """
    path = FOLDER / str(name)
    # a name like ".." or "" is a folder too, but none of the data
    if path.is_file() or (path.is_dir() and FOLDER in path.resolve().parents):
        return path
    there = (
        sorted(p.name for p in FOLDER.glob("*") if not p.name.startswith("."))
        if FOLDER.is_dir()
        else []
    )
    raise LabError(
        f"data_path: there is no file {name!r} among the workbook's data "
        f"({', '.join(there) or 'the data folder is missing: use a full checkout'})"
    )
