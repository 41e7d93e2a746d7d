"""One JupyterLab and one Chromium for all browser tests, and what the pages did there."""

import shutil
from collections.abc import Callable, Iterator

import pytest
from browser import MISSING, Notebook, chromium, find_browser
from playwright.sync_api import Browser, BrowserContext
from served import Served, served
from watch import WINDOW, Watch


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip(MISSING)  # which is a failure in CI: see tests/conftest.py
    with chromium(program) as running:
        yield running


@pytest.fixture(scope="session")
def server(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("lab") / "base") as running:
        shutil.copytree(running.work, running.work.with_name("untouched"))
        yield running


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """The tabs share cookies and what is cached, as in a learner's browser."""
    running = browser.new_context(viewport=WINDOW)
    running.set_default_timeout(30_000)
    yield running
    running.close()


@pytest.fixture(scope="session")
def watch() -> Watch:
    return Watch()


@pytest.fixture(scope="session")
def opened(
    context: BrowserContext, server: Served, watch: Watch
) -> Callable[[str], Notebook]:
    """Opens a page of the learner's folder, by its name, in a tab that is watched."""

    def open_page(name: str) -> Notebook:
        page = context.new_page()
        watch.follow(page)
        notebook = Notebook(page, server, name)
        notebook.open()
        return notebook

    return open_page


@pytest.fixture(scope="session")
def ran(opened: Callable[[str], Notebook]) -> Callable[[str], Notebook]:
    """Gives a page after Run All; each is opened and run once, and stays open."""
    pages: dict[str, Notebook] = {}

    def run_once(name: str) -> Notebook:
        if name not in pages:
            notebook = opened(name)
            notebook.run_all()
            pages[name] = notebook
        # the keys of a list that opens do nothing in a tab behind another
        pages[name].page.bring_to_front()
        return pages[name]

    return run_once


@pytest.fixture(scope="module")
def sitting(opened: Callable[[str], Notebook], server: Served) -> Notebook:
    """An untouched copy of page 02, open for one learner's work through several tests."""
    untouched = server.work.with_name("untouched") / "02_tensors.ipynb"
    shutil.copy(untouched, server.work / "02_sitting.ipynb")
    return opened("02_sitting")
