"""Links that read well in the repository become links of the site, and the links of index pages its contents.

A page of the site may show a file that lies beside docs/, such as the changelog: links to that file reach the page.
"""

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: file of the repository -> the page that includes it
INCLUDED = {
    "README.md": "docs/index.md",
    "CHANGELOG.md": "docs/reference/changelog.md",
    "CONTRIBUTING.md": "docs/explanation/contributing.md",
    "SECURITY.md": "docs/explanation/security.md",
    "CODE_OF_CONDUCT.md": "docs/explanation/code-of-conduct.md",
    "benchmarks/README.md": "docs/reference/benchmarks.md",
    "src/graphveil/methods/pretrained/class-sums.md": "docs/reference/reader-class-sums.md",
    "src/graphveil/methods/pretrained/label-pool.md": "docs/reference/reader-label-pool.md",
}
LINK = re.compile(r"(?<=\]\()[^)\s#:]+(?=[#)])")


def on_the_site(text: str, file: Path, page: Path) -> str:
    """Return the text of a file as it stands on a page, every relative link made for that page."""

    def target(match: re.Match[str]) -> str:
        linked = Path(os.path.normpath(file.parent / match[0])).relative_to(ROOT).as_posix()
        return Path(os.path.relpath(ROOT / INCLUDED.get(linked, linked), page.parent)).as_posix()

    return LINK.sub(target, text)


def contents(text: str) -> str:
    """Return an index page with its contents: the pages beside it, parts below it and notebooks that it links to."""
    listed = dict.fromkeys(re.findall(r"\]\(([\w.-]+|[\w-]+/index|\.\./notebooks/[\w-]+)\.(?:md|ipynb)\)", text))
    return "\n".join([text, "```{toctree}", ":hidden:", "", *listed, "```", ""])


def read(app: Any, docname: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".md":
        source[0] = on_the_site(source[0], page, page)
        if page.stem == "index":
            source[0] = contents(source[0])


def include(app: Any, path: Path, docname: str, source: list[str]) -> None:
    """The event names no page that could be trusted: MyST tells the last part of its name alone."""
    file = Path(os.path.normpath(Path(app.srcdir) / path))
    source[0] = on_the_site(source[0], file, ROOT / INCLUDED[file.relative_to(ROOT).as_posix()])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", read)
    app.connect("include-read", include)
    return {"parallel_read_safe": True}
