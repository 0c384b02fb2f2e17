"""What a caller declares in Python: the facts of a `graph.toml`, as keywords or as a `GraphSchema`.

No value is read: a range or a class list computed from the data would reveal some of it. Facts that are not declared
have defaults, which the notes of the graph name; the range has one only for features of the type bool, which is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypedDict, get_type_hints

from graphveil.errors import InputError
from graphveil.files.columns import Kind
from graphveil.graphs.declared.declaration import Declaration, parse_declaration
from graphveil.graphs.value.schema import GraphSchema
from graphveil.runtime.checks import require_known

PRIVATE = ("features", "labels")
"""The parts that are private by default."""


class Declared(TypedDict, total=False):
    """The public facts of a graph, known without looking at the data: from a form, a law, a sensor's manual.

    Keys:
        range: (low, high) of every feature; for named columns also {pattern: (low, high)}, which scales them to 0..1.
        classes: all class names in order, also those that nobody has; or their number, for the names "0", "1", ...
        directed: whether edges have a direction; default: no.
        private: the private parts, out of "features", "labels" and "edges"; default: features and labels.
        out_of_range: "refuse" or "clip" feature values outside the range; default: refuse.
        missing: what stands for a missing feature value, never computed from the data: a number inside the range, or
            {pattern: number}; for declared columns {name: value of the column, or "own category"}; default: refuse.
    """

    range: Sequence[float] | Mapping[str, Sequence[float]]
    classes: Sequence[str] | int
    directed: bool
    private: Sequence[str]
    out_of_range: Literal["refuse", "clip"]
    missing: float | Mapping[str, float | str]
    name: str


class DeclaredColumns(Declared, total=False):
    """The facts of `Declared`, and the roles of columns.

    Keys:
        id, label, split: columns of the nodes; default: "id", "label" (without one every label is unknown) and no
            split.
        label_separator: what stands between the names where a node has several labels.
        features: the feature columns; default: all other columns of the nodes.
        columns: the feature columns with what each may hold (`graphveil.files.columns`), in place of range and
            features.
        source, target: columns of the edges; default: "source" and "target".
        dimension: number of features, needed with sparse entries.
        public_edges: column of the edges, true or false: the edges that everybody knows.
        private_nodes: column of the nodes, true or false: who may have private edges.
    """

    id: str
    label: str
    label_separator: str
    split: str
    features: Sequence[str]
    columns: Mapping[str, Kind]
    source: str
    target: str
    dimension: int
    public_edges: str
    private_nodes: str


def declaration_of(
    call: str,
    schema: GraphSchema | None,
    facts: Mapping[str, object],
    *,
    columns: bool = False,
    binary: bool = False,
    directed: bool = False,
    implied: Mapping[str, object] = MappingProxyType({}),
) -> tuple[Declaration, tuple[str, ...]]:
    """Return what a caller declared, and one note for each default.

    Args:
        call: the call to show in messages, such as "from_pyg(data".
        schema: the facts as a value; then no keyword may repeat them.
        facts: the keywords of `Declared`, or, with `columns`, of `DeclaredColumns`.
        binary: whether the features have the type bool.
        directed: the default for whether edges have a direction.
        implied: names of columns that the call implies, which the caller does not pass.

    Raises:
        InputError: a fact is unknown, wrong, repeated or not declared; shows the line that declares it.
    """
    where = call.split("(")[0]
    keywords = get_type_hints(DeclaredColumns if columns else Declared)
    require_known(facts, keywords, where, "unknown argument")
    notes: tuple[str, ...] = ()
    if schema is not None:
        facts = {**_facts_of(schema, {**facts, **implied}, where, columns=columns), **facts}
    else:
        with_defaults: dict[str, object] = {"directed": directed, **facts}
        if "private" not in facts:
            with_defaults["private"] = PRIVATE
            notes += ("private by default: features and labels, not edges",)
        # From the type and not from the values, which are not read here.
        if binary and "range" not in facts:
            with_defaults["range"] = (0, 1)
            notes += ("range 0 to 1: the features have the type bool",)
        _require(call, with_defaults)
        facts = with_defaults
    return parse_declaration({key: _plain(key, value) for key, value in {**facts, **implied}.items()}, where), notes


def _facts_of(schema: GraphSchema, facts: Mapping[str, object], where: str, *, columns: bool) -> dict[str, object]:
    """What a schema declares; InputError where a keyword repeats it."""
    if not isinstance(schema, GraphSchema):
        raise InputError(f"schema is a {type(schema).__name__}", where=where, allowed="a graphveil.graphs.GraphSchema")
    schema_facts: dict[str, object] = {key: getattr(schema, key) for key in ("name", "classes", "directed", "private")}
    # The cells of a table are encoded as columns declare; the features of other sources are encoded already.
    if columns and schema.columns and "features" not in facts:
        schema_facts["columns"] = {column.name: column.kind for column in schema.columns}
    else:
        schema_facts |= {"range": (schema.low, schema.high), "dimension": schema.dimension}
    if schema.missing and ("columns" in schema_facts or not schema.columns):
        schema_facts["missing"] = dict(schema.missing)
    repeated = [key for key in facts if key in schema_facts]
    if repeated:
        raise InputError(
            f"{repeated[0]} is declared twice", where=where, remedy="leave it out, or leave out the schema"
        )
    return schema_facts


def _require(call: str, facts: Mapping[str, object]) -> None:
    """Refuse undeclared facts; the remedy is the call to write, with placeholders for what only the caller knows."""
    missing = [key for key in ("range", "classes") if key not in facts and not (key == "range" and "columns" in facts)]
    if not missing:
        return
    declared = "".join(f", {key}=..." for key in facts if key not in ("directed", "private"))
    line = call + declared + "".join(f", {_PLACEHOLDERS[key]}" for key in missing) + ")"
    what = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not declared"
    raise InputError(what, where=call.split("(")[0], remedy=f"write {line} with what is public: {_WHENCE}")


_PLACEHOLDERS = {"range": "range=(LOW, HIGH)", "classes": 'classes=["NAME", "NAME"]'}
_WHENCE = "from a form, a law, a sensor's manual, never from the data, which it would give away"


def _plain(key: str, value: object) -> object:
    """A value as a `graph.toml` would hold it."""
    if hasattr(value, "tolist"):  # a NumPy array or number
        value = value.tolist()
    if key == "classes" and isinstance(value, int) and not isinstance(value, bool):
        return [str(number) for number in range(value)] if 0 <= value <= _MOST_CLASSES else value
    if isinstance(value, Mapping):
        return {str(group): _plain(key, pair) for group, pair in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [item.item() if hasattr(item, "item") else item for item in value]
    return value


_MOST_CLASSES = 1_000_000
