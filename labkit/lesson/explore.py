"""A picture with live controls, which stays a picture when it is saved or printed."""

import base64
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from labkit.lesson.evidence import (
    LabError,
    code,
    complete,
    has_widgets,
    literal,
    one_line,
    page_call,
    plain_text,
    say,
    shell,
    show_widget,
    strict,
)
from labkit.lesson.figure import png_of
from labkit.lesson.registry import find


@dataclass(frozen=True)
class Choice:
    """A list to choose from; the first value is the start."""

    values: Sequence[Any]

    @property
    def start(self) -> Any:
        return self.values[0]

    @property
    def tried(self) -> Sequence[Any]:
        """The values that tests go through."""
        return self.values

    def widget(self, label: str) -> Any:
        import ipywidgets as w

        options = [(str(value), value) for value in self.values]
        return w.Dropdown(options=options, value=self.start, **looks(label))


@dataclass(frozen=True)
class Whole:
    """A slider over whole numbers from `low` to `high`, both included."""

    low: int
    high: int
    start: int

    @property
    def tried(self) -> Sequence[int]:
        return range(self.low, self.high + 1)

    def widget(self, label: str) -> Any:
        import ipywidgets as w

        return w.IntSlider(
            value=self.start,
            min=self.low,
            max=self.high,
            continuous_update=False,
            # left to itself, its track shrinks to nothing beside a long label
            **looks(label, width=f"{13 + 0.6 * len(label):.0f}em"),
        )


@dataclass(frozen=True)
class Words:
    """A line of text, taken when Enter is pressed or the box is left.

    `examples` are what tests type, bad input included.
    """

    start: str
    examples: tuple[str, ...]

    @property
    def tried(self) -> Sequence[str]:
        return (self.start, *self.examples)

    def widget(self, label: str) -> Any:
        import ipywidgets as w

        return w.Text(value=self.start, continuous_update=False, **looks(label))


@dataclass(frozen=True)
class Explorer:
    """`draw(figure, **values)` draws, and returns a sentence saying what it shows now.

    `controls` gives each parameter of `draw` its control, `labels` the words beside it
    (its name where there are none), `size` is the figure's in inches.
    """

    id: str
    draw: Callable[..., str]
    controls: dict[str, Choice | Whole | Words]
    labels: dict[str, str] = field(default_factory=dict)
    size: tuple[float, float] = (6.8, 3.6)

    def start(self) -> dict[str, Any]:
        """The values that the controls start with."""
        return {name: control.start for name, control in self.controls.items()}

    def render(self, values: dict[str, Any]) -> tuple[bytes, str]:
        """The picture as PNG for these values, and the sentence about it."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=self.size, dpi=100, layout="constrained")
        says = self.draw(figure, **values)
        return png_of(figure), says

    def bundle(self, values: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
        """The picture's output for these values, or the reason why there is none."""
        record = complete({"explorer": self.id, "controls": list(self.controls)})
        try:
            png, says = self.render(values)
        except Exception as error:
            if strict():
                raise
            said = ", ".join(f"{self.label(k)} = {v}" for k, v in values.items())
            text = f"**No picture** for {code(said)}: {code(one_line(error))}"
            data = {"text/markdown": text, "text/plain": plain_text(text)}
            return data, {"labkit": [record]}
        data = {"image/png": base64.b64encode(png).decode(), "text/plain": says}
        return data, {"image/png": {"alt": says}, "labkit": [record]}

    def label(self, name: str) -> str:
        return self.labels.get(name, name)


@page_call
def explore(id: str) -> None:
    """Show the explorer `id`: its controls, its picture, and a sentence about it.

    The controls are widgets; picture and sentence are ordinary outputs that follow
    them, so that a saved page and a front end without widgets keep the last picture.
    Raises LabError for an unknown explorer.
    """
    explorer: Explorer = find("explorer", id)
    if shell() is None:
        raise LabError(
            f"explore {id}: a picture with controls needs a notebook; this is a script"
        )
    from IPython.display import display

    knobs: dict[str, Any] = {}
    if has_widgets():
        knobs = {
            name: control.widget(explorer.label(name))
            for name, control in explorer.controls.items()
        }
        show_widget(row(list(knobs.values())))
    else:
        say(
            "Controls need ipywidgets, which is not installed; this is the first picture."
        )
    picture, sentence = uuid.uuid4().hex, uuid.uuid4().hex

    def update(change: Any = None) -> None:
        values = {name: knob.value for name, knob in knobs.items()}
        data, metadata = explorer.bundle(values or explorer.start())
        says = data["text/plain"] if "image/png" in data else "Change a control."
        again = change is not None
        display(data, raw=True, metadata=metadata, display_id=picture, update=again)
        words = {"text/markdown": literal(says), "text/plain": says}
        display(words, raw=True, display_id=sentence, update=again)

    update()
    for knob in knobs.values():
        knob.observe(update, names="value")


def row(widgets: list[Any]) -> Any:
    """The controls side by side, in as many lines as the window needs."""
    import ipywidgets as w

    return w.HBox(widgets, layout=w.Layout(flex_flow="row wrap"))


def looks(label: str, width: str = "") -> dict[str, Any]:
    """How every control looks: its label in full beside it, and as wide as it needs."""
    import ipywidgets as w

    return {
        "description": label,
        "style": {"description_width": "initial"},
        "layout": w.Layout(
            width=width or "auto",
            max_width="100%" if width else "21em",
            margin="2px 18px 2px 0",
        ),
    }
