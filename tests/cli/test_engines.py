"""Which engine a command opens, and for which methods it may be another than one thread here."""

from __future__ import annotations

import pytest

from graphveil.cli.engines import opened, require_engine
from graphveil.cli.groups import EngineChoice
from graphveil.engine import LOCAL, LocalEngine
from graphveil.errors import InputError
from graphveil.methods import METHODS
from tests.cli.conftest import Terminal

#: What sums over neighbours, asks people, or propagates what was reported by blocks; a method that joins is named here.
SUMS = {"class-sums", "node-sums", "gap", "progap", "lpgnet", "gcon", "eclipse", "dpdgc"}
REPORTS = {"lpgnn", "upgnet", "label-propagation", "label-pool", "answer-pool", "gcn", "sage", "gat", "mlp"}
LISTS = {"solitude", "blink", "dprr", "link-beliefs", "list-sums", "links"}
RELEASES = {"heterorr", "feature-rr", "edge-rr", "edge-rand", "lap-graph", "priv-hrg"}
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
