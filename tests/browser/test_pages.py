"""The pages in a real browser, as a learner meets them."""

import inspect
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Notebook
from PIL import Image
from playwright.sync_api import Locator, ViewportSize, expect
from tree import Tree
from watch import CUT_OFF, SEE_THROUGH, TOO_WIDE, WINDOW, Watch

from labkit.chapters import index
from labkit.lesson.explore import Choice, Explorer, Whole, Words
from labkit.lesson.registry import chapter_list, find

pytestmark = pytest.mark.browser

Open = Callable[[str], Notebook]

WIDGET = "application/vnd.jupyter.widget-view+json"
TENSORS = "02_tensors"
PAGES = ("00_start", TENSORS)
# The other pages take a minute each in a browser: `make test-all` opens them.
OTHERS = [name for name in Tree().names() if name not in PAGES]

EVERY = [*PAGES, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
# What a sentence says of a run in the page's own process: here it would be another run.
MEASURED = {"4.2-timeline": re.compile("(?<=the trainer waits ).*(?= the article's)")}
EXPLORERS = [
    pytest.param(page, explorer.id, marks=[] if page in PAGES else pytest.mark.slow)
    for number, page in index.PAGES.items()
    for explorer in chapter_list("explorer", number)
]
ANSWERS = 20_000  # milliseconds that a busy machine may take to draw
TRAP = "2.1.1"
EXERCISE = "2.1-batch"
PICTURE = "(cell) => cell.querySelector('.jp-RenderedImage img')?.src"
# JupyterLab's own complaints, with the reason why each is none of a page's.
ALLOWED = {
    # its debugger had asked the kernel that the test then killed
    "Could not restore the debugger state: Canceled future for debug_request message"
}


def said(outputs: list[dict[str, Any]]) -> str:
    """All text of a cell's outputs."""
    texts = []
    for output in outputs:
        data = output.get("data", {})
        text = output.get("text") or data.get("text/markdown") or data.get("text/plain")
        texts.append(text if isinstance(text, str) else "".join(text or []))
    return "\n".join(texts)


@pytest.mark.parametrize("name", EVERY)
def test_run_all_on_the_untouched_page_reaches_the_end(ran: Open, name: str) -> None:
    cells = ran(name).code_cells()
    assert len(cells) >= 3
    assert [cell["count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        kinds = [output["output_type"] for output in cell["outputs"]]
        assert "error" not in kinds, cell["source"]
        assert "Not run" not in said(cell["outputs"]), cell["source"]


@pytest.mark.parametrize("name", EVERY)
def test_a_saved_page_keeps_pictures_and_no_controls(ran: Open, name: str) -> None:
    notebook = ran(name)
    shown = notebook.code_cells()
    notebook.save()
    stored = json.loads(notebook.path.read_text(encoding="utf-8"))
    assert "widgets" not in stored["metadata"]
    kept = [o for c in stored["cells"] for o in c.get("outputs", [])]
    live = [o for c in shown for o in c["outputs"]]
    assert any(WIDGET in output.get("data", {}) for output in live)
    assert not any(WIDGET in output.get("data", {}) for output in kept)
    pictures = ["image/png" in output.get("data", {}) for output in kept]
    assert sum(pictures) == sum("image/png" in o.get("data", {}) for o in live)


@pytest.mark.parametrize(("page", "id"), EXPLORERS)
def test_the_keyboard_moves_picture_and_sentence(ran: Open, page: str, id: str) -> None:
    notebook = ran(page)
    cell = notebook.cell(f'lk.explore("{id}")')
    sentence = cell.locator(".jp-RenderedMarkdown").last
    explorer: Explorer = find("explorer", id)
    places = cell.locator("select, .noUi-handle, input[type=text]")
    expect(places).to_have_count(len(explorer.controls))
    place_of = dict(zip(explorer.controls, places.all(), strict=True))
    places.first.focus()
    for place in place_of.values():
        reach(place)
    expect(sentence).to_have_text(sayable(explorer, explorer.start()))
    for control in explorer.controls:
        values = explorer.start()
        there = way(explorer, control)
        back = [(name, values[name]) for name, _ in reversed(there)]
        for name, value in [*there, *back]:
            picture = cell.evaluate(PICTURE)
            place_of[name].focus()
            move(notebook, explorer.controls[name], values[name], value)
            values[name] = value
            expect(sentence).to_have_text(sayable(explorer, values), timeout=ANSWERS)
            notebook.page.wait_for_function(
                f"([cell, old]) => ![undefined, old].includes(({PICTURE})(cell))",
                arg=[cell.element_handle(), picture],
            )


def sayable(explorer: Explorer, values: dict[str, Any]) -> str | re.Pattern[str]:
    """The sentence for these values, or a pattern where it tells what was measured."""
    says = explorer.render(values)[1]
    if explorer.id not in MEASURED:
        return says
    told = MEASURED[explorer.id].split(says)
    assert len(told) == 2, says
    return re.compile(".*".join(map(re.escape, told)))


def way(explorer: Explorer, control: str) -> list[tuple[str, Any]]:
    """Changes from the start, each to another picture and sentence, of a control at last.

    One where it changes something there, two where another one has to be changed first.
    """
    start = explorer.start()
    for value in changing(explorer, start, control):
        return [(control, value)]
    for other in (name for name in explorer.controls if name != control):
        for first in changing(explorer, start, other):
            for value in changing(explorer, {**start, other: first}, control):
                return [(other, first), (control, value)]
    raise AssertionError(f"{explorer.id}: {control} changes nothing")


def changing(explorer: Explorer, values: dict[str, Any], name: str) -> Iterator[Any]:
    """The values of one control that make another picture and another sentence."""
    picture, words = explorer.render(values)
    for value in explorer.controls[name].tried:
        other = explorer.render({**values, name: value})
        typed = value != ""  # an empty line cannot be told from one not yet typed
        if typed and other[0] != picture and other[1] != words:
            yield value


def reach(place: Locator) -> None:
    """Press Tab until a control has the focus."""
    for _ in range(4):
        if place.evaluate("(place) => place === document.activeElement"):
            return
        place.page.keyboard.press("Tab")
    raise AssertionError("Tab does not reach the next control")


def move(
    notebook: Notebook, control: Choice | Whole | Words, old: Any, value: Any
) -> None:
    """Change the control that has the focus from `old` to `value`, by its keys."""
    keyboard = notebook.page.keyboard
    if isinstance(control, Choice):
        # JupyterLab takes the arrow keys from a list that is not open:
        # https://github.com/jupyter-widgets/ipywidgets/issues/3912
        choose(notebook, list(control.values).index(value))
    elif isinstance(control, Whole):
        key = "ArrowRight" if value > old else "ArrowLeft"
        for _ in range(abs(value - old)):
            keyboard.press(key)
    else:
        keyboard.press("ControlOrMeta+A")
        keyboard.type(value)
        keyboard.press("Enter")


def choose(notebook: Notebook, wanted: int) -> None:
    """Open the list that has the focus, go to an entry by the arrow keys, and take it.

    A list needs a moment to open, and a busy browser a longer one: keys that came before
    are lost, and are pressed again.
    """
    keyboard, page = notebook.page.keyboard, notebook.page
    for pause in (50, 200, 800):
        at = page.evaluate("() => document.activeElement.selectedIndex")
        key = "ArrowDown" if wanted > at else "ArrowUp"
        for press in ("Space", *[key] * abs(wanted - at), "Enter"):
            keyboard.press(press)
            page.wait_for_timeout(pause)
        if page.evaluate("() => document.activeElement.selectedIndex") == wanted:
            return
    raise AssertionError(f"the arrow keys do not reach entry {wanted} of the list")


def test_a_prediction_is_kept_and_answered(sitting: Notebook) -> None:
    choice = predict(sitting, number=1)
    run_trap = f'lk.trap("{TRAP}"'
    replied = said(sitting.run(run_trap))
    assert f"You said “{choice}”. {find('trap', TRAP).choices[choice]}" in replied
    expect(sitting.cell(run_trap)).to_contain_text("You said “")


def predict(notebook: Notebook, number: int) -> str:
    """Run the page up to the first prediction, and click a button; return the choice."""
    asking = f'lk.predict("{TRAP}")'
    notebook.run_to(asking)
    cell = notebook.cell(asking)
    cell.get_by_role("button", name=str(number), exact=True).click()
    expect(cell).to_contain_text(f"Noted: {number}. Run the next cell.")
    return str(find("trap", TRAP).listed[number - 1])


def test_an_exercise_done_wrong_then_right(sitting: Notebook) -> None:
    sitting.run_to("lk.setup(")
    exercise = find("exercise", EXERCISE)
    cell = f'lk.check("{EXERCISE}"'
    assert "○" in said(sitting.run(cell))
    wrong = exercise.wrong[0]
    sitting.write(cell, answer_cell(sitting.source(cell), wrong.answer))
    verdict = said(sitting.run(cell))
    assert "✗" in verdict
    assert wrong.message in verdict
    sitting.write(cell, answer_cell(sitting.source(cell), exercise.reference))
    verdict = said(sitting.run(cell))
    assert "✓" in verdict
    assert "✗" not in verdict


def answer_cell(source: str, answer: Callable[..., Any]) -> str:
    """The exercise's cell with the stub replaced by an answer, under the stub's name."""
    check = next(line for line in source.splitlines() if "lk.check(" in line)
    name = check.split("=")[0].strip()
    written = re.sub(
        rf"^(def|class) {answer.__name__}\b", rf"\1 {name}", inspect.getsource(answer)
    )
    return f"{written}\n{check}"


def test_progress_survives_a_reload_and_a_killed_kernel(sitting: Notebook) -> None:
    sitting.run_to("lk.setup(")
    table = "lk.progress(2)  # still there?"
    sitting.add(table)
    earlier = said(sitting.run(table))
    choice = predict(sitting, number=2)
    before = said(sitting.run(table))
    # an answer that an earlier test gave before the trap ran is the one that counts
    right = choice == find("trap", TRAP).answer
    assert before == earlier.replace("| none yet |", f"| {right:d} of 1 |")
    assert " of 1 |" in before
    sitting.save()
    sitting.open()
    sitting.kill_kernel()
    sitting.run_to(f'lk.predict("{TRAP}")')
    expect(sitting.cell(f'lk.predict("{TRAP}")')).to_contain_text("Noted earlier: 2")
    assert said(sitting.run(table)) == before
    assert f"You said “{choice}”" in said(sitting.run(f'lk.trap("{TRAP}"'))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", EVERY)
def test_looks(ran: Open, tmp_path: Path, name: str, theme: str) -> None:
    notebook = ran(name)
    notebook.theme(theme)
    folder = os.environ.get("LABKIT_SCREENSHOTS")
    for width in (1280, 800):
        size = ViewportSize(width=width, height=WINDOW["height"])
        notebook.page.set_viewport_size(size)
        path = Path(folder or tmp_path) / f"{name}-{width}-{theme}.png"
        first, *_ = notebook.photograph(path, most=99 if folder else 1)
        with Image.open(first) as picture:
            corner = np.asarray(picture.convert("L"))[2, 2]
        assert corner > 200 if theme == "light" else corner < 60
        faults = {
            "too wide": TOO_WIDE,
            "see-through": SEE_THROUGH,
            "lines of code cut off": CUT_OFF,
        }
        found = {fault: notebook.panel.evaluate(js) for fault, js in faults.items()}
        assert not any(found.values()), found


@pytest.mark.parametrize("names", [PAGES, pytest.param(OTHERS, marks=pytest.mark.slow)])
def test_no_request_left_the_machine_and_nothing_complained(
    ran: Open, watch: Watch, names: list[str]
) -> None:
    for name in names:
        assert ran(name).code_cells()
    assert len(watch.requests) > 50
    complaints = [text for text in watch.complaints if not is_jupyterlabs(text)]
    assert (watch.outside, complaints) == ([], [])


def is_jupyterlabs(complaint: str) -> bool:
    return any(complaint.startswith(text) for text in ALLOWED)
