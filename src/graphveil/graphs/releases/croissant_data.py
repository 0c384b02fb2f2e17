"""Croissant metadata of data: a release, the user's own folder, a named set.

Data that is not released is described by its declaration alone: no hash, no size and no number of rows, since each of
them is a function of private data.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from graphveil.errors import DataError
from graphveil.files.reading import read_json
from graphveil.graphs.declared.declaration import FILE as DECLARATION
from graphveil.graphs.declared.declaration import Declaration, read_declaration
from graphveil.graphs.load import is_name, load_parts
from graphveil.graphs.releases import croissant as cr  # its vocabulary's own prefix
from graphveil.graphs.releases.release import FILE as RELEASE
from graphveil.graphs.tables.tables import find_table
from graphveil.graphs.tables.write import is_stored
from graphveil.graphs.value.schema import GraphSchema
from graphveil.runtime.late import polars

#: Table -> role that a declaration may give to a column -> type of its cells.
_COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "nodes": {"id": cr.TEXT, "label": cr.TEXT, "split": cr.TEXT, "private_nodes": cr.BOOLEAN},
    "edges": {"source": cr.TEXT, "target": cr.TEXT, "public_edges": cr.BOOLEAN},
    "features": {"id": cr.TEXT, "feature": cr.INTEGER, "value": cr.FLOAT},
}
#: Kind of a declared column -> type of its cells; all other kinds are text.
_KINDS: Final[Mapping[str, str]] = {"integer": cr.INTEGER, "number": cr.FLOAT}


def of_data(data: str, *, root: str | os.PathLike[str] | None = None, credit: cr.Credit) -> dict[str, Any]:
    """Return the metadata of a release, of the user's own folder, or of a named set; errors as of `load_parts`.

    Args:
        data: a folder or the name of a set.
        root: as in `load_parts`.
        credit: from the owner of the data.
    """
    folder = Path(data)
    # Before anything is loaded: a folder that is not released is described by its declaration alone.
    declared = None
    if not is_name(data) and folder.is_dir() and not is_stored(folder):
        declared = read_declaration(folder / DECLARATION)
    if declared is not None and not declared.release:
        name, description, extra = (
            declared.name or folder.resolve().name,
            _promise(declared.private),
            _private(declared),
        )
        present = [path for path in (find_table(folder, stem) for stem in _COLUMNS) if path is not None]
        files = [cr.File(path.name, cr.ABOUT[path.stem]) for path in present]
        tables = [_declared_table(path, declared) for path in present]
        return cr.document(name, description, tables, files, classes=declared.classes, credit=credit, extra=extra)
    parts = load_parts(data, root)
    if parts.release is None:
        # Only what is declared: a field needs a file, and the files of a named set are not ours.
        schema = parts.schema
        description = f"{_promise(schema.private)} Ranges and classes: {schema.source}."
        return cr.document(
            schema.name, description, [], [], classes=schema.classes, credit=credit, extra=_private(schema)
        )
    digests = read_json(folder / RELEASE)["files"]  # checked while it was loaded
    return cr.of_release(folder, parts.schema, parts.release, digests, credit)


def _declared_table(path: Path, declared: Declaration) -> cr.Table:
    kinds = _COLUMNS[path.stem]
    meanings = {getattr(declared, key, None) or key: key for key in kinds}
    fields = []
    for name in _header(path):
        key = meanings.get(name)
        if key is not None:
            fields.append(cr.Field(name, kinds[key], cr.FIELDS[key], label=key == "label"))
        elif path.stem == "nodes" and (feature := _declared_feature(name, declared)) is not None:
            fields.append(feature)
    return cr.table_of(path.name, fields, key=next((name for name, key in meanings.items() if key == "id"), None))


def _declared_feature(name: str, declared: Declaration) -> cr.Field | None:
    """Return a feature column as declared; None for any other column."""
    if declared.columns:
        kinds = (column.kind.word for column in declared.columns if column.name == name)
        return next(
            (cr.Field(name, _KINDS.get(word, cr.TEXT), f"A feature, declared as {word}.") for word in kinds), None
        )
    if declared.features is not None and name not in declared.features:
        return None
    groups = (pair for pattern, *pair in declared.ranges if fnmatchcase(name, pattern))
    low, high = next(groups, (declared.low, declared.high))
    return cr.Field(name, cr.FLOAT, f"A feature, declared from {low:g} to {high:g}.")


def _promise(private: Sequence[str]) -> str:
    what = f"Private: {', '.join(private)}." if private else "Nothing in it is private."
    return f"A graph whose nodes have features and classes. {what} Only what is declared is described, no value."


def _private(declared: Declaration | GraphSchema) -> dict[str, Any]:
    sensitive = {"rai:personalSensitiveInformation": list(declared.private)} if declared.private else {}
    facts = {key: getattr(declared, key) for key in ("directed", "low", "high", "dimension")}
    facts = {"private": list(declared.private), **facts}
    return {**sensitive, "graphveil:declared": cr.properties(facts)}


def _header(path: Path) -> list[str]:
    try:
        if path.suffix == ".parquet":
            return list(polars.read_parquet_schema(path))
        # The first line alone: whatever reads further to guess types has read what people have.
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file), [])
    except (OSError, ValueError, csv.Error, polars.exceptions.PolarsError) as error:
        raise DataError("the names of its columns cannot be read", where=str(path)) from error
