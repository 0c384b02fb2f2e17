"""One person, one price: every call of every method that reads what it protects pays first, and pays every time.

`CALLS` names, for each method, the calls that read, and the parts of the graph by which a reader gives itself away.
Each call is made

    with data that refuse to be read        the ledger has grown when they are reached for: with the account on a disk
                                            a crash in between errs to the private side
    twice with data that can be read        the second time the ledger has grown again, or the call is refused, or
                                            the answer is the first one, bit by bit
    after save and load, unread             refused, or the answer is the first one, bit by bit

`test_every_method_is_in_the_table` keeps the table complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import CountedSum, PerturbedSum
from graphveil.errors import BudgetError, InputError
from graphveil.federation.estimator import VFGNN
from graphveil.graphs import make_graph, random_split
from graphveil.methods import METHODS, load_method
from graphveil.methods.base.method import RELEASE
from graphveil.methods.base.people.released import topology_of
from graphveil.methods.curator.entries import CURATOR_METHODS
from graphveil.methods.registry import build_method, tagged
from graphveil.privacy import SecureRandomness
from tests.methods import links_made, made

QUICK: dict[str, Any] = {"epochs": 2, "hidden": 4, "passes": 1, "batch": 1000, "rounds": 2}
LISTS = {"epsilon_x": 1.0, "epsilon_a": 4.0}


class Read(Exception):
    """What is protected was reached for."""


class Unread:
    """A graph some parts of which refuse to be read; of labels anybody may ask for their shape, which is public."""

    def __init__(self, graph: Any, secret: tuple[str, ...]) -> None:
        self.__dict__.update(graph=graph, secret=secret)

    def get(self, name: str) -> Any:
        return self.graph.get(name)

    def __getitem__(self, name: str) -> Any:
        return self.graph[name]

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__dict__["graph"], name)
        if name == "y" and name in self.__dict__["secret"]:
            return value.as_subclass(UnreadLabels)
        if name in self.__dict__["secret"]:
            raise Read(name)
        return value


class UnreadLabels(Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in (Tensor.dim, Tensor.ndim.__get__, Tensor.shape.__get__):
            raise Read("y")
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


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
        secret: the parts by which a reader gives itself away.
        ask: the call on a method, a graph and a source of noise; gives a tensor, or what has to be fitted on.
        fitted: whether it is asked of a fitted method.
    """

    method: str
    secret: tuple[str, ...]
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
PEOPLE, EVERYTHING = ("x", "y"), ("x", "y", "edge_index")
NODE = {"unit": "node", "degree_bound": 5}
CALLS: dict[str, Call] = {
    "lpgnn collects": Call("lpgnn", PEOPLE, collect),
    "lpgnn fits": Call("lpgnn", PEOPLE, fit),
    "lpgnn asks new ids": Call("lpgnn", PEOPLE, predict, fitted=True),
    "lpgnn asks declared others": Call("lpgnn", PEOPLE, declared, fitted=True),
    "upgnet collects": Call("upgnet", PEOPLE, collect),
    "label-propagation collects": Call("label-propagation", ("y",), collect),
    "label-pool collects": Call("label-pool", ("y",), collect),
    "answer-pool collects": Call("answer-pool", PEOPLE, collect, {"question": "0>=0.5"}),
    "solitude collects": Call("solitude", EVERYTHING, collect, LISTS),
    "solitude asks new ids": Call("solitude", EVERYTHING, predict, LISTS, fitted=True),
    "solitude asks declared others": Call("solitude", EVERYTHING, declared, LISTS, fitted=True),
    "blink collects": Call("blink", EVERYTHING, collect, LISTS),
    "blink asks new ids": Call("blink", EVERYTHING, predict, LISTS, fitted=True),
    "dprr collects": Call("dprr", EVERYTHING, collect, LISTS),
    "dprr asks new ids": Call("dprr", EVERYTHING, predict, LISTS, fitted=True),
    "link-beliefs collects": Call("link-beliefs", EVERYTHING, collect, LISTS),
    "list-sums collects": Call("list-sums", EVERYTHING, collect, LISTS),
    "links collects": Call("links", EVERYTHING, collect, LISTS),
    "class-sums publishes": Call("class-sums", EVERYTHING, publish),
    **{
        f"{name}, {unit}, {what}": Call(name, EVERYTHING, ask, {**settings, **more}, fitted=what == "queries")
        for name, options in (
            (method.name, method.options) for method in CURATOR_METHODS if "queries" in method.options
        )
        for unit, settings in (("edge", {}), ("node", NODE))
        if (unit == "edge" and options["unit"].default != "node") or (unit == "node" and "degree_bound" in options)
        for what, ask, more in (("publishes", publish, {}), ("queries", predict, {"queries": 1}))
    },
    **{f"{method.name} fits": Call(method.name, EVERYTHING, fit) for method in CURATOR_METHODS},
    **{f"{name} releases": Call(name, PEOPLE, release, RELEASES.get(name, {})) for name in tagged(RELEASE)},
}
EVERY = pytest.mark.parametrize("name", CALLS)
#: Of these a training takes seconds.
LONG = {"class-counts releases", "links collects", "list-sums collects"}


def trained(names: Iterable[str]) -> Any:
    """The names as parameters of a test that trains."""
    return pytest.mark.parametrize(
        "name", [pytest.param(method, marks=[pytest.mark.slow] * (method in LONG)) for method in names]
    )


def build(call: Call) -> Any:
    """An unfitted method; a fitted one where that is what is asked."""
    quick = {key: value for key, value in QUICK.items() if key in METHODS[call.method].options}
    method = build_method(call.method, {**quick, **call.settings}, 3)
    if call.fitted:
        method.fit(people(), split=random_split(people(), 0), randomness=SecureRandomness())
    return method


def newcomers(call: Call) -> Any:
    """Whom a call is about: other people than those of the run, or those of the run."""
    return people(2, ids=call.ask is not declared) if call.fitted else people()


def unread(call: Call, graph: Any) -> tuple[Any, Any]:
    return Unread(graph, call.secret), SecureRandomness()


@EVERY
def test_it_is_paid_before_it_is_read_and_stays_paid(name: str) -> None:
    call = CALLS[name]
    method = build(call)
    before = method.ledger
    with pytest.raises(Read):
        call.ask(method, *unread(call, newcomers(call)))
    assert len(method.ledger.spends) > len(before.spends)
    assert method.ledger.spends[: len(before.spends)] == before.spends


@pytest.mark.parametrize("name", ["gap, edge, publishes", "gap, edge, queries", "progap fits", "class-sums publishes"])
def test_sums_that_left_stay_paid_whatever_happens_to_the_rest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt right after noisy sums were made: who asks again is asked to pay again."""
    sums: Any = CountedSum if name == "class-sums publishes" else PerturbedSum
    call, real = CALLS[name], sums.perturb
    method = build(call)
    before = len(method.ledger.spends)

    def interrupted(*rest: Any, **named: Any) -> Any:
        real(*rest, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(sums, "perturb", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call.ask(method, newcomers(call), SecureRandomness())
    assert len(method.ledger.spends) == before + 1


@EVERY
def test_the_second_time_is_paid_refused_or_the_first_answer(name: str) -> None:
    call = CALLS[name]
    method, graph = build(call), newcomers(call)
    first = call.ask(method, graph, SecureRandomness())
    paid = method.ledger
    if "edge, queries" in name:  # the same two people may be linked in both graphs
        assert method.epsilon_relationship == pytest.approx(method.guarantee.epsilon)
    try:
        second = call.ask(method, *unread(call, graph))
    except (BudgetError, InputError):
        assert method.ledger == paid
    except Read:
        assert len(method.ledger.spends) > len(paid.spends)
    else:
        assert torch.equal(first, second) and method.ledger == paid


@trained(CALLS)
def test_after_save_and_load_it_is_refused_or_the_first_answer(name: str, tmp_path: Path) -> None:
    call = CALLS[name]
    method, graph = build(call), newcomers(call)
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


@trained(name for name, call in CALLS.items() if call.ask in (collect, publish, release))
def test_another_collection_is_not_fitted_for_the_price_of_one(name: str) -> None:
    """A second publication under the same settings is noise drawn anew, whoever drew it."""
    call = CALLS[name]
    mine, other = build(call), build(call)
    complete(mine, call.ask(mine, people(), SecureRandomness()))
    paid, foreign = mine.ledger, call.ask(other, people(), SecureRandomness())
    with pytest.raises(BudgetError):
        complete(mine, foreign)
    assert mine.ledger == paid


def test_a_federation_that_was_stopped_does_not_publish_again() -> None:
    federation = VFGNN(epsilon=1.0, epochs=1)
    with pytest.raises(Read):
        federation.fit(people(), randomness=Undrawn())
    with pytest.raises(BudgetError, match="this federation has already run"):
        federation.fit(people(), randomness=SecureRandomness())


def test_every_method_is_in_the_table() -> None:
    """Baselines protect nothing, and pay nothing."""
    assert {call.method for call in CALLS.values()} == {name for name, info in METHODS.items() if info.trust != "none"}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["gap", "solitude"])
def test_edges_of_the_other_kind_are_not_read_at_the_price_of_these(name: str, directed: bool) -> None:
    """A directed edge is one entry, or one list's. Behind its noise a friendship, which is two, costs more."""
    budgets = {"gap": {"epsilon": 4.0, "queries": 1}, "solitude": LISTS | {"epsilon_y": 2.0}}
    start = links_made.graph(directed=directed)
    settings = {key: value for key, value in QUICK.items() if key in METHODS[name].options}
    method = build_method(name, {**budgets[name], **settings}, 3)
    method.fit(start, split=random_split(start, 0), randomness=SecureRandomness())
    ledger, other = method.ledger, links_made.graph(directed=not directed, seed=2)
    with pytest.raises(InputError, match=f"edges are {'un' if directed else ''}directed; allowed: "):
        method.predict_proba(other, randomness=SecureRandomness())
    assert method.ledger == ledger
