"""One person, one price: every call of every method that reads what it protects pays first, and pays every time.

`CALLS` names, for each method, the calls that read, and the part of the graph by which a reader gives itself away
(`noise`: where public checks look at the same part, the first draw of noise stands for reading). Each call is made

    with data that refuse to be read        the ledger has grown when they are reached for
    twice with data that can be read        the second time the ledger has grown again, or the call is refused, or
                                            the answer is the first one, bit by bit
    after save and load, unread             refused, or the answer is the first one, bit by bit

`test_every_method_is_in_the_table` keeps the table complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import BudgetError, InputError
from graphveil.federation.estimator import VFGNN
from graphveil.graphs import make_graph, random_split
from graphveil.methods import METHODS, load_method
from graphveil.methods.base.method import RELEASE
from graphveil.methods.base.released import topology_of
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.registry import build_method, tagged
from graphveil.privacy import SecureRandomness
from tests.methods import made

QUICK: dict[str, Any] = {"epochs": 2, "hidden": 4, "passes": 1, "batch": 1000, "rounds": 2}
LISTS = {"epsilon_x": 1.0, "epsilon_a": 4.0}


class Read(Exception):
    """What is protected was reached for."""


class Unread:
    """A graph one part of which refuses to be read."""

    def __init__(self, graph: Any, secret: str) -> None:
        self.__dict__.update(graph=graph, secret=secret)

    def get(self, name: str) -> Any:
        return self.graph.get(name)

    def __getitem__(self, name: str) -> Any:
        return self.graph[name]

    def __getattr__(self, name: str) -> Any:
        if name == self.__dict__["secret"]:
            raise Read(name)
        return getattr(self.__dict__["graph"], name)


class Undrawn(SecureRandomness):
    """A source of noise that nobody may draw from."""

    def uint64(self, count: int) -> Any:
        raise Read("noise")

    def bytes(self, count: int) -> bytes:
        raise Read("noise")


@dataclass(frozen=True)
class Call:
    """One call that reads.

    Args:
        method, settings: what is called.
        secret: the part by which a reader gives itself away.
        ask: the call on a method, a graph and a source of noise; gives a tensor, or what has to be fitted on.
        fitted: whether it is asked of a fitted method.
    """

    method: str
    secret: str
    ask: Callable[[Any, Any, Any], Any]
    settings: dict[str, Any] = field(default_factory=dict)
    fitted: bool = False


def people(seed: int = 1, *, ids: bool = True) -> Any:
    """60 people; those of another seed are others, by their ids."""
    start = made.graph(20, seed=seed)
    schema = replace(start.schema, name=f"people-{seed}")
    names = [f"{seed}/{row}" for row in range(made.NODES)] if ids else None
    return make_graph(start.x, start.edge_index, start.y, schema, ids=names)


def collect(method: Any, graph: Any, noise: Any) -> Any:
    return method.randomize(graph, split=random_split(people(), 0), randomness=noise)


def publish(method: Any, graph: Any, noise: Any) -> Any:
    return method.publish(graph, split=random_split(people(), 0), randomness=noise)


def release(method: Any, graph: Any, noise: Any) -> Any:
    return method.release(graph, randomness=noise)


def fit(method: Any, graph: Any, noise: Any) -> Any:
    return method.fit(graph, split=random_split(people(), 0), randomness=noise).predict_proba()


def predict(method: Any, graph: Any, noise: Any) -> Any:
    return method.predict_proba(graph, randomness=noise)


def declared(method: Any, graph: Any, noise: Any) -> Any:
    return method.predict_proba(graph, randomness=noise, people="other")


# lap-graph: 60 people get no edge at all in a tenth of its draws by default, and two empty graphs are one publication
RELEASES: dict[str, dict[str, Any]] = {"priv-hrg": {"steps": 20}, "lap-graph": {"epsilon_a": 2.0, "count_share": 0.5}}
NODE = {"unit": "node", "degree_bound": 5}
CALLS: dict[str, Call] = {
    "lpgnn collects": Call("lpgnn", "x", collect),
    "lpgnn fits": Call("lpgnn", "x", fit),
    "lpgnn asks new ids": Call("lpgnn", "x", predict, fitted=True),
    "lpgnn asks declared others": Call("lpgnn", "x", declared, fitted=True),
    "upgnet collects": Call("upgnet", "x", collect),
    "label-propagation collects": Call("label-propagation", "noise", collect),
    "label-pool collects": Call("label-pool", "noise", collect),
    "answer-pool collects": Call("answer-pool", "x", collect, {"question": "0>=0.5"}),
    "solitude collects": Call("solitude", "edge_index", collect, LISTS),
    "solitude asks new ids": Call("solitude", "edge_index", predict, LISTS, fitted=True),
    "solitude asks declared others": Call("solitude", "edge_index", declared, LISTS, fitted=True),
    "blink collects": Call("blink", "edge_index", collect, LISTS),
    "blink asks new ids": Call("blink", "edge_index", predict, LISTS, fitted=True),
    "dprr collects": Call("dprr", "edge_index", collect, LISTS),
    "dprr asks new ids": Call("dprr", "edge_index", predict, LISTS, fitted=True),
    "link-beliefs collects": Call("link-beliefs", "edge_index", collect, LISTS),
    "list-sums collects": Call("list-sums", "edge_index", collect, LISTS),
    "links collects": Call("links", "edge_index", collect, LISTS),
    "class-sums publishes": Call("class-sums", "x", publish),
    **{
        f"{name}, {unit}, {what}": Call(name, "x", ask, {**settings, **more}, fitted=what == "queries")
        for name, options in (
            (method.name, method.options) for method in CURATOR_METHODS if "queries" in method.options
        )
        for unit, settings in (("edge", {}), ("node", NODE))
        if (unit == "edge" and options["unit"].default != "node") or (unit == "node" and "degree_bound" in options)
        for what, ask, more in (("publishes", publish, {}), ("queries", predict, {"queries": 1}))
    },
    **{f"{method.name} fits": Call(method.name, "x", fit) for method in CURATOR_METHODS},
    **{f"{name} releases": Call(name, "x", release, RELEASES.get(name, {})) for name in tagged(RELEASE)},
}
EVERY = pytest.mark.parametrize("name", CALLS)


def build(call: Call) -> Any:
    """An unfitted method; a fitted one where that is what is asked."""
    quick = {key: value for key, value in QUICK.items() if key in METHODS[call.method].options}
    method = build_method(call.method, {**quick, **call.settings}, 3)
    if call.fitted:
        method.fit(people(), split=random_split(people(), 0), randomness=SecureRandomness())
    return method


def asked(call: Call) -> Any:
    """Whom a call is about: other people than those of the run, or those of the run."""
    return people(2, ids=call.ask is not declared) if call.fitted else people()


def unread(call: Call, graph: Any) -> tuple[Any, Any]:
    noisy = call.secret == "noise"
    return (graph, Undrawn()) if noisy else (Unread(graph, call.secret), SecureRandomness())


@EVERY
def test_it_is_paid_before_it_is_read_and_stays_paid(name: str) -> None:
    call = CALLS[name]
    method = build(call)
    before = method.ledger
    with pytest.raises(Read):
        call.ask(method, *unread(call, asked(call)))
    assert len(method.ledger.spends) > len(before.spends)
    assert method.ledger.spends[: len(before.spends)] == before.spends


@EVERY
def test_the_second_time_is_paid_refused_or_the_first_answer(name: str) -> None:
    call = CALLS[name]
    method, graph = build(call), asked(call)
    first = call.ask(method, graph, SecureRandomness())
    paid = method.ledger
    try:
        second = call.ask(method, *unread(call, graph))
    except (BudgetError, InputError):
        assert method.ledger == paid
    except Read:
        assert len(method.ledger.spends) > len(paid.spends)
    else:
        assert torch.equal(first, second) and method.ledger == paid


@EVERY
def test_after_save_and_load_it_is_refused_or_the_first_answer(name: str, tmp_path: Path) -> None:
    call = CALLS[name]
    method, graph = build(call), asked(call)
    first = call.ask(method, graph, SecureRandomness())
    if not call.fitted:
        complete(method, first)
    loaded = load_method(method.save(tmp_path))
    assert loaded.ledger == method.ledger and loaded.guarantee == method.guarantee
    try:
        second = call.ask(loaded, *unread(call, graph))
    except (BudgetError, InputError):
        assert loaded.ledger == method.ledger
    else:
        assert torch.equal(first, second) and loaded.ledger == method.ledger


def complete(method: Any, first: Any) -> None:
    """Fit on what was collected or published, where that is not done."""
    if isinstance(first, torch.Tensor):
        return
    graph = people()
    if hasattr(method, "fit_released"):
        method.fit_released(first, split=random_split(graph, 0))
    elif hasattr(method, "fit_published"):
        more = {"randomness": SecureRandomness()} if method.privacy.unit == "node" else {}
        method.fit_published(first, **more)
    elif hasattr(first, "lists"):
        method.fit_reports(first)
    else:
        method.fit_reports(first, topology_of(graph))


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call.ask in (collect, publish, release)])
def test_another_collection_is_not_fitted_for_the_price_of_one(name: str) -> None:
    """A second publication under the same settings is noise drawn anew, whoever drew it."""
    call = CALLS[name]
    mine, other = build(call), build(call)
    complete(mine, call.ask(mine, people(), SecureRandomness()))
    paid, foreign = mine.ledger, call.ask(other, people(), SecureRandomness())
    with pytest.raises(BudgetError):
        complete(mine, foreign)
    assert mine.ledger == paid


@pytest.mark.parametrize("name", ["lpgnn asks new ids", "solitude asks new ids"])
def test_another_name_of_the_graph_makes_nobody_new(name: str) -> None:
    call = CALLS[name]
    method, graph = build(call), asked(call)
    first, paid = call.ask(method, graph, SecureRandomness()), method.ledger
    graph.schema = replace(graph.schema, name="renamed")
    assert torch.equal(call.ask(method, graph, Undrawn()), first) and method.ledger == paid


def test_a_federation_that_was_stopped_does_not_publish_again() -> None:
    federation = VFGNN(epsilon=1.0, epochs=1)
    with pytest.raises(Read):
        federation.fit(people(), randomness=Undrawn())
    with pytest.raises(BudgetError, match="this federation has already run"):
        federation.fit(people(), randomness=SecureRandomness())


def test_every_method_is_in_the_table() -> None:
    """Baselines protect nothing, and pay nothing."""
    assert {call.method for call in CALLS.values()} == {name for name, info in METHODS.items() if info.trust != "none"}
