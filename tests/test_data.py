"""The stored data are what data/README.md says, and the tool packs them repeatably."""

import csv
import hashlib
import re
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import labkit as lk

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import make_data  # noqa: E402
import make_photos  # noqa: E402

ROWS = re.findall(
    r"^\| `(\S+)` \| .* \| (\d+) \| `([0-9a-f]{64})` \|$",
    (ROOT / "data" / "README.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_every_binary_file_has_its_row_and_every_row_its_maker():
    listed = {name for name, _, _ in ROWS}
    data = ROOT / "data"
    stored = {p.relative_to(data).as_posix() for p in data.rglob("*") if p.is_file()}
    # recorded/ holds measurements, not data that packages give
    stored = {name for name in stored if not name.startswith("recorded/")}
    assert listed == stored - {"README.md", "claims.csv"}
    assert {name.split("/")[0] for name in listed} == set(make_data.SETS)


@pytest.mark.parametrize(("name", "size", "total"), ROWS)
def test_size_and_sum(name, size, total):
    content = lk.data_path(name).read_bytes()
    assert len(content) == int(size)
    assert hashlib.sha256(content).hexdigest() == total


def test_digits():
    with np.load(lk.data_path("digits.npz"), allow_pickle=False) as data:
        images, labels = data["images"], data["labels"]
        assert sorted(data.files) == ["images", "labels"]
    assert (images.dtype, images.shape) == (np.uint8, (1797, 8, 8))
    assert (labels.dtype, labels.shape) == (np.int64, (1797,))
    assert (images.min(), images.max()) == (0, 16)
    counts = np.bincount(labels)
    assert len(counts) == 10
    assert (counts.min(), counts.max()) == (174, 183)


def test_names():
    with lk.data_path("names.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == {"name", "language"}
    names = [row["name"] for row in rows]
    assert len(set(names)) == len(names) == 2541  # each name belongs to one language
    assert all(unicodedata.is_normalized("NFC", name) for name in names)
    assert {name == name.strip() != "" for name in names} == {True}
    assert len({len(name) for name in names}) > 30  # they vary in length
    counts = Counter(row["language"] for row in rows)
    assert sorted(counts) == sorted(make_data.LANGUAGES)
    assert (min(counts.values()), max(counts.values())) == (116, 213)


def test_each_name_is_written_in_its_languages_script():
    columns = make_data.unpack(lk.data_path("names.csv"))
    for name, language in zip(columns["name"], columns["language"], strict=True):
        first = unicodedata.name(next(c for c in str(name) if c.isalpha()))
        script = "LATIN" if language in make_data.LATIN else "CYRILLIC"
        assert first.startswith(script), (name, language)


def test_photos():
    photos = make_photos.decode(lk.data_path("photos"))
    assert len(photos) == 36
    assert all(p.ndim == 3 and min(p.shape[:2]) >= 256 for p in photos.values())
    listing = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    for name in make_photos.SOURCES:
        row = re.search(rf"^\| `{name}-.*\|$", listing, re.MULTILINE)
        assert row, f"{name} has no owner and licence"
        licence = row[0].rsplit("|", 2)[1]
        assert any(free in licence for free in ("public domain", "CC0", "CC BY"))


def test_the_folder_stays_small():
    files = [p for p in (ROOT / "data").rglob("*") if p.is_file()]
    assert sum(p.stat().st_size for p in files) < 6_000_000


def test_photos_are_told_apart_but_for_what_jpeg_loses():
    photos = make_photos.decode(lk.data_path("photos"))
    shifted = {name: np.clip(p, 0, 254) + 1 for name, p in photos.items()}
    assert make_photos.alike(photos, shifted)
    turned = {name: p.transpose(1, 0, 2) for name, p in photos.items()}
    assert not make_photos.alike(photos, turned)


@pytest.mark.parametrize("name", ["", "..", "photos/.."])
def test_a_folder_outside_the_data_is_none_of_it(name):
    with pytest.raises(ValueError, match="there is no file"):
        lk.data_path(name)


def test_a_table_comes_back_as_it_was(tmp_path):
    columns = {"name": np.array(['Čad, "x"', "Япония"]), "n": np.array(["1", "2"])}
    (tmp_path / "x.csv").write_bytes(make_data.table(columns))
    back = make_data.unpack(tmp_path / "x.csv")
    assert make_data.same(back, columns)
    assert not make_data.same(back, {**columns, "n": np.array(["1", "3"])})


def test_pack_depends_on_the_arrays_alone(monkeypatch):
    arrays = make_data.unpack(lk.data_path("digits.npz"))
    first = make_data.pack(arrays)
    monkeypatch.setattr("time.time", lambda: 2e9)
    assert make_data.pack(dict(reversed(arrays.items()))) == first
    assert make_data.pack({**arrays, "labels": arrays["labels"] + 1}) != first


@pytest.mark.parametrize("name", make_data.SETS)
def test_rebuilt_from_the_package(monkeypatch, capsys, name):
    modules, packages, _ = make_data.SETS[name]
    for module in modules.split():
        pytest.importorskip(module, reason=f"the rebuild needs {packages}")
    monkeypatch.setattr(make_data, "SETS", {name: make_data.SETS[name]})
    assert make_data.main(["--check"]) == 0
    assert "as it should be" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["--check"]])
def test_a_missing_package_is_named(monkeypatch, capsys, arguments):
    monkeypatch.setattr(
        make_data, "SETS", {"digits.npz": ("no_such_module", "no-such", dict)}
    )
    assert make_data.main(arguments) == 1
    assert "python -m pip install no-such" in capsys.readouterr().err


def test_check_finds_other_arrays(monkeypatch, capsys):
    def other():
        arrays = make_data.unpack(lk.data_path("digits.npz"))
        arrays["labels"][0] += 1
        return arrays

    monkeypatch.setattr(make_data, "SETS", {"digits.npz": ("numpy", "numpy", other)})
    assert make_data.main(["--check"]) == 1
    assert "holds other arrays" in capsys.readouterr().err


def test_claims_list():
    with (ROOT / "data" / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == {"claim", "section", "audit"}
    assert len({row["claim"] for row in rows}) == len(rows) >= 144
    judgements = [
        "holds",
        "conditions",
        "incomplete",
        "outdated",
        "wrong",
        "unmeasured",
    ]
    assert {row["audit"] for row in rows} <= set(judgements)
    assert all(
        re.fullmatch(rf"C{row['section']}[a-z]?", row["claim"])
        for row in rows
        if "." in row["section"]
    )
