"""What README and docs say can be typed, run, clicked and looked up."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from graphveil.cli import main
from graphveil.cli.app import build
from graphveil.cli.base.choices import collect
from graphveil.cli.compare.command import comparison_of
from graphveil.graphs import NAMES
from graphveil.mechanisms.catalogue import catalogue
from graphveil.methods import METHODS
from graphveil.methods.registry import tagged
from graphveil.reproduction.catalogue import find_exhibit
from tests.pages import DOCS, ROOT, generated, pages
from tests.pages import page as page_named
from tests.pages import table as table_of

PAGES = [
    ROOT / "README.md",
    *(page for page in pages() if not page.read_text(encoding="utf-8").startswith("```{include}")),
]
#: Pages about the project: their links and make commands are tried, they show no command of ours.
PROJECT = [ROOT / name for name in ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")]
RUNNABLE = re.compile(r"digits|social(-\d+)?|docs/examples/\w+|runs/[\w-]+|parts/\w+")
#: The collection of a tutorial is made by a collector and devices: tests/cli/test_collect.py types the whole page.
NAMED = re.compile(r"tried|collected|social-\d+|facebook100-[a-z0-9-]+|" + "|".join(map(re.escape, NAMES)))
RESULTS = {"attack", "predict", "report"}  # their first word is a run folder
#: Three parties at once: tests/federation.
NETWORK = {f"federation {step}" for step in ("serve", "join", "predict", "status", "verify")}
#: A collector and a device at once: tests/cli/test_collect.py types the whole page.
NETWORK |= {f"collect {step}" for step in ("serve", "open", "status", "close", "export", "phones")}
#: A page until Ctrl-C: tests/studio/test_page.py serves and walks it.
NETWORK |= {"studio docs/examples"}
NETWORK |= {f"device {step}" for step in ("enrol", "show", "answer", "spent")}
LABELS_ONLY = {"label-propagation", "label-pool", "answer-pool"}
LINKS = {"solitude", "link-beliefs", "list-sums", "links", "blink", "dprr"}
COUNTS = {"class-counts"}
NO_EPOCHS = LABELS_ONLY | COUNTS | {"link-beliefs", "list-sums", "links"}

#: How the test shortens long work: what is added to a command, or exchanged in it, when the condition holds.
#:   a network is trained                               + --epochs 3
#:   compare                                            + --repeats 1 --no-controls
#:   label-only, lists, counts, or a total to split     + --no-controls, and social-200 in place of digits
#:   tune                                               the same
SMALL = "social-200"


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[list[str]]:
    """The words of every graphveil and make command in the shell blocks of a page, comments left out."""
    lines = "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    typed = [shlex.split(line, comments=True) for line in lines]
    assert all(words[0] in ("graphveil", "make") for words in typed if words), typed
    return [words for words in typed if words]


def shortened(words: list[str]) -> list[str]:
    """The same command with less work."""
    if words[0] not in ("train", "compare", "tune"):
        return words
    methods = set(words[1].split(","))
    if words[0] == "compare":
        words = [*words, "--repeats", "1", "--no-controls"]
    if methods & (LABELS_ONLY | LINKS | COUNTS) or "--epsilon" in words or words[0] == "tune":
        words = [*(SMALL if word == "digits" else word for word in words), "--no-controls"]
    return words if methods <= NO_EPOCHS else [*words, "--epochs", "3"]


@cache
def group() -> Any:
    return typer.main.get_command(build())


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """The command's name and its parameters, as the CLI reads them; fails on what it does not know."""
    command, path = group(), []
    while hasattr(command, "commands"):
        path.append(words[0])
        command, words = command.commands[words[0]], words[1:]
    parameters: dict[str, Any] = command.make_context(path[-1], list(words)).params
    return " ".join(path), parameters


def data_of(words: list[str], parameters: dict[str, Any]) -> list[str]:
    if words[0] == "reproduce":
        return [] if words[1] == "list" else list(find_exhibit(words[1]).data)
    return (
        [str(parameters["data"])] if parameters.get("data") is not None else [words[1]] if words[0] in RESULTS else []
    )


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_are_known_to_the_cli(page: Path) -> None:
    """Also those that need a download: command, options, method, settings and data names."""
    for word, *words in commands(page):
        if word == "make":
            continue
        if "--config" in words:  # read while the words are parsed
            words[words.index("--config") + 1] = str(ROOT / words[words.index("--config") + 1])
        command, parameters = parsed(words)
        if command == "compare":
            comparison_of(parameters["methods"], parameters["data"], parameters)
        elif parameters.get("method") is not None:
            collect(parameters["method"], METHODS[parameters["method"]], parameters)
        for data in data_of(words, parameters):
            assert RUNNABLE.fullmatch(data) or NAMED.fullmatch(data), data
            assert not data.startswith("docs/") or (ROOT / data).is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_on_embedded_graphs_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the order of the page, in one empty folder, so that later commands find what earlier ones wrote."""
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHVEIL_DATA", str(tmp_path / "data"))
    for word, *words in commands(page):
        if word == "make" or not all(RUNNABLE.fullmatch(data) for data in data_of(words, parsed(words)[1])):
            continue
        if " ".join(words[:2]) in NETWORK:
            continue
        code = main(shortened(words))
        assert code == 0, f"graphveil {' '.join(words)}: {capsys.readouterr().err}"


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_python_examples_run_and_print_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One script from top to bottom; the comment behind each print is what it prints."""
    monkeypatch.chdir(tmp_path)
    script = "\n".join(blocks(page, "python"))
    expected = re.findall(r"^ *print\(.*\)  # (.+)$", script, re.MULTILINE)
    assert len(expected) == len(re.findall(r"^ *print\(", script, re.MULTILINE)), "a print without its comment"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(script, page.name, "exec"), {"__name__": "example"})
    assert out.getvalue().splitlines() == expected


def links(page: Path) -> Iterator[tuple[str, str]]:
    """(path, anchor) of every relative link and picture."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("http://", "https://")):
            path, _, anchor = target.partition("#")
            yield path, anchor


def anchors(page: Path) -> set[str]:
    """The anchors GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *PROJECT], ids=name)
def test_links_and_pictures_exist(page: Path) -> None:
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert target.is_relative_to(ROOT), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"
        if page.is_relative_to(DOCS):  # the site shows neither folders nor the sections of the README
            assert target.is_file() and not (target.name == "README.md" and target.parent == ROOT and anchor), path


#: Parts of the documentation that are read from top to bottom: five minutes a page. The rest is looked up.
READ = [page for part in ("start", "tutorials", "how-to", "explanation") for page in sorted((DOCS / part).glob("*.md"))]


@pytest.mark.parametrize("page", [page for page in READ if page in PAGES], ids=name)
def test_a_page_is_read_in_five_minutes(page: Path) -> None:
    """220 words a minute."""
    assert len(page.read_text(encoding="utf-8").split()) <= 1100


def test_every_page_can_be_reached_from_the_readme() -> None:
    """Over any number of links."""
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        targets = {(page.parent / path).resolve() for path, _ in links(page) if path.endswith(".md")}
        waiting += targets - reached
    assert {*PAGES, *PROJECT} <= reached


def test_make_commands_have_targets() -> None:
    named = {words[1] for page in [*PAGES, *PROJECT] for words in commands(page) if words[0] == "make"}
    named |= {target for page in PROJECT for target in re.findall(r"`make ([\w-]+)`", page.read_text(encoding="utf-8"))}
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"demo", "test"} <= named <= set(targets)


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    text = page_named(page).split(f"# {heading}\n", 1)[1]
    table = re.search(r"^\|.*?(?=\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
    assert table is not None
    lines = table[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_option_is_listed_and_every_listed_option_is_there() -> None:
    there = {option for parameter in group().params for option in parameter.opts}
    waiting = list(group().commands.values())
    while waiting:
        command = waiting.pop()
        waiting += getattr(command, "commands", {}).values()
        there |= {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    names = re.findall(r"^\| `(.+?)` \|", generated("options"), re.MULTILINE)
    assert {option for name in names for option in re.findall(r"--[a-z-]+", name)} == there


def test_every_command_method_and_data_set_is_listed() -> None:
    assert [command for command in group().commands if f"`graphveil {command}" not in generated("commands")] == []
    methods = (DOCS / "reference" / "methods" / "index.md").read_text(encoding="utf-8")
    assert [method for method in METHODS if f"[`{method}`](" not in methods] == []
    named = set(re.findall(r"`([\w-]+)`", page_named("data-sets")))
    named |= {f"twitch-{country}" for country in re.findall(r"`-(\w\w)`", page_named("data-sets"))}
    assert set(NAMES) <= named


def test_every_methods_settings_stand_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference" / "methods").glob("*.md"))
    named = {name for names in re.findall(r"^```\{settings\} (\S+)$", text, re.MULTILINE) for name in names.split(",")}
    shared = {"label-propagation", "label-pool", "upgnet", *tagged("baseline")}
    assert named == set(METHODS) - shared


def test_every_mechanism_of_features_and_categories_has_its_figures() -> None:
    from graphveil.mechanisms.catalogue import feature_names

    categories = [info.name for info in catalogue() if info.kind == "labels"]
    for page, names in (("feature-mechanisms", feature_names()), ("category-mechanisms", categories)):
        assert re.findall(r"^\| `([\w-]+)` \|", generated(page), re.MULTILINE)[-len(names) :] == list(names)
    assert all(name in METHODS["lpgnn"].options["mechanism"].help for name in feature_names())


def test_settings_of_a_federation_are_those_of_the_program() -> None:
    from graphveil.federation.core.setting import OPTIONS

    listed = {row[0].strip("`"): row[1] for row in table_of("federation-settings")}
    assert listed == {name: "none" if name == "epsilon" else str(value) for name, value in OPTIONS.items()}


def test_every_message_of_a_federation_is_explained() -> None:
    from graphveil.federation import KINDS

    assert re.findall(r"^\| `(.+?)` \|", generated("messages"), re.MULTILINE) == list(KINDS)


def test_error_messages_of_own_files_are_those_of_the_program() -> None:
    package = ROOT / "src" / "graphveil"
    files = [package / "files" / "reading.py", package / "runtime" / "checks.py", *(package / "graphs").rglob("*.py")]
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    literal = re.sub(r"\{[^{}]*\}", "...", source)
    for message, *_ in table_of("refusals"):
        for part in re.findall(r"`([^`]+)`", message):
            for piece in part.split("..."):
                assert piece.strip(" ,.") in literal, message


def test_the_keys_of_graph_toml_are_all_explained() -> None:
    from graphveil.graphs.declared.declaration import KEYS

    listed = {key for row in rows("own-data", "graph.toml") for key in re.findall(r"`(\w+)`", row[0])}
    assert listed == set(KEYS)


@pytest.mark.slow  # the script makes a town
def test_the_example_folder_is_what_its_script_makes(tmp_path: Path) -> None:
    folder = ROOT / "docs" / "examples" / "town"
    shutil.copy(folder / "make.py", tmp_path)
    space: dict[str, Any] = {"__name__": "__main__", "__file__": str(tmp_path / "make.py")}
    exec((tmp_path / "make.py").read_text(encoding="utf-8"), space)
    for table in ("nodes.csv", "edges.csv"):
        assert (tmp_path / table).read_bytes() == (folder / table).read_bytes(), table
