"""``{versions}``: the changelog with a list of its versions, each of which has an anchor that a link can name."""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from links import ROOT, on_the_site
from sphinx.util.docutils import SphinxDirective

import graphveil

CHANGELOG = ROOT / "CHANGELOG.md"
VERSION = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<day>\S+))?$", re.MULTILINE)


def versioned(text: str, current: str) -> str:
    """Return a changelog below its title: what it says first, the list of its versions, then each under its anchor.

    Args:
        text: of the file, in the format of Keep a Changelog.
        current: the version that the site tells of.
    """
    found = list(VERSION.finditer(text))
    preamble = text[: found[0].start()].partition("\n")[2].strip()
    listed = [f"- [{one['name']}](#{anchor(one)})" + (f", {one['day']}" if one["day"] else "") for one in found]
    body = VERSION.sub(lambda one: f"({anchor(one)})=\n## {one['name']}", text[found[0].start() :])
    return "\n\n".join([preamble, f"These pages tell of version {current}. Versions:", "\n".join(listed), body])


def anchor(version: re.Match[str]) -> str:
    return f"version-{version['name'].lower()}"


class Versions(SphinxDirective):
    """The changelog of the repository."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(CHANGELOG))
        text = versioned(CHANGELOG.read_text(encoding="utf-8"), graphveil.__version__)
        page = Path(self.env.doc2path(self.env.docname))
        return self.parse_text_to_nodes(on_the_site(text, CHANGELOG, page), allow_section_headings=True)


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("versions", Versions)
    return {"parallel_read_safe": True}
