"""What CI relies on: a missing browser is a failure there, and only there."""

import os
import subprocess
import sys

import pytest
from tree import REPOSITORY


@pytest.mark.parametrize(
    ("ci", "outcome", "status"), [("true", "1 error", 1), ("", "1 skipped", 0)]
)
def test_a_browser_test_without_a_browser(ci, outcome, status):
    variables = {**os.environ, "CI": ci, "PATH": "", "LABKIT_CHROMIUM": ""}
    path = "tests/browser/test_pages.py"
    name = "test_run_all_on_the_untouched_page_reaches_the_end"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"{path}::{name}[00_start]"],
        cwd=REPOSITORY,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout, done.stdout + done.stderr
    assert done.returncode == status
    if ci:  # the reason is told too; elsewhere pytest tells it with -rs
        assert "install the package `chromium`" in done.stdout
