"""A price is paid before anything is read: with the account on a disk a crash in between errs to the private side.

Every way by which private data leaves a person or a curator runs with an account that writes down when it was asked, on
a graph that writes down when it was read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import CountedSum, PerturbedSum
from graphveil.methods import GAP, LPGNN, ClassSums, LabelPropagation, LinkBeliefs, ProGAP, Solitude
from graphveil.methods.registry import build_method
from graphveil.privacy import Ledger, SeededRandomness
from tests.methods import curator_made as cm
from tests.methods import links_made, made

FAST: dict[str, Any] = {"epochs": 2, "hidden": 4}


class Log(list[str]):
    """What happened, in order; also an account of a ledger."""

    def settle(self, held: Ledger, paid: Ledger) -> Ledger:
        self.append("paid")
        return replace(paid, account=self)


class Watched:
    """A graph that writes down which private part is read."""

    def __init__(self, graph: Any, log: Log, private: tuple[str, ...]) -> None:
        self._graph, self._log, self._private = graph, log, private

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._graph, name)
        if name == "y" and name in self._private:
            return watched(found, self._log)
        if name in self._private:
            self._log.append(name)
        return found


def watched(labels: Tensor, log: Log) -> Tensor:
    """The labels, which may be asked for their shape at any time: how many a node has is public."""

    class Labels(Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func not in (Tensor.dim, Tensor.ndim.__get__, Tensor.shape.__get__):
                log.append("y")
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    return labels.as_subclass(Labels)


@dataclass(frozen=True)
class Way:
    """How private data leaves: a method, its private parts, and what is done with a graph."""

    build: Callable[[], Any]
    private: tuple[str, ...]
    graph: Callable[[], Any]
    leave: Callable[[Any, Any], Any]


def noise() -> SeededRandomness:
    return SeededRandomness(1)


def fitting(method: Any, graph: Any) -> Any:
    return method.fit(graph, split=made.split_of(cm.graph()), randomness=noise())


def asking(method: Any, graph: Any) -> Any:
    return method.predict_proba(graph, randomness=noise())


def fitted(build: Callable[[], Any], graph: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: fitting(build(), graph())


def gap() -> Any:
    return GAP(epsilon=2.0, queries=1, bits=5, **FAST)


def lpgnn() -> Any:
    return LPGNN(epsilon_x=1.0, epsilon_y=1.0, queries=1, **FAST)


def solitude() -> Any:
    return Solitude(epsilon_x=1.0, epsilon_a=4.0, epsilon_y=1.0, queries=1, **FAST)


def others() -> Any:
    """People whom nobody has asked yet."""
    return made.changed(made.graph(seed=2), name="elsewhere")


def heterorr() -> Any:
    return build_method("heterorr", {"epsilon_x": 1.0, "epsilon_a": 2.0, "epsilon_y": 1.0, "epochs": 2}, 3)


PEOPLE, EVERYTHING = ("x", "y"), ("x", "y", "edge_index")
WAYS = {
    "lpgnn collects": Way(lpgnn, PEOPLE, made.graph, fitting),
    "lpgnn asks new people": Way(fitted(lpgnn, made.graph), PEOPLE, others, asking),
    "label-propagation collects": Way(lambda: LabelPropagation(epsilon_y=1.0), ("y",), made.graph, fitting),
    "solitude collects": Way(solitude, EVERYTHING, links_made.graph, fitting),
    "solitude asks new people": Way(
        fitted(solitude, links_made.graph), EVERYTHING, lambda: links_made.graph(seed=2), asking
    ),
    "link-beliefs collects": Way(
        lambda: LinkBeliefs(epsilon_x=1.0, epsilon_a=4.0, epsilon_y=1.0, rounds=2),
        EVERYTHING,
        links_made.graph,
        fitting,
    ),
    "gap publishes": Way(gap, EVERYTHING, cm.graph, fitting),
    "gap answers a query": Way(fitted(gap, cm.graph), EVERYTHING, others, asking),
    "progap publishes": Way(lambda: ProGAP(epsilon=2.0, bits=5, **FAST), EVERYTHING, cm.graph, fitting),
    "gap trains nodes": Way(
        lambda: GAP(epsilon=8.0, unit="node", degree_bound=3, hops=1, batch=10_000, passes=2, bits=5, hidden=4),
        EVERYTHING,
        cm.graph,
        fitting,
    ),
    "dp-mlp trains": Way(
        lambda: build_method("dp-mlp", {"epsilon": 8.0, "batch": 10_000, "passes": 2}, 3), PEOPLE, cm.graph, fitting
    ),
    "class-sums publishes": Way(lambda: ClassSums(epsilon=2.0, **FAST), EVERYTHING, cm.graph, fitting),
    "class-counts releases": Way(
        lambda: build_method("class-counts", {"epsilon_a": 2.0}, 3),
        ("x",),
        cm.graph,
        lambda m, g: m.release(g, randomness=noise()),
    ),
    # Which of its pairs are protected is public, and is read off the list of edges before.
    "heterorr releases": Way(heterorr, PEOPLE, cm.graph, lambda m, g: m.release(g, randomness=noise())),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_price_is_paid_before_anything_is_read(way: str) -> None:
    log, said = Log(), WAYS[way]
    method = said.build()
    method.ledger = replace(method.ledger, account=log)
    said.leave(method, Watched(said.graph(), log, said.private))
    assert log[0] == "paid", log
    assert set(said.private) & set(log), "nothing was read at all"


@pytest.mark.parametrize("way", ["gap publishes", "gap answers a query", "progap publishes", "class-sums publishes"])
def test_sums_that_left_stay_paid_whatever_happens_to_the_rest(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt right after noisy sums were made: who asks again is asked to pay again."""
    sums: Any = CountedSum if way == "class-sums publishes" else PerturbedSum
    said, real = WAYS[way], sums.perturb
    method = said.build()
    before = len(method.ledger.spends)

    def interrupted(*rest: Any, **named: Any) -> Any:
        real(*rest, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(sums, "perturb", interrupted)
    with pytest.raises(KeyboardInterrupt):
        said.leave(method, said.graph())
    assert len(method.ledger.spends) == before + 1
