"""The changelog on its page: a list of its versions, each of which has an anchor that a link can name."""

import re
from pathlib import Path
from typing import Any

import graphveil

VERSION = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<day>\S+))?$", re.MULTILINE)


def versioned(text: str, current: str) -> str:
    """Return a changelog with the list of its versions above the first of them.

    Args:
        text: of the file, in the format of Keep a Changelog.
        current: the version that the site tells of.
    """
    versions = list(VERSION.finditer(text))
    first = versions[0].start()
    listed = [
        f"- [{version['name']}](#{anchor(version)})" + (f", {version['day']}" if version["day"] else "")
        for version in versions
    ]
    body = VERSION.sub(lambda version: f"({anchor(version)})=\n## {version['name']}", text[first:])
    return "\n".join([text[:first] + f"These pages tell of version {current}. Versions:\n", *listed, "", body])


def anchor(version: re.Match[str]) -> str:
    return f"version-{version['name'].lower()}"


def include(app: Any, path: Path, docname: str, source: list[str]) -> None:
    if Path(path).name == "CHANGELOG.md":
        source[0] = versioned(source[0], graphveil.__version__)


def setup(app: Any) -> dict[str, bool]:
    app.connect("include-read", include)
    return {"parallel_read_safe": True}
