"""The environment of every test: strict pages, and nothing of the learner's progress."""

import os
import tempfile
from pathlib import Path

import pytest

HOMES = tempfile.TemporaryDirectory(prefix="labkit-tests-")
# The pages' kernels inherit these.  They are set here, and not in a fixture, since
# nbval's cells take none.
os.environ.update(
    LABKIT_HOME=str(Path(HOMES.name, "tests")),
    LABKIT_STRICT="1",
    COLUMNS="80",
    NO_COLOR="1",
    TZ="UTC",
)
for name in ("LABKIT_WORK", "FORCE_COLOR", "CLICOLOR_FORCE"):
    os.environ.pop(name, None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give each stored page that nbval runs a progress folder of its own.

    A page is run as if nobody had learned here before, whatever ran earlier.
    """
    if item.path.suffix == ".ipynb":
        os.environ["LABKIT_HOME"] = str(Path(HOMES.name, item.path.stem))
