"""A graph.toml from the names of columns and a person's answers: nothing else is read, and it can be read back."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import polars
import pytest

from graphveil.errors import InputError, UsedPathError
from graphveil.graphs import load_parts
from graphveil.graphs.drafts.answers import Answers, declare, open_questions, unanswered
from graphveil.graphs.drafts.draft import read_draft
from graphveil.graphs.drafts.folder import check_folder, declare_folder
from graphveil.graphs.drafts.public_knowledge import suggestion_of
from graphveil.graphs.tables.headers import read_header

NODES = "person,age,team,member,name,club\np,30,design,yes,Ann,a\nq,41,sales,no,Bob,b\n"
FACTS: dict[str, Any] = {"private": ["features"], "classes": ["a", "b"], "directed": False, "label": "club"}
TEAM: dict[str, Any] = {"team": {"category": ["design", "sales"]}, "member": "yes-no"}
COMPLETE = {**FACTS, "columns": TEAM}


def folder(path: Path, nodes: str = NODES, edges: str = "caller,callee\np,q\n", entries: str | None = None) -> Path:
    path.mkdir(exist_ok=True)
    (path / "nodes.csv").write_text(nodes)
    (path / "edges.csv").write_text(edges)
    if entries is not None:
        (path / "features.csv").write_text(entries)
    return path


def test_not_one_byte_behind_the_header_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = folder(tmp_path / "town")
    original, bytes_read = Path.open, {}

    class Guarded:
        def __init__(self, path: Path, *words: object, **options: object) -> None:
            self.path, self.file = path, original(path, *words, **options)  # type: ignore[call-overload]
            assert options["buffering"] == 0

        def __enter__(self) -> Guarded:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def read(self, size: int) -> bytes:
            content: bytes = self.file.read(size)
            bytes_read[self.path.name] = bytes_read.get(self.path.name, b"") + content
            return content

    monkeypatch.setattr(Path, "open", lambda path, *words, **options: Guarded(path, *words, **options))
    read_draft(names)
    assert bytes_read == {"nodes.csv": b"person,age,team,member,name,club\n", "edges.csv": b"caller,callee\n"}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_no_value_changes_a_draft(tmp_path: Path, ending: str) -> None:
    """Neither a cell nor the smallest and largest values that a parquet file keeps of its columns."""
    drafts = []
    for ages in ([30, 41], [-5, 10_000]):
        here = tmp_path / "town"
        here.mkdir(exist_ok=True)
        for stem, columns in (
            ("nodes", {"id": ["p", "q"], "age": ages, "odd": ages}),
            ("edges", {"u": ages, "v": ages}),
        ):
            frame = polars.DataFrame(columns)
            path = here / f"{stem}.{ending}"
            _ = frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
        answers = Answers(("features",), ("a", "b"), False, {"odd": {"number": [0, 1]}}, label="none")
        drafts.append((read_draft(here), declare(read_draft(here), answers)))
    assert drafts[0] == drafts[1]


THIS_YEAR = date.today().year


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ("age Age age_years customer_age", {"integer": [0, 120]}),
        ("birthYear year_of_birth yob", {"integer": [1900, THIS_YEAR]}),
        ("percent attendance_pct", {"number": [0, 100]}),
        ("month birth_month", {"integer": [1, 12]}),
        ("weekday day_of_week", {"integer": [1, 7]}),
        ("is_member hasCar has_email newsletter_flag", "yes-no"),
        ("hours_per_week", {"number": [0, 168]}),
        ("income city club x7 language", None),
    ],
)
def test_a_name_suggests_what_everybody_knows(names: str, kind: object) -> None:
    suggestions = [suggestion_of(name) for name in names.split()]
    assert [suggestion.kind for suggestion in suggestions] == [kind] * len(suggestions)
    assert not any(suggestion.identifies for suggestion in suggestions)


def test_a_name_that_tells_who_somebody_is_is_suggested_to_be_left_out() -> None:
    for name in ("name", "first_name", "lastName", "e-mail", "Email", "zip", "postcode", "work_phone", "ip", "dob"):
        assert suggestion_of(name).identifies, name


def test_a_draft_says_what_names_say_and_what_is_open(tmp_path: Path) -> None:
    town = read_draft(folder(tmp_path / "town"))
    assert dict(town.roles) == {"id": "person", "label": None, "split": None, "source": "caller", "target": "callee"}
    keys = ["label", "private", "classes", "directed", "columns.team", "columns.member", "columns.club"]
    assert [question.key for question in open_questions(town, Answers())] == keys
    assert open_questions(town, Answers.from_facts(COMPLETE)) == []
    # An answer takes a column away from what its name suggests.
    swapped = Answers(label="person", source="callee")
    assert {"id", "target"} <= {question.key for question in open_questions(town, swapped)}
    assert json.loads(json.dumps(town.facts()))["files"]["edges.csv"] == ["caller", "callee"]


def test_columns_that_are_called_alike_are_one_question(tmp_path: Path) -> None:
    header = "id,x0,x1,x2,y_1,y_2,y_3,y_sum,[z]1,[z]2,[z]3,label"
    wide = read_draft(folder(tmp_path / "wide", header + "\n", "from,to\n"))
    assert [feature.name for feature in unanswered(wide, Answers())] == ["x*", "y_[0-9]*", "y_sum", "[[]z]*"]
    toml = declare(wide, Answers.from_facts({**FACTS, "label": None, "columns": {"*": {"number": [0, 1]}}})).toml
    assert "range = [0, 1]" in toml and "features" not in toml.replace('["features"]', "")


@pytest.mark.parametrize(
    ("facts", "lines"),
    [
        ({}, ['id = "person"', 'label = "club"', "age = { integer = [0, 120] }", 'member = "yes-no"']),
        (
            {"missing": {"age": 60, "me*": "own category"}},
            ["integer = [0, 120], missing = 60", 'missing = "own category"'],
        ),
        ({"leave_out": ["team", "m*"], "columns": {}}, ["[columns]", "age = { integer = [0, 120] }"]),
        ({"columns": {"age": {"number": [0, 99]}}, "leave_out": ["[mt]e*"]}, ["range = [0, 99]", 'features = ["age"]']),
        ({"name": 'a "town"', "classes": ["b", "a", "ü"]}, ['name = "a \\"town\\""', 'classes = ["b", "a", "ü"]']),
        ({"directed": True, "private": [], "out_of_range": "clip"}, ["directed = true", "private = []"]),
    ],
)
def test_what_is_declared_is_what_load_graph_reads(tmp_path: Path, facts: dict[str, Any], lines: list[str]) -> None:
    town = folder(tmp_path / "town")
    answers = Answers.from_facts({**COMPLETE, **facts})
    # As it is posted: the answers are JSON.
    assert Answers.from_facts(json.loads(json.dumps(asdict(answers)))) == answers
    declared = declare_folder(town, answers)
    assert all(line in declared.toml for line in lines), declared.toml
    assert "Ann" not in declared.toml and "left out: " in declared.notes[-1]
    assert check_folder(town).startswith("2 people, ")
    schema = load_parts(town).schema
    assert schema.private == tuple(answers.private or ())
    assert schema.classes == answers.classes and schema.directed == answers.directed


def test_a_features_file_needs_its_dimension_and_one_range(tmp_path: Path) -> None:
    town = folder(tmp_path / "town", "id,label\np,a\nq,b\n", "source,target\np,q\n", "id,feature\np,3\n")
    assert [question.key for question in open_questions(read_draft(town), Answers())][-1] == "dimension"
    answers = Answers(("features",), ("a", "b"), False, dimension=5)
    assert "range = [0, 1]" in declare_folder(town, answers).toml
    assert check_folder(town) == "2 people, 5 features, 2 classes; private: features"
    with pytest.raises(InputError, match="number = "):
        declare(read_draft(town), Answers(("features",), ("a", "b"), False, {"value": "yes-no"}, dimension=5))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"private": None, "columns": {}}, "3 open questions: private: .*; columns.team: .*; columns.member: "),
        ({"columns": {**TEAM, "aeg": "yes-no"}}, "columns: no column 'aeg'; allowed: person, .*did you mean age"),
        ({"leave_out": ["nme"]}, "leave_out: no column 'nme'.*did you mean name"),
        ({"leave_out": ["team"]}, "'team' is declared and left out"),
        ({"source": "from"}, "source: no column 'from'; allowed: caller, callee"),
        ({"label": "none", "columns": {**TEAM, "club": {"tags": ["a"], "most": 2}}}, "most is 2"),
        ({"clases": ["a"]}, "unknown key 'clases'.*did you mean classes"),
        ({"directed": 1}, "directed is 1; allowed: true or false"),
        ({"classes": ["a"]}, "classes are .* at least two"),
        ({"private": ["edgs"]}, "private names 'edgs'; allowed: features, labels, edges"),
        ({"columns": {"team": {"number": [1, 0]}}}, "the column 'team': number is"),
        ({"missing": {"age": 200}}, "missing of the column 'age' is 200; allowed: a whole number from 0 to 120"),
        ({"leave_out": ["*"], "columns": {}}, "no column of features is left"),
    ],
)
def test_answers_that_cannot_be_are_refused_and_nothing_is_written(
    tmp_path: Path, facts: dict[str, Any], message: str
) -> None:
    town = folder(tmp_path / "town")
    with pytest.raises(InputError, match=message):
        declare_folder(town, Answers.from_facts({**COMPLETE, **facts}))
    assert sorted(path.name for path in town.iterdir()) == ["edges.csv", "nodes.csv"]


def test_what_tells_who_somebody_is_becomes_a_feature_by_its_name_alone(tmp_path: Path) -> None:
    town = folder(tmp_path / "town")
    kind = {"tags": ["Ann", "Bob"], "most": 1}
    wide = declare(read_draft(town), Answers.from_facts({**FACTS, "columns": {"*": kind}}))
    assert "left out: name" in wide.notes
    named = declare(read_draft(town), Answers.from_facts({**COMPLETE, "columns": {**TEAM, "name": kind}}))
    assert "name is a feature, though it tells who somebody is" in named.notes


def test_a_declaration_is_not_overwritten_unasked(tmp_path: Path) -> None:
    town = folder(tmp_path / "town")
    declare_folder(town, Answers.from_facts(COMPLETE))
    with pytest.raises(UsedPathError, match=r"graph\.toml: exists already; --replace"):
        declare_folder(town, Answers.from_facts(COMPLETE))
    declare_folder(town, Answers.from_facts({**COMPLETE, "directed": True}), replace=True)
    assert load_parts(town).schema.directed


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (NODES.replace("41", "141"), "caller,callee\np,q\n", r"nodes\.csv, line 3: age is '141'; allowed: .* 0 to 120"),
        (NODES.replace("sales", "sale"), "caller,callee\np,q\n", r"nodes\.csv, line 3: team is 'sale', not a declared"),
        (NODES.replace(",b\n", ",c\n"), "caller,callee\np,q\n", r"nodes\.csv, line 3: club is 'c', not a declared"),
        (NODES, "caller,callee\np,r\n", r"edges\.csv, line 2: callee 'r' is not an id"),
    ],
)
def test_the_check_names_the_cell_and_leaves_the_declaration(
    tmp_path: Path, nodes: str, edges: str, message: str
) -> None:
    town = folder(tmp_path / "town", nodes, edges)
    declare_folder(town, Answers.from_facts(COMPLETE))
    with pytest.raises(InputError, match=message + r".*graph\.toml stays: correct the table, or declare again"):
        check_folder(town)
    assert (town / "graph.toml").exists()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("", "line 1: is empty"),
        ("\nid,x", "line 1: is empty"),
        ("id;x", "has one column; separate fields by commas, not semicolons"),
        ("1,2.5", "holds only numbers; allowed: the names of columns; add a header line"),
        ("id,id", "has two columns 'id'"),
        ("id, x", "names without spaces around"),
        ('id,"x', "cannot be read as a header"),
        ("id," + "x" * (1 << 20), "first line of more than 1 MiB"),
    ],
)
def test_a_first_line_that_holds_no_names_is_refused(tmp_path: Path, header: str, message: str) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(header + ("\np,1\n" if header else ""))
    with pytest.raises(InputError, match=message) as refused:
        read_header(path)
    assert "2.5" not in str(refused.value)
