"""Take pictures of a page as a learner sees it, after Run All.

    python tools/screenshot.py 02_tensors out.png --width 800 --theme dark

writes out-1.png, out-2.png, … from the top of the page to its end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from browser import MISSING, SLICE_PX, Notebook, chromium, find_browser
from playwright.sync_api import ViewportSize
from served import served


def main() -> int:
    """Take the pictures; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", help="the page's name, as 02_tensors")
    parser.add_argument("out", type=Path, help="out.png gives out-1.png, out-2.png, …")
    parser.add_argument("--width", type=int, default=1280, help="of the window, in px")
    parser.add_argument("--height", type=int, default=SLICE_PX, help="of the window")
    parser.add_argument("--theme", choices=["light", "dark"], default="light")
    parser.add_argument("--not-run", action="store_true", help="as first opened")
    chosen = parser.parse_args()
    program = find_browser()
    if program is None:
        print(MISSING, file=sys.stderr)
        return 1
    size = ViewportSize(width=chosen.width, height=chosen.height)
    with (
        tempfile.TemporaryDirectory() as base,
        served(Path(base)) as server,
        chromium(program) as browser,
    ):
        notebook = Notebook(browser.new_page(viewport=size), server, chosen.page)
        notebook.open()
        notebook.theme(chosen.theme)
        if not chosen.not_run:
            notebook.run_all()
        for path in notebook.photograph(chosen.out):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
