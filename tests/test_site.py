"""The site is built without a warning, asks no other host for anything, and is complete."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import typer

import graphveil
from graphveil.cli.app import build
from tests.pages import DOCS, pages

ROOMS = sorted(
    path.stem.removeprefix("graphveil.") for path in (DOCS / "reference" / "api").glob("*.md") if path.stem != "index"
)
#: Attributes by which a page loads something, in place of those that wait for a click.
LOADED = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", folder / "cache", DOCS, folder / "html"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "html"


class Loads(HTMLParser):
    """Collects what a page loads when it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if LOADED.get(tag) == name]


def loads(text: str) -> list[str]:
    parser = Loads()
    parser.feed(text)
    return parser.addresses


def test_a_script_of_another_host_would_be_seen() -> None:
    assert loads('<script src="https://x.org/a.js"></script><a href="https://x.org">') == ["https://x.org/a.js"]


@pytest.mark.slow
def test_no_page_asks_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        foreign = [address for address in loads(page.read_text(encoding="utf-8")) if re.match(r"\w+:|//", address)]
        assert [address for address in foreign if not address.startswith("data:")] == [], page.name
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text(encoding="utf-8")), style.name


@pytest.mark.slow
def test_every_page_is_there_and_can_be_searched(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    listed = set(json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))["docnames"])
    for page in pages():
        docname = page.relative_to(DOCS).with_suffix("").as_posix()
        assert (site / f"{docname}.html").is_file() and docname in listed, docname
    assert (site / "search.html").is_file()


@pytest.mark.slow
def test_every_command_and_option_is_in_the_reference(site: Path) -> None:
    program = typer.main.get_command(build())
    for group, whole in program.commands.items():  # type: ignore[attr-defined]
        text = (site / "reference" / "cli" / f"graphveil-{group}.html").read_text(encoding="utf-8")
        waiting = [(f"graphveil {group}", whole)]
        while waiting:
            path, command = waiting.pop()
            waiting += [(f"{path} {name}", below) for name, below in getattr(command, "commands", {}).items()]
            assert f"{path}<" in text, path
            for parameter in command.params:
                assert parameter.opts[0] in text or parameter.opts[0].upper() in text, parameter.opts


def test_every_command_has_a_page_of_its_own() -> None:
    pages = (DOCS / "reference" / "cli").glob("graphveil-*.md")
    texts = {path.stem: path.read_text(encoding="utf-8") for path in pages}
    named: dict[str, str] = {}
    for name, command in typer.main.get_command(build()).commands.items():  # type: ignore[attr-defined]
        words = [name, *(f"{name} {below}" for below in getattr(command, "commands", {}))]
        parts = [f"# graphveil {command_words}\n\n```{{command}} {command_words}\n```\n" for command_words in words]
        named[f"graphveil-{name}"] = "\n#".join(parts)
    assert texts == named


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_reference(site: Path, room: str) -> None:
    text = (site / "reference" / "api" / f"graphveil.{room}.html").read_text(encoding="utf-8")
    module = importlib.import_module(f"graphveil.{room}")
    missing = [name for name in module.__all__ if f'id="graphveil.{room}.{name}"' not in text]
    assert missing == []


def test_the_rooms_of_the_library_are_in_the_reference() -> None:
    assert {name for name in graphveil.__all__ if (DOCS.parent / "src" / "graphveil" / name).is_dir()} <= set(ROOMS)
