"""A declaration drafted from a folder of tables: the names of its columns, and what the names suggest."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from graphveil.errors import DataError
from graphveil.files.columns import Number, YesNo
from graphveil.graphs.drafts.public_knowledge import Suggestion, role_of, suggestion_of
from graphveil.graphs.tables.headers import Header, read_header
from graphveil.graphs.tables.tables import find_table, require_table

ENTRIES_VALUE: Final = "value"
"""The column of a features file that holds the values of all features."""
NODES_ROLES: Final = ("id", "label", "split")
EDGES_ROLES: Final = ("source", "target")
#: So many columns called `x0`, `x1`, ... or more are answered together.
_LEAST_GROUP: Final = 3


@dataclass(frozen=True)
class Feature:
    """A feature column, or several numbered ones."""

    name: str  # of the column, or a pattern that fits the columns and no other
    columns: tuple[str, ...]
    suggestion: Suggestion

    @property
    def is_settled(self) -> bool:
        """Whether the name suggests a kind, or to leave the column out."""
        return self.suggestion.kind is not None or self.suggestion.identifies


@dataclass(frozen=True)
class Draft:
    """What the names of columns say about a folder."""

    folder: str
    nodes: Header
    edges: Header
    entries: Header | None  # of a features file
    roles: Mapping[str, str | None]  # id, label, split, source, target -> the column whose name says so
    features: tuple[Feature, ...]  # all columns of the nodes, or the values of a features file

    @property
    def tables(self) -> tuple[Header, ...]:
        return (self.nodes, self.edges, *(() if self.entries is None else (self.entries,)))

    def facts(self) -> dict[str, object]:
        """Return the draft as JSON facts."""
        files = {table.file: list(table.columns) for table in self.tables}
        features = [
            {"name": feature.name, "columns": list(feature.columns), **asdict(feature.suggestion)}
            for feature in self.features
        ]
        return {"folder": self.folder, "files": files, "roles": dict(self.roles), "features": features}


def read_draft(folder: Path) -> Draft:
    """Return the draft of a folder with `nodes`, `edges` and perhaps `features`, csv or parquet; no value is read.

    DataError: a table is absent, or its first line holds no names of columns.
    """
    if not folder.is_dir():
        raise DataError("is no folder", where=str(folder), allowed="a folder with nodes.csv and edges.csv, or parquet")
    nodes, edges = (read_header(require_table(folder, stem)) for stem in ("nodes", "edges"))
    features_path = find_table(folder, "features")
    entries = None if features_path is None else read_header(features_path)
    roles = {role: role_of(role, nodes.columns) for role in NODES_ROLES}
    roles |= {role: role_of(role, edges.columns) for role in EDGES_ROLES}
    if len(edges.columns) == 2 and None in (roles["source"], roles["target"]):
        roles |= dict(zip(EDGES_ROLES, edges.columns, strict=True))
    if entries is None:
        features = _features(nodes)
    else:
        zero_or_one = Suggestion({Number.word: [0, 1]}, f"{entries.file} has no column of values: what it lists is 1")
        suggestion = suggestion_of(ENTRIES_VALUE) if ENTRIES_VALUE in entries.columns else zero_or_one
        features = (Feature(ENTRIES_VALUE, (ENTRIES_VALUE,), suggestion),)
    return Draft(folder.resolve().name, nodes, edges, entries, MappingProxyType(roles), features)


def _features(nodes: Header) -> tuple[Feature, ...]:
    numbered: dict[str, list[str]] = {}
    for name in nodes.columns:
        if match := re.fullmatch(r"(.*?)\d+", name):
            numbered.setdefault(match[1], []).append(name)
    features, grouped = [], set()
    for prefix, names in numbered.items():
        pattern = _pattern(prefix, names, nodes.columns) if len(names) >= _LEAST_GROUP else None
        if pattern is not None:
            grouped.update(names)
            features.append(Feature(pattern, tuple(names), _suggestion(prefix, names, nodes)))
    single = (name for name in nodes.columns if name not in grouped)
    features += [Feature(name, (name,), _suggestion(name, [name], nodes)) for name in single]
    return tuple(sorted(features, key=lambda feature: nodes.columns.index(feature.columns[0])))


def _pattern(prefix: str, names: Sequence[str], columns: Sequence[str]) -> str | None:
    """A pattern that fits the names and no other column, if there is one."""
    plain = re.sub(r"([*?\[])", r"[\1]", prefix)
    patterns = (f"{plain}*", f"{plain}[0-9]*")
    return next((pattern for pattern in patterns if fnmatch.filter(columns, pattern) == list(names)), None)


def _suggestion(name: str, columns: Sequence[str], nodes: Header) -> Suggestion:
    if not nodes.booleans.issuperset(columns):
        return suggestion_of(name)
    # A group is declared as numbers: one range in place of a line for each column.
    kind = YesNo.word if len(columns) == 1 else {Number.word: [0, 1]}
    return Suggestion(kind, "the type of the column holds nothing but true and false")
