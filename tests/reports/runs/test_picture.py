"""Pictures of graphs: the copy that may be handed on holds nothing that the guarantee does not cover."""

from __future__ import annotations

import json
import math
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import ModelFileError
from graphveil.graphs import Graph, random_split, social_graph
from graphveil.methods.runs import experiment
from graphveil.methods.runs.result import Result
from graphveil.privacy import SecureRandomness, SeededRandomness
from graphveil.reports.runs import folder as run_folder
from graphveil.reports.runs.copies import own, pairs_among, sample_nodes, shareable
from graphveil.reports.runs.picture import BOTH, HIDDEN, MADE, Picture
from tests.reports.pages import read

OPTIONS = {"seed": 0, "split": "random"}
#: Method -> settings; the edges of the copy that may be handed on: public ones, released ones, none at all, or no copy.
METHODS: dict[str, tuple[dict[str, Any], str]] = {
    "lpgnn": ({"epsilon_x": 1.0, "epsilon_y": 2.0, "epochs": 2}, "public"),
    "heterorr": ({"epsilon_a": 4.0, "epsilon_y": 3.0, "epochs": 2}, "released"),
    "solitude": ({"epsilon_x": 1.0, "epsilon_a": 4.0, "epsilon_y": 2.0, "epochs": 2}, "alone"),
    "gap": ({"epsilon": 2.0, "delta": 1e-4, "epochs": 2}, "none"),
    "class-sums": ({"epsilon": 2.0, "delta": 1e-4, "epochs": 2}, "none"),
    "sage": ({"epochs": 2}, "none"),
}
NODES = 90


def graph_of(seed: int) -> Graph:
    """People with names that stand nowhere else."""
    graph = social_graph(NODES, average_degree=6, dimension=8, classes=3, apps=3, seed=seed)
    graph["ids"] = [f"planted-person-{node}" for node in range(NODES)]
    return graph


@cache
def trained(method: str) -> Result:
    return experiment.run(
        method, graph_of(1), settings=METHODS[method][0], controls=False, randomness=SecureRandomness()
    )


def written(method: str, path: Path) -> Path:
    run_folder.write_run(trained(method), path, options=OPTIONS, graph=graph_of(1))
    return path


def leaks(public: Path, graph: Graph, allowed: set[tuple[int, int]]) -> list[str]:
    """What the public part tells beyond what it may: names, a column about people, edges that are not `allowed`."""
    private = []
    for file in public.iterdir():
        text = file.read_bytes().decode("latin-1")
        private += [f"{file.name}: {name}" for name in map(str, graph.get("ids") or ()) if name in text]
    data = [json.loads(script) for script in read((public / "report.html").read_text()).scripts if script[:1] == "{"]
    for drawing in data:
        private += [column for column in ("lines", "labels", "parts", "covered", "names") if drawing.get(column)]
        drawn = {tuple(pair) for kind in drawing.get("edges", ()) for pair in kind["pairs"]}
        private += [f"edge {pair}" for pair in sorted(drawn - allowed)]
    return private


def allowed_by(method: str) -> set[tuple[int, int]]:
    kind = METHODS[method][1]
    if kind in ("none", "alone"):
        return set()
    source = graph_of(1) if kind == "public" else trained(method).model.published
    return {tuple(pair) for pair in pairs_among(source.edge_index, np.arange(NODES)).tolist()}


@pytest.mark.parametrize("method", METHODS)
def test_what_may_be_handed_on_tells_nothing_private(method: str, tmp_path: Path) -> None:
    run = written(method, tmp_path / "run")
    assert leaks(run / "public", graph_of(1), allowed_by(method)) == []
    assert (run / "public" / "picture.json").exists() == (METHODS[method][1] != "none")
    assert "planted-person" not in (run / "report.html").read_text()
    assert (run / "report.html").stat().st_mode & 0o777 == 0o600
    assert (run / "picture.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("method", ["heterorr", "gap"])
def test_a_private_value_in_the_shared_page_is_found(method: str, tmp_path: Path) -> None:
    run, allowed = written(method, tmp_path / "run"), allowed_by(method)
    shutil.copy(run / "report.html", run / "public" / "report.html")
    private = leaks(run / "public", graph_of(1), allowed)
    assert "labels" in private
    assert any(leak.startswith("edge") for leak in private)


@pytest.mark.parametrize("method", METHODS)
def test_the_shared_copy_depends_on_nothing_private(method: str) -> None:
    model, kind = trained(method).model, METHODS[method][1]
    # The same public facts with other labels and features, and other edges.
    true, other = graph_of(1), graph_of(2)
    # A server that never met the truth keeps no picture of it.
    same = own(model, true, random_split(true, 0)) == shareable(model, true)
    assert same == (kind == "public" or method == "solitude")
    if kind == "public":
        other.edge_index = true.edge_index
    assert not torch.equal(true.x, other.x)
    assert not torch.equal(true.y, other.y)
    assert shareable(model, true) == shareable(model, other)
    assert (shareable(model, true) is None) == (kind == "none")


def test_noise_that_is_known_covers_no_picture() -> None:
    settings, graph = METHODS["lpgnn"][0], graph_of(1)
    seeded = experiment.run("lpgnn", graph, settings=settings, controls=False, randomness=SeededRandomness(3))
    assert shareable(seeded.model, graph) is None
    open_labels = {**settings, "epsilon_x": float("inf"), "epsilon_y": float("inf")}
    bare = experiment.run("lpgnn", graph, settings=open_labels, controls=False, randomness=SecureRandomness())
    assert shareable(bare.model, graph) is None


@pytest.mark.parametrize("bare", ["features", "labels"])
def test_what_is_predicted_from_private_values_without_noise_is_in_no_copy_that_is_handed_on(bare: str) -> None:
    """The other part has an epsilon, which says nothing of this one; what is not private itself shows nobody."""
    graph = graph_of(1)
    settings = {**METHODS["lpgnn"][0], {"features": "epsilon_x", "labels": "epsilon_y"}[bare]: float("inf")}
    model = experiment.run("lpgnn", graph, settings=settings, controls=False, randomness=SecureRandomness()).model
    assert math.isfinite(model.guarantee.epsilon) and shareable(model, graph) is None
    graph.schema = graph.schema.derived(private=[part for part in ("features", "labels") if part != bare])
    assert shareable(model, graph) is not None
    # Features that nobody sends are not shown by what labels say.
    labels = experiment.run(
        "label-pool", graph_of(1), settings={"epsilon_y": 2.0}, controls=False, randomness=SecureRandomness()
    )
    assert shareable(labels.model, graph_of(1)) is not None


def test_the_maker_sees_true_and_released_edges_apart() -> None:
    result, graph = trained("heterorr"), graph_of(1)
    picture = own(result.model, graph, random_split(graph, 0))
    assert picture is not None
    true, released = (
        {tuple(pair) for pair in pairs_among(source.edge_index, np.arange(NODES)).tolist()}
        for source in (graph, result.model.published)
    )
    assert set(picture.edges[BOTH]) == true & released
    assert set(picture.edges[HIDDEN]) == true - released
    assert set(picture.edges[MADE]) == released - true
    assert picture.labels == tuple(graph.y.tolist())
    assert set(picture.parts) == {"trains", "validates", "tests"}
    assert set(picture.covered) == {"features, label, edges"}
    bare = own(trained("sage").model, graph, random_split(graph, 0))
    assert bare is not None and set(bare.covered) == {"nothing"}


def test_a_picture_that_was_changed_is_refused(tmp_path: Path) -> None:
    run = written("heterorr", tmp_path / "run")
    before = (run / "public" / "report.html").read_text()
    run_folder.rewrite_report(run)
    assert (run / "public" / "report.html").read_text() == before
    shutil.copy(run / "picture.json", run / "public" / "picture.json")
    with pytest.raises(ModelFileError, match="was changed since it was written"):
        run_folder.rewrite_report(run)


def test_a_damaged_picture_is_no_picture() -> None:
    graph = graph_of(1)
    picture = own(trained("gap").model, graph, random_split(graph, 0))
    assert picture is not None
    whole = picture.to_dict()
    assert Picture.from_dict(json.loads(json.dumps(whole))).to_dict() == whole
    for change in ({"names": ["a"]}, {"edges": {"linked": [[0, NODES]]}}, {"places": [[0, 5_000]]}):
        with pytest.raises(ValueError, match=r"lengths|no pair"):
            Picture.from_dict({**whole, **change})


def test_a_sample_of_a_large_graph_is_of_neighbours_and_the_same_each_time() -> None:
    graph = social_graph(900, average_degree=6, dimension=4, classes=3, apps=2, seed=1)
    drawn = sample_nodes(graph.edge_index, 900, most=200)
    assert len(drawn) == len(set(drawn.tolist())) == 200
    assert np.array_equal(drawn, sample_nodes(graph.edge_index, 900, most=200))
    # As many as 200 single nodes drawn at random would have between them: 900 * 6 / 2 * (200 / 900)^2 = 133.
    assert len(pairs_among(graph.edge_index, drawn)) > 160
    assert sample_nodes(graph.edge_index, 900).tolist() == list(range(900))
    # People without links are drawn as well.
    assert len(sample_nodes(torch.empty(2, 0, dtype=torch.int64), 900, most=200)) == 200
