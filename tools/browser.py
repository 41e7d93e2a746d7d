"""A notebook in a real browser: opened, run, read and photographed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, sync_playwright
from served import Served

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "The browser tests need Chromium: install the package `chromium` (on Debian or "
    "Ubuntu: `sudo apt install chromium`), or set LABKIT_CHROMIUM to its program file."
)
SLICE_PX = 1600
ANSWER_S = 300  # Run All of a long page on a busy machine

# What is asked of JupyterLab itself.
SCRIPT = """
window.asked = {
  panel: () => window.jupyterapp.shell.currentWidget,
  session: () => asked.panel().sessionContext.session,
  open: async (path) => {
    const app = window.jupyterapp;
    await app.restored;
    await asked.until(() => asked.panel()?.context?.path === path);
    const panel = asked.panel();
    await panel.context.ready;
    await panel.revealed;
    await panel.sessionContext.ready;
    await asked.idle();
    await asked.session().kernel.info;
  },
  until: async (holds) => {
    while (!holds()) await new Promise((resolve) => setTimeout(resolve, 50));
  },
  idle: () => asked.until(() => asked.session()?.kernel?.status === 'idle'),
  command: async (name, args) => {
    await window.jupyterapp.commands.execute(name, args || {});
  },
  sources: () => asked.panel().content.widgets.map((cell) =>
    cell.model.type === 'code' ? cell.model.sharedModel.getSource() : null),
  code: () => asked.panel().content.widgets.filter((cell) => cell.model.type === 'code')
    .map((cell) => ({
      source: cell.model.sharedModel.getSource(),
      count: cell.model.executionCount ?? null,
      outputs: cell.model.outputs.toJSON(),
    })),
  outputs: (index) => asked.panel().content.widgets[index].model.outputs.toJSON(),
  run: async (index) => {
    const notebook = asked.panel().content;
    notebook.deselectAll();
    notebook.activeCellIndex = index;
    await asked.command('notebook:run-cell');
    await asked.idle();
  },
  add: async (source) => {
    const notebook = asked.panel().content;
    notebook.activeCellIndex = notebook.widgets.length - 1;
    await asked.command('notebook:insert-cell-below');
    notebook.activeCell.model.sharedModel.setSource(source);
  },
  kill: async () => {
    const code = 'import os, signal; os.kill(os.getpid(), signal.SIGKILL)';
    asked.session().kernel.requestExecute({ code }).done.catch(() => null);
    await asked.until(() => asked.session().kernel.status !== 'idle');
  },
  shut_down: () => asked.panel().sessionContext.shutdown(),
  // a theme's style sheet is loaded behind a splash screen, where cells have no height
  themed: (light) => asked.until(() =>
    document.body.dataset.jpThemeLight === String(light) &&
    !document.getElementById('jupyterlab-splash') &&
    asked.panel().node.clientHeight > 0),
  painted: async () => {
    await Promise.all([...document.images].map((i) => i.decode().catch(() => null)));
    await new Promise((resolve) =>
      requestAnimationFrame(() => requestAnimationFrame(resolve)));
  },
};
"""


def find_browser() -> str | None:
    """The program file of a Chromium on this machine, or None."""
    told = os.environ.get("LABKIT_CHROMIUM")
    return next(filter(None, map(shutil.which, [told] if told else NAMES)), None)


@contextmanager
def chromium(program: str) -> Iterator[Browser]:
    """A Chromium without a window, ended with the block.

    program: its program file, as `find_browser` gives it.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program,
            args=["--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"],
        )
        try:
            yield browser
        finally:
            browser.close()


@dataclass(frozen=True)
class Notebook:
    """A page of the workbook, open in a tab of the browser."""

    page: Page
    server: Served
    name: str

    @property
    def path(self) -> Path:
        """The learner's file."""
        return self.server.work / f"{self.name}.ipynb"

    @property
    def panel(self) -> Locator:
        """What scrolls: all cells, without JupyterLab's own bars."""
        return self.page.locator(
            ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer"
        )

    def open(self) -> None:
        """Open the page, or load it again, and wait until its kernel is ready."""
        # a workspace of its own: JupyterLab would bring back the other tabs' pages
        address = f"lab/workspaces/{self.name}/tree/{self.path.name}"
        address += f"?token={self.server.token}&reset"
        self.page.goto(self.server.url + address)
        self.page.wait_for_function("() => window.jupyterapp !== undefined")
        self.page.evaluate(SCRIPT)
        self.ask("open", self.path.name)
        if self.page.locator(".jp-SideBar.jp-mod-left .lm-mod-current").count():
            self.ask("command", "application:toggle-left-area")

    def ask(self, what: str, *values: Any) -> Any:
        """Call one function of SCRIPT and wait for its answer."""
        call = f"(values) => Promise.race([asked.{what}(...values), {too_late(what)}])"
        return self.page.evaluate(call, list(values))

    def code_cells(self) -> list[dict[str, Any]]:
        """All code cells as they are now: source, count, outputs."""
        return list(self.ask("code"))

    def index(self, text: str) -> int:
        """The place of the one code cell whose source holds `text`, among all cells.

        Raises LookupError where no cell holds it, or several do.
        """
        sources = self.ask("sources")
        found = [n for n, source in enumerate(sources) if source and text in source]
        if len(found) != 1:
            raise LookupError(f"{self.name}: {len(found)} code cells hold {text!r}")
        return found[0]

    def cell(self, text: str) -> Locator:
        """The code cell whose source holds `text`, as it is on the screen."""
        return self.panel.locator(".jp-Notebook-cell").nth(self.index(text))

    def source(self, text: str) -> str:
        """The whole source of the code cell that holds `text`."""
        return str(self.ask("sources")[self.index(text)])

    def run(self, text: str) -> list[dict[str, Any]]:
        """Run the code cell that holds `text`; return its outputs."""
        place = self.index(text)
        self.ask("run", place)
        return list(self.ask("outputs", place))

    def run_to(self, text: str) -> None:
        """Run all code cells from the top to the one that holds `text`, with it."""
        sources = self.ask("sources")
        for place in range(self.index(text) + 1):
            if sources[place] is not None:
                self.ask("run", place)

    def run_all(self) -> None:
        """Run All, as in the menu, and wait for the last cell."""
        self.ask("command", "notebook:run-all-cells")
        self.ask("idle")

    def write(self, text: str, source: str) -> None:
        """Put `source` in place of what is in the cell's editor, by the keyboard."""
        self.cell(text).locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.insert_text(source)

    def add(self, source: str) -> None:
        """Add a code cell at the end of the page."""
        self.ask("add", source)

    def kill_kernel(self) -> None:
        """Kill the kernel, as a machine without memory does; wait for the next one."""
        self.ask("kill")
        self.page.locator(".jp-Dialog .jp-mod-accept").click()
        self.ask("idle")

    def save(self) -> None:
        """Save the page, as in the menu."""
        self.ask("command", "docmanager:save")

    def theme(self, name: str) -> None:
        """Change to the theme "light" or "dark"."""
        theme = f"JupyterLab {name.capitalize()}"
        self.ask("command", "apputils:change-theme", {"theme": theme})
        self.ask("themed", name == "light")

    def photograph(self, path: Path, most: int = 99) -> list[Path]:
        """Take pictures of the page from top to bottom: path-1.png, path-2.png, …

        Each is as high as the window; at most `most` are taken.  Returns their paths.
        """
        taken: list[Path] = []
        height = self.panel.evaluate("(panel) => panel.clientHeight")
        total = self.panel.evaluate("(panel) => panel.scrollHeight")
        for number in range(min(most, -(-total // height))):
            self.panel.evaluate("(panel, y) => panel.scrollTo(0, y)", number * height)
            self.ask("painted")
            taken.append(path.with_name(f"{path.stem}-{number + 1}.png"))
            self.panel.screenshot(path=taken[-1], animations="disabled")
        return taken


def too_late(what: str) -> str:
    """JavaScript of a promise that fails where JupyterLab does not answer in time."""
    says = f"JupyterLab did not answer in {ANSWER_S} s: {what}"
    return (
        "new Promise((_, fail) => setTimeout(() => "
        f"fail(new Error({says!r})), {ANSWER_S * 1000}))"
    )
