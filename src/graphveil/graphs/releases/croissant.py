"""Croissant 1.1 metadata of a graph: JSON-LD that hubs, search engines and loaders read.

Source: MLCommons, Croissant Format Specification, version 1.1 (2026). Written without a library: a graph needs one file
for each table and one record set for each file. Tests read it back with `mlcroissant`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from graphveil.errors import InputError
from graphveil.graphs.value.release import Release
from graphveil.graphs.value.schema import GraphSchema
from graphveil.privacy.statement.guarantee import privacy_fields
from graphveil.runtime.late import polars

FILE: Final = "croissant.json"
TEXT, FLOAT, INTEGER, BOOLEAN = "sc:Text", "sc:Float", "sc:Integer", "sc:Boolean"
_CONFORMS_TO: Final = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")
_FORMATS: Final[Mapping[str, str]] = {
    "csv": "text/csv",
    "parquet": "application/x-parquet",
    "json": "application/json",
    "toml": "application/toml",
}
#: Table -> what a record of it is.
ABOUT: Final[Mapping[str, str]] = {
    "nodes": "One record for each node.",
    "edges": "One record for each edge.",
    "features": "One record for each entry of a node's features that is not zero.",
    "counts": "One record for each node, in the order of the nodes: noisy counts of its private neighbours by group.",
}
#: Column, by the key of a declaration -> what it holds.
FIELDS: Final[Mapping[str, str]] = {
    "id": "Who the node is.",
    "label": "Its class, one of the record set classes; empty where unknown.",
    "split": "train, val, test or empty.",
    "source": "The node at one end.",
    "target": "The node at the other end.",
    "feature": "Which feature, from 0.",
    "value": "Its value.",
    "group": "The node's public group.",
    "private_nodes": "Whether the node may have private edges.",
    "public_edges": "Whether everybody knows this edge.",
}
#: Terms of Croissant that the context maps to the same name.
_CROISSANT_WORDS: Final = (
    *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileObject"),
    *("fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5"),
    *("parentField", "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate"),
    *("separator", "source", "subField", "transform"),
)
#: In the order of the specification; the namespace `graphveil` is a URN, which nobody has to host.
_CONTEXT: Final[Mapping[str, Any]] = dict(
    sorted(
        {
            **{word: f"cr:{word}" for word in _CROISSANT_WORDS},
            "@language": "en",
            "@vocab": "https://schema.org/",
            "conformsTo": "dct:conformsTo",
            "cr": "http://mlcommons.org/croissant/",
            "data": {"@id": "cr:data", "@type": "@json"},
            "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
            "dct": "http://purl.org/dc/terms/",
            "description": {"@container": "@language"},
            "examples": {"@id": "cr:examples", "@type": "@json"},
            "graphveil": "urn:graphveil:",
            "name": {"@container": "@language"},
            "prov": "http://www.w3.org/ns/prov#",
            "rai": "http://mlcommons.org/croissant/RAI/",
            "sc": "https://schema.org/",
        }.items()
    )
)


@dataclass(frozen=True)
class Credit:
    """What only the owner can state; None is left out of the metadata."""

    license: str | None = None  # URL of a licence, such as https://creativecommons.org/licenses/by/4.0/
    cite_as: str | None = None  # how to cite it, BibTeX at best
    url: str | None = None  # its page
    creator: str | None = None  # a person or an organisation
    published: str | None = None  # the day, such as 2026-01-31

    def to_json(self) -> dict[str, Any]:
        creator = None if self.creator is None else {"@type": "sc:Organization", "name": self.creator}
        credit = {"license": self.license, "citeAs": self.cite_as, "url": self.url, "creator": creator}
        return {key: value for key, value in (credit | {"datePublished": self.published}).items() if value is not None}


def as_day(text: str | None) -> str | None:
    """Return a day as it is written in metadata; InputError where the text is no day."""
    try:
        return None if text is None else date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise InputError(f"{text!r} is no day", where="--published", allowed="such as 2026-01-31") from error


@dataclass(frozen=True)
class Field:
    """A column of a table."""

    name: str
    kind: str  # one of TEXT, FLOAT, INTEGER, BOOLEAN
    description: str  # what it holds, a sentence
    label: bool = False  # whether models learn to predict it


@dataclass(frozen=True)
class Table:
    """A table and the file that holds it."""

    stem: str  # "nodes", "edges", ...
    description: str  # what a row is, a sentence
    fields: tuple[Field, ...]
    file: str
    key: str | None = None  # the column that identifies a row


@dataclass(frozen=True)
class File:
    """A file."""

    name: str
    description: str  # what is in it, a sentence
    sha256: str | None = None  # with size: None where they are not public
    size: int | None = None  # in bytes

    def to_json(self) -> dict[str, Any]:
        optional = {"contentSize": self.size and f"{self.size} B", "sha256": self.sha256}
        return {
            "@type": "cr:FileObject",
            "@id": _identifier(self.name),
            "name": self.name,
            "description": self.description,
            "contentUrl": self.name,
            "encodingFormat": _FORMATS[self.name.rpartition(".")[2]],
            **{key: value for key, value in optional.items() if value is not None},
        }


def table_of(file: str, fields: Sequence[Field], key: str | None = "id") -> Table:
    """Return the table in a file.

    Args:
        key: the field that identifies nodes; ignored where it is none of the fields.
    """
    stem = file.partition(".")[0]
    node_key = key if stem == "nodes" and key in [field.name for field in fields] else None
    return Table(stem, ABOUT[stem], tuple(fields), file, key=node_key)


def document(
    name: str,
    description: str,
    tables: Sequence[Table],
    files: Sequence[File],
    *,
    classes: Sequence[str],
    credit: Credit,
    extra: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the metadata of a graph as one JSON-LD object.

    Args:
        description: of the data set, a few sentences.
        files: of the tables and others, all of them with a hash, or none.
        classes: all declared classes in order; they become an enumeration.
        extra: further fields of the object.
    """
    # The flag for data whose files have no hash; without it, loaders require one.
    live = {"isLiveDataset": True} if any(file.sha256 is None for file in files) else {}
    return {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": list(_CONFORMS_TO),
        "name": name,
        "description": description,
        # Constant: a release never changes, and only its owner knows the version of other data.
        "version": "1.0.0",
        "keywords": ["graph", "node classification", "differential privacy"],
        **credit.to_json(),
        **live,
        **extra,
        **({"distribution": [file.to_json() for file in files]} if files else {}),
        "recordSet": [_classes(classes), *(_records(table) for table in tables)],
    }


def properties(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields, also those of nested mappings, in the namespace `graphveil`; None is left out."""
    return {f"graphveil:{key}": _property(value) for key, value in fields.items() if value is not None}


def _property(value: object) -> Any:
    if isinstance(value, Mapping):
        return properties(value)
    return [_property(item) for item in value] if isinstance(value, list | tuple) else value


def _identifier(*names: str) -> str:
    # An identifier is an IRI: quoted, so that no name of a column refers elsewhere.
    return "/".join(quote(name, safe="") for name in names)


def _records(table: Table) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": table.stem,
        "name": table.stem,
        "description": table.description,
        **({"key": {"@id": _identifier(table.stem, table.key)}} if table.key is not None else {}),
        "field": [_field(table, field) for field in table.fields],
    }


def _field(table: Table, field: Field) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": _identifier(table.stem, field.name),
        "name": field.name,
        "description": field.description,
        "dataType": [field.kind, "cr:Label"] if field.label else field.kind,
        "source": {"fileObject": {"@id": _identifier(table.file)}, "extract": {"column": field.name}},
    }


def _classes(names: Iterable[str]) -> dict[str, Any]:
    field = {"@type": "cr:Field", "@id": "classes/name", "name": "name", "dataType": TEXT}
    return {
        "@type": "cr:RecordSet",
        "@id": "classes",
        "name": "classes",
        "description": "All declared classes in order, also those that nobody has.",
        "dataType": "sc:Enumeration",
        "key": {"@id": "classes/name"},
        "field": [field | {"description": "The name of a class."}],
        "data": [{"classes/name": name} for name in names],
    }


_ABOUT_OTHERS: Final = "What is declared about the graph, or was spent on it."


def of_release(
    folder: Path, schema: GraphSchema, release: Release, digests: Mapping[str, str], credit: Credit
) -> dict[str, Any]:
    """Return the metadata of a published graph.

    Args:
        folder, schema, release: the graph.
        digests: file -> SHA-256.
        credit: from its owner; defaults are the day of the release and a plain citation.
    """
    generator = f"{release.method} of graphveil {release.version}".strip()
    sentence = release.guarantee.sentence()
    defaults = Credit(cite_as=f"{schema.name}, released with {generator}", published=release.created[:10] or None)
    given = {key: value for key, value in vars(credit).items() if value is not None}
    files = [
        File(name, ABOUT.get(name.partition(".")[0], _ABOUT_OTHERS), digest, (folder / name).stat().st_size)
        for name, digest in digests.items()
    ]
    tables = [_table_of(folder / file.name, schema) for file in files if file.name.endswith(".parquet")]
    # At the start of the description: many hubs show nothing else.
    void = "" if release.guarantee.void is None else "VOID, this release protects nobody. "
    extra = {
        "usageInfo": {"@type": "sc:CreativeWork", "name": "What is protected, and from whom", "text": sentence},
        "prov:wasGeneratedBy": {"@type": "prov:Activity", "prov:label": generator},
        "rai:dataManipulationProtocol": sentence,
        **({"rai:dataLimitations": list(release.notes)} if release.notes else {}),
        "graphveil:privacy": properties(privacy_fields(release.guarantee)),
    }
    description = (
        f"{void}A graph released by {generator}: everything made from it is covered by the guarantee in usageInfo."
    )
    return document(
        schema.name, description, tables, files, classes=schema.classes, credit=replace(defaults, **given), extra=extra
    )


def _table_of(file: Path, schema: GraphSchema) -> Table:
    kinds, number = {polars.String: TEXT, polars.Boolean: BOOLEAN}, (FLOAT, INTEGER)
    columns = polars.read_parquet_schema(file)
    fields = [
        Field(name, kinds.get(type(kind), number[kind.is_integer()]), _meaning(name, schema), label=name == "label")
        for name, kind in columns.items()
    ]
    return table_of(file.name, fields)


def _meaning(name: str, schema: GraphSchema) -> str:
    if name.startswith("count_"):
        return f"How many private neighbours are in group {name[6:]}, with noise; may be negative."
    # A release gives fixed names to two columns that an owner may call anything.
    key = {"private": "private_nodes", "public": "public_edges"}.get(name, name)
    words = {column.name: f"A feature, declared as {column.kind.word}." for column in schema.columns}
    return words.get(name) or FIELDS.get(key, f"A feature, declared from {schema.low:g} to {schema.high:g}.")
