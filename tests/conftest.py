"""What the tests of labkit and of the tools share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A progress folder of the test's own, and labkit as a learner has it: not strict."""
    folder = tmp_path / "home"
    monkeypatch.setenv("LABKIT_HOME", str(folder))
    monkeypatch.delenv("LABKIT_STRICT", raising=False)
    return folder


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Interrupts reach the test, also in a job that a shell started in the background.

    Such a job ignores them, and Python leaves that as it finds it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """labkit as in builds: a trap that does not show raises."""
    monkeypatch.setenv("LABKIT_STRICT", "1")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Iterator[None]:
    """In CI a browser test that is skipped has failed: the browser must be there."""
    report = yield
    if (
        report.skipped
        and os.environ.get("CI") == "true"
        and item.get_closest_marker("browser")
    ):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped in CI: {report.longrepr}"
    return report
