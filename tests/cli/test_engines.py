"""Which engine a command opens, and for which methods it may be another than one thread here."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.cli.engines import opened, require_engine
from graphveil.cli.groups import EngineChoice
from graphveil.engine import LOCAL, LocalEngine
from graphveil.errors import InputError
from graphveil.graphs import load_graph
from graphveil.methods import LPGNN, METHODS, ClassSums
from tests.cli.conftest import Terminal

#: What sums over neighbours, asks people, or propagates what was reported by blocks; a method that joins is named here.
SUMS = {"class-sums", "node-sums", "gap", "progap", "lpgnet", "gcon", "eclipse", "dpdgc"}
REPORTS = {"lpgnn", "upgnet", "label-propagation", "label-pool", "answer-pool", "gcn", "sage", "gat", "mlp"}
LISTS = {"solitude", "blink", "dprr", "link-beliefs", "list-sums", "links"}
RELEASES = {"heterorr", "feature-rr", "edge-rr", "edge-rand", "lap-graph", "priv-hrg", "class-counts"}
TOWN = Path(__file__).parents[2] / "docs" / "examples" / "town"
BY_BLOCKS = SUMS | REPORTS | LISTS | RELEASES


@pytest.mark.parametrize("workers", [None, 1])
def test_one_thread_here_is_the_default_of_every_method(workers: int | None) -> None:
    place = EngineChoice(workers=workers)
    for info in METHODS.values():
        require_engine(place, info)
    with opened(place) as engine:
        assert engine == LOCAL


def test_workers_are_threads_here() -> None:
    with opened(EngineChoice(workers=3)) as engine:
        assert engine == LocalEngine(3)


@pytest.mark.parametrize("name", METHODS)
def test_another_engine_is_for_methods_that_work_by_blocks(name: str) -> None:
    place = EngineChoice(workers=2)
    if name in BY_BLOCKS:
        require_engine(place, METHODS[name])
        return
    # By the name that was typed, where several methods share a core.
    with pytest.raises(InputError, match=f"{name} does not work by blocks yet"):
        require_engine(place, METHODS[name])


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (EngineChoice(engine="ray", engine_address="auto", workers=2), "running cluster"),
        (EngineChoice(engine_address="auto"), "nothing is joined"),
        (EngineChoice(engine="dask"), "allowed: local, ray"),
    ],
)
def test_options_that_do_not_go_together_are_refused(place: EngineChoice, says: str) -> None:
    with pytest.raises(InputError) as refused:
        require_engine(place, METHODS["gap"])
    assert says in str(refused.value)


def test_a_plan_of_a_run_does_not_depend_on_its_engine(type_in: Terminal) -> None:
    words = ("plan", "class-sums", "digits", "--json")
    plain, threads = type_in(*words).json, type_in(*words, "--workers", "2").json
    for name in ("guarantee", "ledger"):
        assert plain.get(name) == threads.get(name)
    assert plain.keys() == threads.keys()


def test_a_folder_is_described_the_same_wherever_its_ids_were_looked_up(type_in: Terminal) -> None:
    words = ("data", "describe", str(TOWN), "--json")
    assert type_in(*words, "--workers", 2).json == type_in(*words).json
    assert type_in(*words, "--engine-address", "auto").code == 2


def test_a_prediction_takes_an_engine_where_people_are_read_for_it(type_in: Terminal, tmp_path: Path) -> None:
    graph = load_graph("social-200")
    for method in (LPGNN(epsilon_x=4.0, epsilon_y=4.0, epochs=1), ClassSums(epsilon=4.0, epochs=1)):
        method.fit(graph).save(tmp_path / method.core.kind)
    asked = type_in("predict", "lpgnn", "social-300", "--people", "other", "--workers", 2)
    assert asked.code == 0
    refused = type_in("predict", "class-sums", "social-200", "--workers", 2)
    assert refused.code == 2 and "class-sums does not predict by blocks" in refused.err
    assert "--engine ray" in type_in("predict", "lpgnn", "--engine-address", "auto").err
