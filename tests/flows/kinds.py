"""Kinds of data that people bring, each a small folder that a test writes. A new kind is one more value of KINDS."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

PARTS: Final = ("features", "labels", "edges")
#: A form's questions, one of every kind that a column may be, and how a person of class k answers.
FORM: Final = {
    "age": "{ integer = [14, 95] }",
    "income": "{ number = [0, 9000] }",
    "district": '{ category = ["old town", "harbour", "north"] }',
    "degree": '{ ordinal = ["none", "school", "university"] }',
    "car": '"yes-no"',
    "hobbies": '{ tags = ["music", "books", "plants"], most = 2 }',
}
#: What stands for an empty cell of each kind of column.
MISSING: Final = {
    "age": "{ integer = [14, 95], missing = 40 }",
    "income": "{ number = [0, 9000], missing = 2000 }",
    "district": '{ category = ["old town", "harbour", "north"], missing = "own category" }',
    "degree": '{ ordinal = ["none", "school", "university"], missing = "school" }',
    "car": '{ yes-no = true, missing = "no" }',
}
Row = dict[str, object]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Kind:
    """How a folder looks; the defaults are a town of 60 people, and a kind says what is different.

    Attributes:
        name: of the kind.
        private: the parts that belong to the people.
        people: how many.
        columns: "form" (of all kinds), "gaps" (a form with empty cells), "numbers", "constant", "one", "sparse" (a
            features file of its own).
        classes: declared; unseen: how many of the last of them nobody has.
        labels: a class for everybody ("all"), for four in five ("most"), for few ("few"), for nobody ("none"), several
            a person ("several"), or no column of labels ("absent").
        directed: whether an edge has a direction.
        edges: "groups" (mostly inside a class), "none", "star", "complete", "isolated" (a third has none), "untidy"
            (self-loops, duplicates, both directions, a column of weights).
        ids: "p01" ("plain"), "007" ("numbers") or texts that no table likes ("texts").
        split: the declared split: none, "whole", "unlabelled test", or "one class" (none but the first trains).
        partly: whether some edges are public; members: whether some people alone may have private ones.
        extra: whether the nodes file has columns that are no features, in another order.
        table: "csv" or "parquet".
        folder: its name.
        typed: how the folder is typed: "absolute", "relative", "slash".
        writable: whether anything may be written into it.
        source: what the folder is made into: "folder", "stored", "released", "counted", "collected" or a named set.
    """

    name: str
    private: tuple[str, ...] = ("features", "labels")
    people: int = 60
    columns: str = "form"
    classes: tuple[str, ...] = ("sports", "choir", "fire brigade")
    unseen: int = 0
    labels: str = "most"
    directed: bool = False
    edges: str = "groups"
    ids: str = "plain"
    split: str | None = None
    partly: bool = False
    members: bool = False
    extra: bool = False
    table: str = "csv"
    folder: str = "town"
    typed: str = "absolute"
    writable: bool = True
    source: str = "folder"

    def write(self, folder: Path, newcomers: bool = False) -> None:
        """Write the tables and the declaration; newcomers: of people who joined later."""
        rng = np.random.default_rng(8 if newcomers else 7)
        names = _ids(self, newcomers)
        member = rng.integers(0, len(self.classes) - self.unseen, self.people)
        folder.mkdir(parents=True)
        rows = [{"person": names[i]} | _cells(self, int(member[i]), rng) for i in range(self.people)]
        for row, labels in zip(rows, _labels(self, member, rng), strict=True):
            row |= labels
        _splits(self, rows)
        for i, row in enumerate(rows):
            row |= {"member": "true" if _is_member(i) else "false"} if self.members else {}
        if self.extra:
            rows = [{"note": "x", "when": i} | dict(reversed(row.items())) for i, row in enumerate(rows)]
        _table(self, folder / "nodes", list(rows[0]), rows)
        _write_edges(self, folder, names, member, rng)
        if self.columns == "sparse":
            _table(self, folder / "features", ["id", "feature"], _entries(names, member))
        (folder / "graph.toml").write_text(_declaration(self), encoding="utf-8")
        if not self.writable:
            folder.chmod(0o555)


def _ids(kind: Kind, newcomers: bool) -> list[str]:
    first = 500 if newcomers else 0
    numbers = range(first, first + kind.people)
    odd = ('ann, "the" {}', "Zoë-{}", "人{}", "'{}'", "=1+{}", "a b {}", "-{}", "NaN{}")
    shapes = {"plain": ("p{:03}",), "numbers": ("{:05}",), "texts": odd}[kind.ids]
    return [shapes[i % len(shapes)].format(i) for i in numbers]


def _cells(kind: Kind, member: int, rng: np.random.Generator) -> Row:
    """A person's answers, which lean on their class."""
    lean = float(np.clip(0.2 + 0.25 * member + rng.normal(0, 0.1), 0, 1))
    if kind.columns in ("form", "gaps"):
        level = int(lean * 2.99)
        hobbies = ("music", "music;books", "plants")[level]
        row: Row = {
            "age": 14 + round(80 * lean),
            "income": round(9000 * lean, 2),
            "district": ("old town", "harbour", "north")[level],
            "degree": ("none", "school", "university")[level],
            "car": "yes" if rng.random() < lean else "no",
            "hobbies": hobbies,
        }
        return row if kind.columns == "form" else {name: "" if rng.random() < 0.2 else row[name] for name in row}
    if kind.columns == "sparse":
        return {}
    count = 1 if kind.columns == "one" else 4
    return {f"x{i}": 0.5 if kind.columns == "constant" else round(lean, 4) for i in range(count)}


def _entries(names: Sequence[str], member: np.ndarray) -> list[Row]:
    return [{"id": name, "feature": 10 * int(member[i]) + i % 10} for i, name in enumerate(names)]


def _labels(kind: Kind, member: np.ndarray, rng: np.random.Generator) -> list[Row]:
    share = {"all": 1.0, "most": 0.8, "few": 0.1, "none": 0.0, "several": 1.0, "absent": 0.0}[kind.labels]
    if kind.labels == "absent":
        return [{} for _ in member]
    rows: list[Row] = []
    for i, club in enumerate(member):
        label = kind.classes[int(club)] if i < 4 * share or rng.random() < share else ""
        second = kind.classes[(int(club) + 1) % len(kind.classes)]
        rows.append({"club": f"{label}|{second}" if kind.labels == "several" and i % 2 else label})
    return rows


def _splits(kind: Kind, rows: list[Row]) -> None:
    if kind.split is None:
        return
    for i, row in enumerate(rows):
        row["part"] = ("train", "train", "val", "test", "")[i % 5]
        if kind.split == "unlabelled test" and row["part"] == "test":
            row["club"] = ""
        if kind.split == "one class" and row["part"] == "train" and row["club"] != kind.classes[0]:
            row["part"] = "val"


def _pairs(kind: Kind, member: np.ndarray, rng: np.random.Generator) -> list[Pair]:
    people = range(kind.people)
    if kind.edges == "none" or kind.people < 2:
        return []
    if kind.edges == "star":
        return [(0, i) for i in people[1:]]
    if kind.edges == "complete" or kind.people < 6:
        return list(combinations(people, 2))
    reach = kind.people * 2 // 3 if kind.edges == "isolated" else kind.people
    pairs = set()
    for i in range(reach):
        alike = [j for j in range(reach) if member[j] == member[i] and j != i] or [(i + 1) % reach]
        pairs |= {(i, int(rng.choice(alike))), (i, int((i + rng.integers(1, reach)) % reach))}
    return sorted(pair for pair in pairs if kind.directed or pair[0] < pair[1] or (pair[1], pair[0]) not in pairs)


def _write_edges(kind: Kind, folder: Path, names: Sequence[str], member: np.ndarray, rng: np.random.Generator) -> None:
    pairs = _pairs(kind, member, rng)
    if kind.edges == "untidy":
        pairs += [(i, i) for i in range(5)] + pairs[:9] + [(b, a) for a, b in pairs[:9]]
    rows: list[Row] = [{"source": names[a], "target": names[b]} for a, b in pairs]
    for i, (row, pair) in enumerate(zip(rows, pairs, strict=True)):
        row |= {"weight": 0.5 * i} if kind.edges == "untidy" else {}
        strangers = kind.members and not all(map(_is_member, pair))
        row |= {"public": "true" if i % 2 or strangers else "false"} if kind.partly else {}
    _table(kind, folder / "edges", [*(rows[0] if rows else ("source", "target"))], rows)


def _is_member(person: int) -> bool:
    return person % 4 != 0


def _declaration(kind: Kind) -> str:
    lines: dict[str, object] = {"private": list(kind.private), "classes": list(kind.classes)}
    lines |= {"directed": kind.directed, "id": "person"}
    lines |= {} if kind.labels == "absent" else {"label": "club"}
    lines |= {"label_separator": "|"} if kind.labels == "several" else {}
    lines |= {"split": "part"} if kind.split else {}
    lines |= {"public_edges": "public"} if kind.partly else {}
    lines |= {"private_nodes": "member"} if kind.members else {}
    if kind.columns == "sparse":
        lines |= {"dimension": 40}
    form = {"form": FORM, "gaps": FORM | MISSING}.get(kind.columns, {})
    if not form:
        lines |= {"range": [0, 1]}
        if kind.extra:
            lines |= {"features": [f"x{i}" for i in range(4)]}
    text = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in lines.items())
    return text + "".join(["[columns]\n", *(f"{key} = {value}\n" for key, value in form.items())]) * bool(form)


def _table(kind: Kind, file: Path, header: Sequence[str], rows: Iterable[Row]) -> None:
    if kind.table == "parquet":
        columns = {name: [row[name] for row in rows] for name in header}
        pl.DataFrame(columns, schema=None if rows else dict.fromkeys(header, pl.String)).write_parquet(
            file.with_suffix(".parquet")
        )
        return
    with file.with_suffix(".csv").open("w", encoding="utf-8", newline="") as sink:
        writer = csv.DictWriter(sink, header, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


#: Which parts are private: all eight ways.
PRIVATE: Final = tuple(
    Kind("private " + (" ".join(parts) or "nothing"), private=parts)
    for count in range(4)
    for parts in combinations(PARTS, count)
)
EDGES = ("edges",)
KINDS: Final = (
    *PRIVATE,
    Kind("numbers", columns="numbers"),
    Kind("one feature", columns="one"),
    Kind("equal features", columns="constant"),
    Kind("sparse features", columns="sparse"),
    Kind("directed", directed=True),
    Kind("directed lists", directed=True, private=EDGES),
    Kind("two classes", classes=("yes", "no")),
    Kind("two classes, lists", classes=("yes", "no"), private=EDGES),
    Kind("a class nobody has", unseen=1),
    Kind("one class in use", unseen=2),
    Kind("numbered classes", classes=("0", "1", "2"), columns="numbers"),
    Kind("everybody labelled", labels="all"),
    Kind("few labels", labels="few"),
    Kind("few labels, lists", labels="few", private=EDGES),
    Kind("nobody labelled", labels="none"),
    Kind("no label column", labels="absent"),
    Kind("several labels", labels="several", private=("features",)),
    Kind("several labels, open", labels="several", private=()),
    Kind("declared split", split="whole"),
    Kind("unlabelled test", split="unlabelled test"),
    Kind("no edges", edges="none"),
    Kind("no edges, lists", edges="none", private=EDGES),
    Kind("isolated people", edges="isolated"),
    Kind("isolated people, lists", edges="isolated", private=EDGES),
    Kind("a star", edges="star"),
    Kind("a star, lists", edges="star", private=EDGES),
    Kind("everybody knows everybody", edges="complete", private=EDGES),
    Kind("untidy edges", edges="untidy"),
    Kind("untidy lists", edges="untidy", private=EDGES, directed=True),
    Kind("public edges too", partly=True, private=("features", "edges")),
    Kind("text ids", ids="texts"),
    Kind("text ids, lists", ids="texts", private=EDGES),
    Kind("numbered ids", ids="numbers"),
    Kind("two people", people=2),
    Kind("two people, lists", people=2, private=EDGES),
    Kind("eight people", people=8, private=EDGES),
    Kind("other columns too", columns="numbers", extra=True),
    Kind("parquet", table="parquet"),
    Kind("a folder with spaces", folder="our town, 2026"),
    Kind("a relative path", typed="relative"),
    Kind("a trailing slash", typed="slash"),
    Kind("a read-only folder", writable=False),
    Kind("stored", source="stored"),
    Kind("stored lists", source="stored", private=EDGES),
    Kind("released", source="released", private=PARTS),
    Kind("released numbers", source="released", private=("features", "edges"), columns="numbers"),
    Kind("counted", source="counted", private=EDGES),
    Kind("collected", source="collected", people=24),
    Kind("collected lists", source="collected lists", private=PARTS, people=24),
    Kind("a named set", source="social-100"),
    Kind("missing values", columns="gaps"),
    Kind("missing values, lists", columns="gaps", private=EDGES),
    Kind("one class trains", split="one class", labels="all"),
    Kind("one class trains, lists", split="one class", labels="all", private=EDGES),
    Kind("members' edges", partly=True, members=True, private=PARTS, ids="texts"),
    Kind("public links too", partly=True, directed=True, private=EDGES),
)
