"""Schemas made from another one: whole columns, and a declaration of the result's own; made in one place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.federation.simulation import feature_parts
from graphveil.files.columns import Category, Integer, Number, Ordinal, Tags, YesNo, blocks_of
from graphveil.graphs import Graph, from_tables, load_graph, write_release
from graphveil.graphs.value.schema import FeatureNumbers
from graphveil.methods.registry import build_method
from graphveil.methods.release.extractor import Extractor, embedded
from graphveil.privacy import SeededRandomness
from tests.test_house import SOURCE

COLUMNS = {
    "age": Integer(14, 95),
    "height": Number(0.5, 2.5),
    "team": Category(("red", "blue", "green"), empty=True),
    "grade": Ordinal(("low", "middle", "high")),
    "member": YesNo(),
    "label": Tags(("chess", "go"), 2),  # called as the label usually is, which is called otherwise here
}


def graph(nodes: int = 40) -> Graph:
    """People in a ring with a column of every kind, every part private."""
    rows = range(nodes)
    cells = {
        "id": [f"p{row}" for row in rows],
        "age": [14 + row % 82 for row in rows],
        "height": [0.5 + 2 * row / nodes for row in rows],
        "team": [("red", "blue", "green", "")[row % 4] for row in rows],
        "grade": [("low", "middle", "high")[row % 3] for row in rows],
        "member": [("yes", "no")[row % 2] for row in rows],
        "label": [("", "chess", "go;chess")[row % 3] for row in rows],
        "club": [("cat", "dog")[row // 2 % 2] for row in rows],
    }
    edges = {"source": cells["id"], "target": [*cells["id"][1:], cells["id"][0]]}
    facts: dict[str, Any] = {"columns": COLUMNS, "missing": {"age": 20}, "classes": ["cat", "dog"], "label": "club"}
    return from_tables(cells, edges, private=["features", "labels", "edges"], **facts)


def test_whole_columns_stay_and_half_of_one_is_refused() -> None:
    schema = graph().schema
    age, _, team, *_ = blocks_of(schema.columns)
    part = schema.derived(selected=[*range(age.start, age.stop), *range(team.start, team.stop)], name="part")
    assert [column.name for column in part.columns] == ["age", "team"]
    assert (part.name, part.dimension, part.missing) == ("part", 4, (("age", 20.0),))
    with pytest.raises(InputError, match="1 of the 3 features of the column 'team'; allowed: whole columns"):
        schema.derived(selected=[0, team.start])


def test_numbers_in_place_of_features_have_a_declaration_of_their_own() -> None:
    schema = graph().schema.derived(numbers=FeatureNumbers(2, -3.0, 4.0, "the mechanism"), private=())
    assert (schema.dimension, schema.low, schema.high, schema.source) == (2, -3.0, 4.0, "the mechanism")
    assert (schema.columns, schema.missing, schema.private) == ((), (), ())


EPSILONS: dict[str, dict[str, Any]] = {
    "heterorr": {"epsilon_x": 2.0, "epsilon_a": 2.0, "epsilon_y": 2.0},
    "feature-rr": {"epsilon_x": 2.0},
    "edge-rr": {"epsilon_a": 4.0},
    "edge-rand": {"epsilon_a": 4.0},
    "lap-graph": {"epsilon_a": 4.0},
    "class-counts": {"epsilon_a": 4.0},
}


@pytest.mark.parametrize("method", EPSILONS)
def test_every_release_of_declared_columns_is_written_and_read_back(tmp_path: Path, method: str) -> None:
    whole = graph()
    released = build_method(method, EPSILONS[method], 2).release(whole, randomness=SeededRandomness(1), method=method)
    again = load_graph(write_release(released, tmp_path / "out", released.release, card=""))
    assert again.schema.columns == (() if "epsilon_x" in EPSILONS[method] else whole.schema.columns)
    assert torch.equal(again.x.to_dense(), released.x.to_dense())
    assert "a missing value of age counts as 20, as declared" in again.release.notes


def test_embeddings_of_declared_columns_are_plain_numbers() -> None:
    embeddings = embedded(graph(), Extractor(lambda rows: 2 * rows[:, :2], 2, 0.0, 2.0, "arithmetic"))
    assert (embeddings.schema.dimension, embeddings.schema.columns) == (2, ())


def test_nothing_is_paid_where_what_is_published_cannot_be_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = build_method("feature-rr", {"epsilon_x": 2.0}, 2)
    monkeypatch.setattr("graphveil.methods.release.published.LARGEST", 10)
    with pytest.raises(InputError, match="noisy numbers are too many"):
        maker.release(graph(), randomness=SeededRandomness(1), method="feature-rr")
    assert maker.ledger.spends == ()


@pytest.mark.parametrize("shares", [(1, 1), (1, 2, 3), (1, 1, 1, 1, 1)])
def test_holders_get_whole_columns_and_each_column_once(shares: tuple[int, ...]) -> None:
    schema = graph().schema
    parts = feature_parts(schema, shares, np.random.default_rng(3))
    names = [column.name for mine in parts for column in schema.derived(selected=mine.tolist()).columns]
    assert sorted(names) == sorted(COLUMNS)
    assert sorted(np.concatenate(parts).tolist()) == list(range(schema.dimension))
    with pytest.raises(InputError, match="holder 1 gets none of the 6 feature columns"):
        feature_parts(schema, (1, 100), np.random.default_rng(3))


def test_no_other_place_makes_a_schema_of_another() -> None:
    """A copy with a field changed keeps columns that no longer describe the features."""
    derives = re.compile(r"\breplace\(\s*[a-z_.]*schema\b|\.schema\s*,\s*(dimension|low|high|columns|private)\s*=")
    places = [
        str(file.relative_to(SOURCE))
        for file in sorted(SOURCE.rglob("*.py"))
        if file.name != "schema.py" and derives.search(file.read_text())
    ]
    assert places == []
