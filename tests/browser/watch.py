"""What the tabs ask of any network, what they complain about, and what is too wide."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Page, ViewportSize

WINDOW = ViewportSize(width=1280, height=900)


@dataclass
class Watch:
    """What all tabs asked of any network, and what they complained about."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def follow(self, page: Page) -> None:
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", lambda socket: self.requests.append(socket.url))
        page.on("console", self.hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            where = message.location.get("url", "")
            self.complaints.append(f"{message.text} ({where})")

    @property
    def outside(self) -> list[str]:
        """The requests to another machine than this one."""
        return [url for url in self.requests if not is_local(url)]


def is_local(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob") or parts.hostname in (
        "127.0.0.1",
        "localhost",
    )


# What does not fit into its width, so that a reader would have to scroll sideways: the
# outputs that scroll by themselves, and the innermost elements that stick out of the page.
TOO_WIDE = """(panel) => {
  const right = panel.getBoundingClientRect().right + 1;
  const sticks = (element) => element.getBoundingClientRect().right > right;
  const outputs = '.jp-OutputArea-output, .jp-OutputArea-output > *, .jp-MarkdownOutput';
  const scrolling = [...panel.querySelectorAll(outputs)].filter((element) =>
    element.scrollWidth > element.clientWidth + 1);
  const out = panel.scrollWidth <= panel.clientWidth + 1 ? []
    : [...panel.querySelectorAll('*')].filter((element) => sticks(element) &&
        element.textContent.trim() && !element.closest('.cm-scroller') &&
        ![...element.children].some(sticks));
  return [...scrolling, ...out].map((element) => element.textContent.slice(0, 100));
}"""
# Lines of code that are cut off.
CUT_OFF = """(panel) => [...panel.querySelectorAll('.jp-CodeCell .cm-scroller')]
  .filter((element) => element.scrollWidth > element.clientWidth + 1)
  .map((element) => element.innerText.slice(0, 80))"""
# Pictures through which a dark theme would show.
SEE_THROUGH = """(panel) => [...panel.querySelectorAll('.jp-RenderedImage img')]
  .filter((picture) => {
    const canvas = document.createElement('canvas');
    canvas.width = picture.naturalWidth;
    canvas.height = picture.naturalHeight;
    const drawing = canvas.getContext('2d');
    drawing.drawImage(picture, 0, 0);
    const points = drawing.getImageData(0, 0, canvas.width, canvas.height).data;
    return points.some((value, place) => place % 4 === 3 && value < 255);
  })
  .map((picture) => picture.closest('.jp-CodeCell').innerText.slice(0, 80))"""
