"""The draft of a task: what is written is read again, whatever people call things, and who may be asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graphveil.collection.task.declare import Prices, Words
from graphveil.collection.task.drafts import Draft, read_draft, write_draft
from graphveil.collection.task.planned import planned
from graphveil.collection.task.subject import Subject, subject_of
from graphveil.errors import InputError
from graphveil.graphs import GraphSchema

SCHEMA = GraphSchema("clubs", 2, -1.5, 40.0, ("left", "right"), private=("features", "labels"))
SUBJECT = Subject(SCHEMA, ("runs", "swims"), ("ann", "bob\u2028by", "cleo"))
TOML = 'private = ["labels"]\nclasses = ["a", "b"]\ndirected = true\n'
#: Two features, declared in each way that a folder without tables may choose.
DECLARED = {
    "features": 'features = ["runs", "swims"]\nrange = [0, 7]\n',
    "dimension": "dimension = 2\nrange = [0, 7]\n",
    "columns": '[columns]\nvip = "yes-no"\nage = { integer = [0, 99] }\n',
    "scaled": 'features = ["runs", "swims"]\nrange = { runs = [0, 7], "*" = [0, 1] }\n',
    "levels": '[columns]\ngrade = { ordinal = ["low", "mid", "high"] }\nkm = { number = [-0.5, 40] }\n',
}


TEXTS = ('of "quotes"', "of\nlines\ttabs", "back\\slash", "delete \x7f", "line\u2028end\x85.", "東京, 🦊", "# no", "'")


def test_whatever_people_write_is_read_again(tmp_path: Path) -> None:
    for text in TEXTS:
        subject = replace(SUBJECT, ids=("ann", text, "cleo"), names=(text, "swims"))
        typed = {"organiser": text, "purpose": text, "contact": text, "public": [text], "least": 3}
        prices = Prices(features="0.5", label="1", links="8", degree="2.25", mode="both")
        write_draft(tmp_path, subject, typed, prices)
        draft = read_draft(tmp_path)
        # Prices are the texts that were typed.
        assert draft.subject == subject and draft.prices == prices
        assert draft.words == Words(name="clubs", organiser=text, purpose=text, contact=text, public=(text,))
        assert (draft.least, draft.missing) == (3, ("opens", "closes"))


#: Overrides, isolates and marks of direction; a soft hyphen, a space of no width, an escape, two fillers.
HIDDEN = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u00ad\u200b\x1b\u3164\u2800"
#: From right to left; with letters that join; a picture of several; a space that does not break.
NATURAL = ("שלום, עולם 5", "می\u200cخواهم", "👩\u200d🔬", "10\u00a0km", "two\nlines")


@pytest.mark.parametrize("where", ["name", "organiser", "purpose", "contact", "public", "classes", "names", "ids"])
def test_nobody_signs_what_does_not_read_as_it_is_written(where: str, tmp_path: Path) -> None:
    for hidden in HIDDEN:
        with pytest.raises(
            InputError, match=rf"{where}: the character U\+{ord(hidden):04X} is invisible.*leave it out"
        ):
            _with(where, f"clubs{hidden}", tmp_path).facts()
    for natural in NATURAL:
        facts = json.dumps(_with(where, natural, tmp_path).facts(), ensure_ascii=False)
        assert json.dumps(natural, ensure_ascii=False)[1:-1] in facts or where == "ids"


def _with(where: str, text: str, folder: Path) -> Draft:
    """A draft with everything, and a text in one place."""
    words = {"name": "clubs", "organiser": "city", "purpose": "clubs", "contact": "city", "public": ["who"]}
    typed = {**words, "opens": "2030-01-01", "closes": "2031-01-01", "least": 1}
    if where in typed:
        typed[where] = [text] if where == "public" else text
    subject = {
        "classes": replace(SUBJECT, schema=replace(SCHEMA, classes=(text, "right"))),
        "names": replace(SUBJECT, names=(text, "swims")),
        "ids": replace(SUBJECT, ids=(text, "bob")),
    }.get(where, SUBJECT)
    write_draft(folder, subject, typed, Prices(label="1", features="1"))
    return read_draft(folder)


def test_a_draft_promises_what_the_task_will(tmp_path: Path) -> None:
    """The window and the least number, which it may still lack, change nothing of it."""
    write_draft(tmp_path, SUBJECT, {}, Prices(label="1.5", features="0.25"))
    early = read_draft(tmp_path)
    with pytest.raises(InputError, match="organiser, purpose, contact, opens, closes, least missing"):
        early.facts()
    typed = {"organiser": "me", "purpose": "p", "contact": "c", "opens": "2026-01-01", "closes": "2026-01-02T03:04"}
    write_draft(tmp_path, SUBJECT, {**typed, "least": 1}, early.prices)
    facts = read_draft(tmp_path).facts()
    assert facts["guarantee"] == early.guarantee()
    assert (facts["opens"], facts["closes"], facts["least"]) == (1_767_225_600, 1_767_323_040, 1)


@pytest.mark.parametrize("name", DECLARED)
def test_a_declaration_without_data_says_what_may_be_asked(name: str, tmp_path: Path) -> None:
    (tmp_path / "graph.toml").write_text(TOML + DECLARED[name])
    people = tmp_path / "people.txt"
    people.write_text(" ann \nbob\n")
    subject = subject_of(str(tmp_path), people=people)
    # Where 0 and 1 stand for something else, whoever answers reads for what.
    names = {
        "features": ("runs", "swims"),
        "dimension": ("feature 0", "feature 1"),
        "columns": ("vip (no 0 / yes 1)", "age (0 to 99 as 0 to 1)"),
        "scaled": ("runs (0 to 7 as 0 to 1)", "swims"),
        "levels": ("grade (low 0 / mid 0.5 / high 1)", "km (-0.5 to 40 as 0 to 1)"),
    }[name]
    assert (subject.names, subject.ids, subject.parts) == (names, ("ann", "bob"), None)
    schema = subject.schema
    assert (schema.dimension, schema.classes, schema.directed, schema.private) == (2, ("a", "b"), True, ("labels",))
    assert (schema.low, schema.high) == ((0, 7) if name in ("features", "dimension") else (0, 1))


def test_people_read_the_names_of_the_columns_also_where_only_the_table_names_them(tmp_path: Path) -> None:
    rest = 'private = ["labels"]\nclasses = ["a", "b"]\ndirected = true\n'
    (tmp_path / "graph.toml").write_text(f'{rest}range = {{ "age" = [0, 120], "*" = [0, 7] }}\n')
    (tmp_path / "nodes.csv").write_text("\ufeffid,age,sleep (h),label\r\nann,31,6,a\r\nbob,58,7,\r\n", encoding="utf-8")
    (tmp_path / "edges.csv").write_text("source,target\nann,bob\n")
    subject = subject_of(str(tmp_path))
    assert subject.names == ("age (0 to 120 as 0 to 1)", "sleep (h) (0 to 7 as 0 to 1)")
    # Of a file of sparse features the numbers have no names, whatever else the table of people holds.
    (tmp_path / "graph.toml").write_text(f"{rest}range = [0, 7]\ndimension = 2\n")
    (tmp_path / "features.csv").write_text("id,feature\nann,0\n")
    (tmp_path / "nodes.csv").write_text("id,label\nann,a\nbob,\n")
    assert subject_of(str(tmp_path)).names == ("feature 0", "feature 1")


def test_a_list_of_people_may_have_the_declared_heading(tmp_path: Path) -> None:
    (tmp_path / "graph.toml").write_text(f'id = "member"\n{TOML}{DECLARED["features"]}')
    for heading in ("member", "id"):
        (tmp_path / "people.csv").write_text(f"{heading},team\nZoe 0 \u4eba,a\n")
        assert subject_of(str(tmp_path), people=tmp_path / "people.csv").ids == ("Zoe 0 \u4eba",)
    (tmp_path / "people.csv").write_text("name\nann\n")
    with pytest.raises(InputError, match="no column of ids; allowed: a csv file with a column member or id"):
        subject_of(str(tmp_path), people=tmp_path / "people.csv")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("people.txt", b"ann\nann\n", "the id 'ann' stands twice"),
        ("people.txt", b"anna b\nbob\nAnna  B\n", r"'anna b' and 'Anna \\x20B' are one id to people"),
        ("people.csv", "id\nzo\u00eb\nzoe\u0308\n".encode(), r"'zo\\xeb' and 'zoe\\u0308' are one id"),
        ("people.txt", b"\n", "there is no id"),
        ("people.txt", b"\xff\xfe", "is not UTF-8"),
        ("people.csv", b"name\nann\n", "no column of ids; allowed: a csv file with a column id$"),
    ],
)
def test_people_who_cannot_be_told_apart_are_refused(file: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "graph.toml").write_text(TOML + DECLARED["features"])
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=message):
        subject_of(str(tmp_path), people=tmp_path / file)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("ids.txt", "ann\nbob\n", "ids.txt is not as it was written"),
        ("ids.txt", '"ann"\n3\n', "ids.txt holds something that is not text"),
        ("ids.txt", '"ann"\n"ann"\n', "the id 'ann' stands twice"),
        ("ids.txt", '"ann"\n"\\uff41nn"\n', r"'ann' and '\\uff41nn' are one id to people"),
        ("schema.json", "{}", "schema.json is not as it was written"),
        ("schema.json", '{"schema": {"classes": [], "private": [], "notes": []}, "names": []}', "schema.json is not"),
        ("schema.json", "{", "is not JSON"),
    ],
)
def test_files_that_are_not_to_be_edited_are_refused_when_they_were(
    file: str, content: str, message: str, tmp_path: Path
) -> None:
    write_draft(tmp_path, SUBJECT, {}, Prices(label="1"))
    (tmp_path / file).write_text(content)
    with pytest.raises(InputError, match=message):
        read_draft(tmp_path)


@pytest.mark.parametrize(
    ("written", "edited", "message"),
    [
        ('mode = "both"', 'mode = "upper"', "mode is 'upper'; allowed: lower, both, directed"),
        ('label = "1"', "label = 1", 'label is 1; allowed: a text in quotes: label = "..."'),
        ('label = "1"', 'labels = "1"', "unknown key 'labels'; allowed: degree, features, label"),
    ],
)
def test_prices_that_were_edited_into_what_no_task_asks_are_refused(
    written: str, edited: str, message: str, tmp_path: Path
) -> None:
    write_draft(tmp_path, SUBJECT, {}, Prices(label="1", links="2", mode="both"))
    file = tmp_path / "task.toml"
    text = file.read_text()
    assert written in text
    file.write_text(text.replace(written, edited))
    with pytest.raises(InputError, match=message):
        read_draft(tmp_path)


def test_a_declaration_without_features_is_refused(tmp_path: Path) -> None:
    (tmp_path / "graph.toml").write_text(TOML + "range = [0, 1]\n")
    with pytest.raises(InputError, match=r"no features are declared.*where none are asked for, dimension = 1"):
        subject_of(str(tmp_path))


def test_lists_with_degrees_are_planned_at_the_price_of_both(tmp_path: Path) -> None:
    """8 and 2 for list and degree are a report of 10, a fifth of it the degree's; no method takes 0.01 of 2.26."""
    subject = subject_of("social-100")
    write_draft(tmp_path, subject, {}, Prices(label="1", links="8", degree="2", mode="lower"))
    draft = replace(read_draft(tmp_path), subject=subject)
    run = planned(draft)
    assert run is not None
    assert (run.method, run.settings["epsilon_a"], run.settings["degree_share"]) == ("blink", 10.0, 0.2)
    assert planned(replace(draft, prices=Prices(label="1", links="2.25", degree="0.01"))) is None
