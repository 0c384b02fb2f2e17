"""``data init`` and ``data import``: from tables to a plan, by options and by questions; nothing is half written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphveil.cli.data.declaring import Interview
from tests.cli.conftest import Terminal

TOWN = Path(__file__).parents[2] / "docs" / "examples" / "town"
ANSWERS = (
    *("--private", "edges", "--classes", "sports,choir,gardens,fire brigade,chess", "--directed", "no"),
    *("--set", "label=club", "--column", "district=category:old town,harbour,north,south,hills"),
    *("--column", "job=category:school,crafts,office,care,retired", "--column", "children=integer:0:8"),
    *("--column", "degree=ordinal:none,school,apprenticeship,university", "--column", "car=yes-no"),
    *("--column", "hobbies=tags:3:football,running,music,books,plants,cooking,games,engines"),
)


@pytest.fixture
def town(type_in: Terminal) -> Path:
    """A folder of two tables, in the folder where commands are typed."""
    folder = Path("town")
    folder.mkdir()
    for table in ("nodes.csv", "edges.csv"):
        shutil.copy(TOWN / table, folder)
    return folder


def test_from_tables_to_a_plan(type_in: Terminal, town: Path) -> None:
    answer = type_in("data", "init", town, *ANSWERS, "--json").json
    assert answer["checked"] == "3,000 people, 22 features, 5 classes; private: edges"
    assert answer["notes"] == ["age: { integer = [0, 120] }, as suggested: ages of people, in years"]
    assert (town / "graph.toml").read_text() == answer["toml"] and answer["questions"] == []
    type_in("data", "init", town, *ANSWERS).refused("exists already; --replace")
    narrow = type_in("data", "init", town, *ANSWERS, "--column", "age=integer:20:95", "--replace")
    assert (narrow.code, narrow.out) == (2, "")
    assert "nodes.csv, line 10: age is '16'; allowed: the declared range 20 to 95; graph.toml stays" in narrow.err
    done = type_in("data", "init", town, *ANSWERS, "--leave-out", "age", "--replace")
    assert done.code == 0 and "left out: age" in done.out and "graphveil data describe town" in done.out
    assert type_in("data", "describe", town, "--json").json["nodes"] == 3000
    assert type_in("plan", "class-sums", town, "--epsilon", "2", "--json").json["data"] == "town"


def test_what_is_open_is_one_line_and_a_draft_writes_nothing(type_in: Terminal, town: Path) -> None:
    refused = type_in("data", "init", town, *ANSWERS[2:6], "--column", "car=yes-no")
    refused.refused("error: graph.toml: 8 open questions: label: which column is the label, or none; private: ")
    drafted = type_in("data", "init", town, "--draft", "--json").json
    assert drafted["toml"] is None and drafted["roles"]["id"] == "person"
    assert [question["key"] for question in drafted["questions"]][:4] == ["label", "private", "classes", "directed"]
    assert "age: integer:0:120 (ages of people" in type_in("data", "init", town, "--draft").out
    Path("answers.toml").write_text('label = "club"\nprivate = []\n[columns]\n"*" = "yes-no"\n')
    complete = type_in("data", "init", town, "--answers", "answers.toml", *ANSWERS[2:6], "--draft", "--json").json
    assert "private = []" in complete["toml"] and 'job = "yes-no"' in complete["toml"]
    assert sorted(path.name for path in town.iterdir()) == ["edges.csv", "nodes.csv"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--column", "age"), "--column: 'age'; allowed: NAME=VALUE"),
        (("--column", "age=int:0:1"), "age: 'int:0:1' is not a kind; allowed: number:LOW:HIGH"),
        (("--column", "born=date:1990-01-01:2020-01-01"), "such as years, and declare integer:1900:2030; or leave"),
        (("--column", "remark=text"), "list all values that there may be, as category:A,B,C"),
        (("--column", "age=integer:0:x"), "'x' is not a number"),
        (("--column", "age=integer:0"), "the column 'age'"),
        (("--private", "edgs"), "private names 'edgs'"),
        (("--directed", "maybe"), "directed: 'maybe'; allowed: yes, no"),
        (("--set", "lable=club"), "unknown key 'lable'"),
        (("--answers", "none.json"), "none.json: no such file"),
    ],
)
def test_a_word_that_is_no_answer_is_refused(
    type_in: Terminal, town: Path, words: tuple[str, ...], message: str
) -> None:
    type_in("data", "init", town, *words).refused(message)


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, *lines: str | None) -> list[str]:
    """Have these lines typed; the questions that they answer."""
    typed: Iterator[str | None] = iter(lines)
    questions: list[str] = []

    def hear() -> str | None:
        line = next(typed)
        if line == "^C":
            raise KeyboardInterrupt
        return line

    monkeypatch.setattr(Interview, "here", lambda: Interview(hear, questions.append, questions.append))
    return questions


TYPED = (
    *("\n", "clubb\n", "club\n", "\n", "\n", "edges\n", "one\n", "sports,choir,gardens,fire brigade,chess\n", "no\n"),
    *("\n", "category:old town,harbour,north,south,hills\n", "category:school,crafts,office,care,retired\n", "what\n"),
    *("ordinal:none,school,apprenticeship,university\n", "integer:0:8\n", "yes-no\n", "leave-out\n"),
)


def test_questions_at_a_terminal_offer_what_everybody_knows(
    type_in: Terminal, town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = at_a_terminal(monkeypatch, *TYPED, "age=200\n", "age=60\n", "\n")
    assert type_in("data", "init", town).code == 0
    assert questions[0].startswith("A range or a list read off the data would leak it")
    assert "Which column of nodes identifies a person? [person]: " in questions
    assert "What may age hold? (ages of people, in years) [integer:0:120]: " in questions
    assert sum(line.endswith("please try again") for line in questions) == 4
    toml = (town / "graph.toml").read_text()
    assert "age = { integer = [0, 120], missing = 60 }" in toml and "hobbies" not in toml


def test_with_options_only_what_is_open_is_asked(
    type_in: Terminal, town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = at_a_terminal(monkeypatch, "features\n", "\n")
    assert type_in("data", "init", town, *ANSWERS[2:]).code == 0
    assert [line.partition("?")[0] for line in questions if line.endswith(": ")] == [
        "What must be protected, out of features, labels and edges",
        "What stands for a missing value",
    ]


@pytest.mark.parametrize(("end", "code", "message"), [("^C", 130, "interrupted"), (None, 2, "7 open questions")])
def test_questions_that_end_early_write_nothing(
    type_in: Terminal, town: Path, monkeypatch: pytest.MonkeyPatch, end: str | None, code: int, message: str
) -> None:
    at_a_terminal(monkeypatch, *TYPED[:8], end)
    answer = type_in("data", "init", town)
    assert answer.code == code and message in answer.err
    assert sorted(path.name for path in town.iterdir()) == ["edges.csv", "nodes.csv"]


GRAPH = {
    "directed": True,
    "nodes": [{"id": 1, "age": 30, "label": "a"}, {"id": 2, "age": 41, "label": "b"}],
    "links": [{"source": 1, "target": 2}],
}


def test_an_import_says_what_comes_next_or_declares(
    type_in: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("graph.json").write_text(json.dumps(GRAPH))
    answer = type_in("data", "import", "graph.json", "--out", "plain", "--json").json
    assert answer["next"] == "graphveil data init plain --directed yes" and answer["toml"] is None
    assert Path("plain").stat().st_mode & 0o777 == 0o700
    options = ("--private", "features", "--classes", "a,b")
    assert type_in(*answer["next"].split()[1:], *options).code == 0
    # With answers, the direction is what the file says.
    declared = type_in("data", "import", "graph.json", "-o", "declared", *options, "--json").json
    assert "directed = true" in declared["toml"] and declared["checked"].startswith("2 people, 1 feature,")
    type_in("data", "import", "graph.json", "-o", "half", "--private", "features").refused("classes: all classes")
    at_a_terminal(monkeypatch, *["\n"] * 4, "features\n", "a,b\n", "\n", "\n")
    imported = type_in("data", "import", "graph.json", "-o", "asked")
    assert imported.code == 0 and "Checked" in imported.out
    type_in("data", "import", "graph.json", "-o", "asked").refused("asked")
    names = ["asked", "declared", "graph.json", "plain"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
