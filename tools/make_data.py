"""Rebuilds the workbook's data files from packages that are installed.

python tools/make_data.py            write every file
python tools/make_data.py --check    write nothing; compare with data/ and its README

Nothing is downloaded: a file's content comes out of the package named beside it in
SETS.  The packages are needed by this tool only, never by a page.
"""

import argparse
import csv
import hashlib
import importlib.util
import io
import sys
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import make_photos
import numpy as np

DATA = Path(__file__).resolve().parents[1] / "data"
FIRST_ZIP_DAY = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip entry can hold
LATIN = ("cs", "de", "en", "es", "fi", "fr", "hu", "it", "nl", "pl", "pt", "sv", "tr")
LANGUAGES = (*LATIN, "bg", "ru", "uk")  # the last three are written in Cyrillic
NO_TERRITORY = {"XA", "XB", "ZZ"}  # CLDR's two pseudo-locales and "unknown region"
Arrays = dict[str, np.ndarray]


def digits() -> Arrays:
    """The UCI optical digits: images (1797, 8, 8) uint8 in 0..16, labels (1797,) int64.

    >>> sorted(digits())
    ['images', 'labels']
    """
    from sklearn.datasets import load_digits

    data = load_digits()
    return {
        "images": data.images.astype(np.uint8),
        "labels": data.target.astype(np.int64),
    }


def names() -> Arrays:
    """Territory names that one language alone uses: name and language code, strings.

    A name that two of LANGUAGES share ("Andorra") has no one right label and is left
    out.  Composed characters (NFC), sorted by language and then by code point.

    >>> sorted(names())
    ['language', 'name']
    """
    from babel import Locale

    rows = sorted(
        {
            (language, unicodedata.normalize("NFC", name))
            for language in LANGUAGES
            for code, name in Locale(language).territories.items()
            if code not in NO_TERRITORY
        }
    )
    users = Counter(name for _, name in rows)
    kept = [(language, name) for language, name in rows if users[name] == 1]
    return {
        "name": np.array([name for _, name in kept]),
        "language": np.array([language for language, _ in kept]),
    }


# file or folder: (modules to import, names to install, the function that makes it)
SETS: dict[str, tuple[str, str, Callable[[], Arrays]]] = {
    "digits.npz": ("sklearn", "scikit-learn", digits),
    "names.csv": ("babel", "Babel", names),
    "photos": ("skimage sklearn", "scikit-image scikit-learn", make_photos.photos),
}


def pack(arrays: Arrays) -> bytes:
    """The bytes of a compressed npz file that depend on the arrays alone.

    numpy.savez_compressed stamps each entry with the time of writing and zipfile with
    the operating system; both are fixed here.

    >>> pack({"x": np.zeros(3)}) == pack({"x": np.zeros(3)})
    True
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in sorted(arrays.items()):
            entry = io.BytesIO()
            np.lib.format.write_array(
                entry, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False
            )
            info = zipfile.ZipInfo(f"{name}.npy", FIRST_ZIP_DAY)
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, entry.getvalue(), zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


def table(arrays: Arrays) -> bytes:
    """The bytes of a csv file in UTF-8 with a column for each array.

    >>> table({"name": np.array(["Česko"]), "language": np.array(["cs"])}).decode()
    'name,language\\nČesko,cs\\n'
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(arrays)
    writer.writerows(zip(*(column.tolist() for column in arrays.values()), strict=True))
    return out.getvalue().encode()


def unpack(path: Path) -> Arrays:
    """The arrays in an npz file or a folder of photos, or a csv file's columns."""
    if path.is_dir():
        return make_photos.decode(path)
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        columns = zip(*rows, strict=True)
        return {name: np.array(x) for name, x in zip(header, columns, strict=True)}
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def same(a: Arrays, b: Arrays) -> bool:
    """Whether two sets of arrays agree in names, dtypes, shapes and every value."""
    return a.keys() == b.keys() and all(
        a[k].dtype == b[k].dtype and np.array_equal(a[k], b[k]) for k in a
    )


def sha256(path: Path) -> str:
    """The file's SHA-256 sum in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def missing(name: str) -> str:
    """What to install before the file can be made: a sentence, "" if all is there."""
    modules, packages, _ = SETS[name]
    if all(importlib.util.find_spec(module) for module in modules.split()):
        return ""
    return (
        f"{name} is made from {packages}, which is not installed here: "
        f"run `python -m pip install {packages}` first"
    )


def write(name: str) -> str:
    """Writes one file, if its arrays changed, and says what was done.

    Equal arrays keep the file as it is: another build of zlib packs the same arrays
    into other bytes, and that would look like a change.
    """
    path, arrays = DATA / name, SETS[name][2]()
    if name == "photos":
        return write_photos(path, arrays)
    if path.is_file() and same(unpack(path), arrays):
        return f"{name}: unchanged, sha256 {sha256(path)}"
    path.write_bytes(table(arrays) if path.suffix == ".csv" else pack(arrays))
    return f"{name}: written, {path.stat().st_size} bytes, sha256 {sha256(path)}"


def write_photos(folder: Path, crops: Arrays) -> str:
    """Writes the folder of photos, if they changed, and says what was done.

    Prints the rows of the README's table: a photo's bytes depend on the JPEG library.
    """
    if folder.is_dir() and make_photos.alike(unpack(folder), crops):
        return f"{folder.name}: unchanged, {len(crops)} files"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.jpg"):
        old.unlink()
    for name, pixels in sorted(crops.items()):
        path = folder / name
        path.write_bytes(make_photos.encode(pixels))
        side = f"{pixels.shape[1]}×{pixels.shape[0]}"
        size = path.stat().st_size
        print(f"| `photos/{name}` | {side} | {size} | `{sha256(path)}` |")
    return f"{folder.name}: written, {len(crops)} files"


def check(name: str) -> str:
    """What is wrong with one stored file or folder: a sentence, "" if nothing is."""
    path = DATA / name
    if not path.exists():
        return f"{name} is not in {DATA}"
    listed = (DATA / "README.md").read_text(encoding="utf-8")
    for file in sorted(path.glob("*")) if path.is_dir() else [path]:
        if sha256(file) not in listed:
            inside = file.relative_to(DATA).as_posix()
            return f"{inside} has sha256 {sha256(file)}, which data/README.md lacks"
    agree = make_photos.alike if path.is_dir() else same
    if not agree(unpack(path), SETS[name][2]()):
        return f"{name} holds other arrays than the installed {SETS[name][1]} gives"
    return ""


def main(arguments: list[str] | None = None) -> int:
    """The command line: 0 if all is well, 1 if not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    options = parser.parse_args(arguments)
    bad = 0
    for name in SETS:
        problem = missing(name) or (check(name) if options.check else "")
        if problem:
            bad += 1
            print(problem, file=sys.stderr)
        else:
            print(f"{name}: as it should be" if options.check else write(name))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
