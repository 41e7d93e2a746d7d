"""Where the workbook's data files are."""

from pathlib import Path

from labkit.lesson.evidence import LabError

FOLDER = Path(__file__).resolve().parents[2] / "data"


def data_path(name: str) -> Path:
    """The path of one of the workbook's data files, like "digits.npz".

    What is in each file, and whose it is, stands in data/README.md.  Raises LabError,
    naming the files there are, if there is none of that name.

    >>> data_path("digits.npz").name
    'digits.npz'
    """
    path = FOLDER / str(name)
    if path.is_file():
        return path
    there = (
        sorted(p.name for p in FOLDER.glob("*") if p.is_file())
        if FOLDER.is_dir()
        else []
    )
    raise LabError(
        f"data_path: there is no file {name!r} among the workbook's data "
        f"({', '.join(there) or 'the data folder is missing: use a full checkout'})"
    )
