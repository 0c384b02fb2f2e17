"""Croissant metadata of a release: it is published, so every file in its folder may be counted and hashed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphveil.graphs.releases import croissant as cr  # its vocabulary's own prefix
from graphveil.privacy.statement.guarantee import privacy_fields

if TYPE_CHECKING:
    import polars

    from graphveil.graphs.value.release import Release
    from graphveil.graphs.value.schema import GraphSchema

_OTHER: Final = "What is declared about the graph, or was spent on it."


def of_release(
    folder: Path, schema: GraphSchema, release: Release, digests: Mapping[str, str], credit: cr.Credit
) -> dict[str, Any]:
    """Return the metadata of a published graph.

    Args:
        folder, schema, release: the graph; digests: file -> SHA-256.
        credit: what its owner says; the day and a plain citation stand in for what is not said.
    """
    generator = f"{release.method} of graphveil {release.version}".strip()
    sentence = release.guarantee.sentence()
    own = cr.Credit(cite_as=f"{schema.name}, released with {generator}", published=release.created[:10] or None)
    stated = {key: value for key, value in vars(credit).items() if value is not None}
    files = [
        cr.File(name, cr.ABOUT.get(name.partition(".")[0], _OTHER), digest, (folder / name).stat().st_size)
        for name, digest in digests.items()
    ]
    tables = [_table_of(folder / file.name, schema) for file in files if file.name.endswith(".parquet")]
    # In the first words: hubs show the description, and many show nothing else.
    void = "" if release.guarantee.void is None else "VOID, this release protects nobody. "
    more = {
        "usageInfo": {"@type": "sc:CreativeWork", "name": "What is protected, and from whom", "text": sentence},
        "prov:wasGeneratedBy": {"@type": "prov:Activity", "prov:label": generator},
        "rai:dataManipulationProtocol": sentence,
        **({"rai:dataLimitations": list(release.notes)} if release.notes else {}),
        "graphveil:privacy": cr.properties(privacy_fields(release.guarantee)),
    }
    about = f"{void}A graph released by {generator}: everything made from it is covered by the guarantee in usageInfo."
    return cr.document(
        schema.name, about, tables, files, classes=schema.classes, credit=replace(own, **stated), more=more
    )


def _table_of(file: Path, schema: GraphSchema) -> cr.Table:
    import polars

    kinds = {polars.String: cr.TEXT, polars.Boolean: cr.BOOLEAN}
    columns = polars.read_parquet_schema(file)
    fields = [
        cr.Field(name, kinds.get(type(kind), _number(kind)), _meaning(name, schema), label=name == "label")
        for name, kind in columns.items()
    ]
    return cr.table_of(file.name, fields)


def _number(kind: polars.DataType) -> str:
    return cr.INTEGER if kind.is_integer() else cr.FLOAT


def _meaning(name: str, schema: GraphSchema) -> str:
    if name.startswith("count_"):
        return f"How many private neighbours are in group {name[6:]}, with noise; may be negative."
    # A release has its own names for the two columns that an owner may call anything.
    key = {"private": "private_nodes", "public": "public_edges"}.get(name, name)
    words = {column.name: f"A feature, declared as {column.kind.word}." for column in schema.columns}
    return words.get(name) or cr.FIELDS.get(key, f"A feature, declared from {schema.low:g} to {schema.high:g}.")
