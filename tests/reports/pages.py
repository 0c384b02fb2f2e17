"""Pages read as a browser would, and a name that would harm one that shows it unescaped."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"' & |`x`$a^b$\n# heading \x1b[31m"


class Page(HTMLParser):
    """Collects what a browser would: elements, attributes, visible text, scripts."""

    VOID = frozenset(("meta", "link", "img", "br", "hr", "input"))

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def read(html: str) -> Page:
    """A page whose elements are all closed."""
    page = Page()
    page.feed(html)
    page.close()
    assert page.open == []
    return page
