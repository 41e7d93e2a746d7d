"""Showing a figure so that everyone gets it: with words for those who do not see it."""

import base64
import io
from typing import TYPE_CHECKING

from labkit.lesson.evidence import LabError, page_call, shell

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def png_of(figure: "Figure") -> bytes:
    """The figure as PNG, on white, which also reads on dark themes.

    Without matplotlib's version in it, the bytes are the same from run to run.
    """
    figure.set_facecolor("white")
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


@page_call
def show_figure(figure: "Figure", alt: str) -> None:
    """Show a matplotlib figure with `alt`, the sentence that says what it shows.

    In a script the sentence is printed.  Raises LabError for something that is no
    figure, and for a missing sentence.
    """
    if not hasattr(figure, "savefig"):
        raise LabError(
            f"show_figure: figure is a matplotlib Figure; a {type(figure).__name__} came"
        )
    if not isinstance(alt, str) or not alt.strip():
        raise LabError(
            f"show_figure: alt is a sentence that says what the figure shows; {alt!r} came"
        )
    if shell() is None:
        print(alt)
        return
    from IPython.display import display

    data = {"image/png": base64.b64encode(png_of(figure)).decode(), "text/plain": alt}
    display(data, raw=True, metadata={"image/png": {"alt": alt}})
