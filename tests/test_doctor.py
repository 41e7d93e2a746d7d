"""The doctor tells what is there, and how to mend what is not."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from page import showing

from labkit.__main__ import main
from labkit.lesson import checks, machine
from labkit.lesson import doctor as clinic
from labkit.lesson.checks import Line
from labkit.lesson.doctor import Report, doctor


def line(report: Report | None, what: str) -> Line:
    assert report is not None
    (found,) = [line for line in report.lines if line.what == what]
    return found


def test_this_environment_is_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    report = doctor()
    assert report is not None
    bad = [line for line in report.lines if line.ok is False]
    assert bad == []
    assert repr(report) == f"Report({len(report.lines)} lines, nothing to mend)"
    told = capsys.readouterr().out
    for line in report.lines:
        assert f"{line.what} · " in told


def test_it_runs_in_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert f"torch · ✓ ok · {torch.__version__.split('+')[0]}" in told
    assert f"numpy · ✓ ok · {np.__version__}" in told
    assert "controls · ? unknown · to be seen in a notebook" in told
    assert "**" not in told


def test_a_missing_or_old_package_is_told_with_its_mending() -> None:
    missing = checks.package("no-such-package-at-all", "1.0")
    assert missing.ok is False
    assert "python -m pip install -U no-such-package-at-all" in missing.says
    old = checks.package("torch", "99.1")
    assert old.ok is False
    assert "is older than 99.1" in old.says


@pytest.mark.parametrize(
    ("version", "parts"),
    [
        ("2.13.0+cpu", (2, 13)),
        ("1.26.4", (1, 26)),
        ("8", (8,)),
        ("2.15.0.dev1", (2, 15)),
    ],
)
def test_versions_are_compared_as_numbers(version: str, parts: tuple[int, ...]) -> None:
    assert checks.numbers(version) == parts
    assert checks.numbers("2.6") < checks.numbers("2.13.0")


def test_an_old_python_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MIN_PYTHON", (9, 0))
    assert checks.python().ok is False


def test_changed_and_missing_data_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(checks.FOLDER, folder)
    monkeypatch.setattr(checks, "FOLDER", folder)
    assert checks.data().ok
    with (folder / "digits.npz").open("ab") as file:
        file.write(b"x")
    assert "missing or changed: digits.npz" in checks.data().says
    (folder / "digits.npz").unlink()
    assert checks.data().ok is False
    shutil.rmtree(folder)
    assert "run from a full checkout" in checks.data().says


def test_a_progress_folder_that_cannot_be_used_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LABKIT_HOME", str(tmp_path / "file" / "home"))
    found = line(doctor(), "progress")
    assert found.ok is False
    assert "LABKIT_HOME" in found.says


def test_little_memory_or_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory", lambda: (8_000_000_000, 1_000_000_000))
    monkeypatch.setattr(machine, "free_disk", lambda folder: 1_000_000)
    report = doctor()
    assert line(report, "memory").ok is False
    assert "8.0 GB in all, 1.0 GB free: close" in line(report, "memory").says
    assert line(report, "disk").ok is False
    assert report is not None
    assert not report.ok
    assert "to mend: memory, disk" in repr(report)


@pytest.mark.parametrize(
    ("found", "ok", "says"),
    [
        ((None, None), None, "does not tell"),
        ((16_000_000_000, None), True, "how much is free is not known"),
        ((16_000_000_000, 9_000_000_000), True, "16.0 GB in all, 9.0 GB free"),
    ],
)
def test_memory_that_is_not_known_is_called_unknown(
    monkeypatch: pytest.MonkeyPatch, found: Any, ok: bool | None, says: str
) -> None:
    monkeypatch.setattr(machine, "memory", lambda: found)
    assert checks.memory().ok is ok
    assert says in checks.memory().says


def test_a_containers_limit_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(
        "MemTotal: 16000000 kB\nMemFree: 1 kB\nMemAvailable: 8000000 kB\n"
    )
    monkeypatch.setattr(machine, "MEMINFO", meminfo)
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    assert machine.memory() == (16_000_000 * 1024, 8_000_000 * 1024)
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 400\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.memory() == (16_000_000 * 1024, 8_000_000 * 1024)
    (tmp_path / "memory.max").write_text("2000\n")
    assert machine.memory() == (2000, 1500)


def test_the_machine_has_cores_and_disk(tmp_path: Path) -> None:
    assert machine.cores() >= 1
    assert machine.free_disk(tmp_path / "not" / "yet" / "there") > 0


def test_a_labkit_other_than_the_installed_one_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checks, "__version__", "0.0.1")
    monkeypatch.setattr(checks.metadata, "version", lambda name: "0.0.2")
    found = checks.version()
    assert found.ok is False
    assert "0.0.2 is installed and 0.0.1 runs" in found.says


def test_in_a_notebook_a_click_tells_that_controls_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ipywidgets

    shown: list[Any] = []
    monkeypatch.setattr(clinic, "show_widget", shown.append)
    with showing() as page:
        monkeypatch.setattr(clinic.shell(), "kernel", object(), raising=False)
        report = doctor()
    assert line(report, "controls").ok is None
    assert "click the button below" in line(report, "controls").says
    assert "No button above" in page.text
    (box,) = shown
    button, note = box.children
    assert isinstance(button, ipywidgets.Button)
    button.click()
    assert note.value == clinic.CLICKED
