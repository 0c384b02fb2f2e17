"""What cores share: what fitting leaves, the devices' half on public and on private links, and what is stored."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest
import torch

from graphveil.errors import BudgetError, InputError
from graphveil.graphs import Graph, GraphSchema
from graphveil.methods.base.account import Account
from graphveil.methods.base.core import FittedCore, Stored, signature_of, stored_probabilities
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.base.released import topology_of
from graphveil.methods.links.lists_core import ListsCore
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.methods.local.reports_core import ReportsCore
from graphveil.privacy import Ledger, SeededRandomness
from tests.methods import links_made, made

FACTS = GraphSchema("made", 8, 0.0, 1.0, ("a", "b"))


@dataclass(frozen=True)
class Left:
    schema: GraphSchema = FACTS


class Plain(FittedCore[Left]):
    name, fits = "plain method", "fit_reports"

    def leave(self) -> None:
        self._fitted = Left()


class Alone(Plain):
    name, fits = "lonely method", ""


def test_before_fitting_there_is_nothing_to_ask() -> None:
    for core, said in ((Plain(), "call fit or fit_reports first"), (Alone(), "call fit first")):
        assert not core.fitted
        for ask in (lambda core=core: core.result, lambda core=core: core.schema):
            with pytest.raises(InputError, match=f"this {core.name} has not been fitted; {said}"):
                ask()


def test_after_fitting_the_public_facts_are_those_of_the_collection() -> None:
    core, other = Plain(), Plain()
    core.leave()
    assert core.fitted and core.schema is FACTS and core.result == Left()
    assert not other.fitted, "what one core has learnt is not another's"


class Log(list[str]):
    """What a core did, in order."""

    def heard(self, word: str) -> Callable[..., Any]:
        return lambda *rest, **options: self.append(word)


class People(ReportsCore[Left]):
    """Features and labels on a public topology; trains nothing and says what it was handed."""

    written, fits = "people", "fit_reports"

    def __init__(self, refuse: bool = False) -> None:
        self.privacy = LocalPrivacy(1.0, 2.0)
        self.account = Account(Ledger.open({"features": (1.0, 0.0), "labels": (2.0, 0.0)}))
        self.refuse, self.trained = refuse, Log()

    def require_served(self, graph: Graph) -> None:
        if self.refuse:
            raise InputError("no such people")

    def fit_reports(self, released: Any, topology: Any, **how: Any) -> Any:
        self.trained.append(f"{released.digest} on {topology.fingerprint}")
        return self


class Lists(ListsCore[Left]):
    """The same on private lists."""

    written, fits = "lists", "fit_reports"

    def __init__(self, refuse: bool = False) -> None:
        self.privacy, self.links = LocalPrivacy(1.0, 2.0), LinkPrivacy(3.0)
        self.account = Account(
            Ledger.open({"features": (1.0, 0.0), "labels": (2.0, 0.0), "edges": (3.0, 0.0), "links": (3.0, 0.0)})
        )
        self.refuse, self.trained = refuse, Log()

    def require_served(self, graph: Graph) -> None:
        if self.refuse:
            raise InputError("no such people")

    def fit_reports(self, released: Any, *, progress: Any = None) -> Any:
        self.trained.append(released.digest)
        return self


@dataclass(frozen=True)
class Half:
    """A core and the graph that it asks."""

    build: Callable[..., Any]
    graph: Callable[..., Any]
    sealed: Callable[[Any], Any]


HALVES = {
    "reports": Half(People, lambda: made.graph(20), made.sealed),
    "lists": Half(Lists, links_made.graph, lambda graph: cast(Graph, links_made.Sealed(graph))),
}


@pytest.fixture(params=HALVES)
def half(request: pytest.FixtureRequest) -> Half:
    return HALVES[request.param]


def ask(core: Any, graph: Any, noise: int = 1) -> Any:
    return core.randomize(graph, split=made.split_of(made.graph(20)), randomness=SeededRandomness(noise))


def test_asking_is_paid_once_and_remembered(half: Half) -> None:
    core, graph = half.build(), half.graph()
    reports = ask(core, graph)
    assert core.account.collections == {reports.digest} and core.account.ledger.spends
    paid = core.account.ledger
    with pytest.raises(BudgetError):
        ask(core, graph, noise=2)
    assert core.account.ledger == paid and core.account.collections == {reports.digest}


def test_who_cannot_be_served_is_neither_asked_nor_charged(half: Half) -> None:
    core = half.build(refuse=True)
    with pytest.raises(InputError, match="no such people"):
        ask(core, half.sealed(half.graph()))
    assert not core.account.ledger.spends and not core.account.collections


def test_training_is_on_what_was_collected(half: Half) -> None:
    core = half.build()
    collected = core.collect(half.graph(), split=made.split_of(made.graph(20)), randomness=SeededRandomness(1))
    core.train(collected)
    core.train(collected)
    first, second = core.trained
    assert first == second and first.startswith(next(iter(core.account.collections)))


def test_own_reports_are_recognised_for_nothing_and_others_are_not(half: Half) -> None:
    core, graph = half.build(), half.graph()
    own, other = ask(core, graph), ask(half.build(), graph, noise=2)
    beside = () if half is HALVES["lists"] else (topology_of(graph),)
    spends = core.account.ledger.spends
    core.recognised(own, *beside)
    assert core.account.ledger.spends == spends
    with pytest.raises(BudgetError, match="not the collection that was paid for"):
        core.recognised(other, *beside)
    fresh = half.build()
    fresh.recognised(other, *beside)
    assert len(fresh.account.ledger.spends) == len(spends)


@dataclass(frozen=True)
class Options:
    epochs: int = 5
    hidden: int = 4
    seed: int = 0


class Settled:
    """A core whose settings are fields of a type; one is left out, one follows from others."""

    settings_type = Options
    derived, left_out = ("hidden",), ("seed",)

    def __init__(self, *, epsilon: float, **settings: Any) -> None: ...


def test_a_signature_spells_every_setting_out() -> None:
    found = signature_of(Settled).parameters
    assert list(found) == ["epsilon", "epochs", "hidden"]
    assert found["epsilon"].default is inspect.Parameter.empty
    assert (found["epochs"].default, found["hidden"].default) == (5, None)
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in found.values())


def stored(probabilities: Any) -> Stored:
    return Stored({}, {"probabilities": probabilities})


@pytest.mark.parametrize(
    ("probabilities", "said"),
    [
        (torch.zeros(3, 4), r"\(3, 4\); allowed: \(nodes, 2\)"),
        (torch.zeros(2), r"\(2,\)"),
        (torch.zeros(3, 2, 1), r"\(3, 2, 1\)"),
        (torch.full((3, 2), torch.nan), "probabilities"),
        (torch.full((3, 2), torch.inf), "probabilities"),
    ],
)
def test_probabilities_of_another_shape_would_answer_for_other_people(probabilities: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        stored_probabilities(stored(probabilities), 2)
