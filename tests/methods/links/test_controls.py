"""Controls and rivals of methods that collect neighbour lists: what they see, cost and are equal in."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.methods import LinkBeliefs, ListSums, Solitude
from graphveil.methods.links import controls as link_controls
from graphveil.methods.links.controls import expected_links, link_controls_of, random_edges, rivals_of, settings_of
from graphveil.methods.links.family import LINKS
from graphveil.methods.links.readings import _Server
from graphveil.methods.local.controls import hits
from graphveil.methods.registry import build_method
from graphveil.privacy import SeededRandomness
from tests.methods import links_made, made

SLOW = pytest.mark.slow  # of six networks
SHORT: dict[str, Any] = {"epochs": 2, "hidden": 4, "steps_x": 2}
CONTROLS = {"public-only", "label-propagation", "no-edges", "random-features", "random-graph"}
READINGS = {"link-beliefs", "list-sums"}
#: Of a method that trains a network.
RIVALS = {"base", "lpgnn", "solitude"}


class SealedLists(dict[str, Any]):
    """Reports of neighbour lists; whoever looks is caught."""

    def __getitem__(self, *name: str) -> NoReturn:
        raise AssertionError("neighbour lists were read")

    get = items = values = __getitem__  # type: ignore[assignment]


def solitude(mode: str | None = "lower", **settings: Any) -> Any:
    return Solitude(**{"epsilon_x": 2.0, "epsilon_a": 4.0, "mode": mode, **SHORT, **settings})


def beliefs(mode: str = "lower", **settings: Any) -> Any:
    return LinkBeliefs(**{"epsilon_x": 2.0, "epsilon_a": 4.0, "mode": mode, "rounds": 5, **settings})


def pooled(mode: str) -> Any:
    return beliefs(mode, reading="all")


def fitted(method: Any, graph: Any) -> Any:
    return method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1))


def scored(graph: Any, split: Any) -> Any:
    """The public facts of a graph and the truth of its test nodes, which accuracy is measured on."""
    return links_made.Sealed(graph, split.test)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks beside a method that trains none train for two epochs."""
    monkeypatch.setattr(link_controls, "settings_of", lambda method: replace(settings_of(method), epochs=2))
    monkeypatch.setattr(link_controls, "FEWEST_EPOCHS", 2)


@pytest.mark.parametrize(
    ("build", "mode"),
    [
        (pooled, "lower"),
        *(pytest.param(*case, marks=SLOW) for case in ((solitude, "lower"), (solitude, "directed"), (pooled, "both"))),
    ],
)
def test_every_rival_pays_the_methods_price_and_spends_nothing_of_its_ledger(
    build: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rivals look at the reports that the method was sent, and at nothing else."""
    graph = links_made.graph(directed=mode == "directed")
    split = made.split_of(graph)
    method = fitted(build(mode), graph)
    ledger, answers, built = method.ledger, method.predict_proba(), list[Any]()
    for kind in (Solitude, LinkBeliefs):
        monkeypatch.setattr(kind, "__init__", _noting(kind.__init__, built))
    rivals = rivals_of(method, scored(graph, split), split)
    for name, train in rivals.items():
        hits = train()
        assert hits.shape == (int(split.test.sum()),) and set(np.unique(hits)) <= {0.0, 1.0}, name
    assert method.ledger == ledger and torch.equal(method.predict_proba(), answers)
    ours = [rival for rival in built if rival.released is not None]
    assert len(ours) >= len(rivals)
    for rival in ours:
        assert rival.epsilon_relationship == method.epsilon_relationship
        assert rival.links.mode == method.links.mode
        for unit in ("features", "labels", "links"):
            assert rival.account.ledger.total(unit) == pytest.approx(method.ledger.total(unit)), unit
        assert rival.guarantee.epsilon == pytest.approx(method.guarantee.epsilon)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (solitude(), RIVALS - {"solitude"}),
        (solitude(denoiser="none"), RIVALS - {"lpgnn"}),
        (solitude(denoiser="none", steps_x=0), RIVALS - {"lpgnn", "base"}),
        (beliefs(reading="all"), READINGS),
        (beliefs(), set()),
        # What comes with noisy degrees is read by the method that asked for them alone.
        (solitude(denoiser="blink-hybrid"), set()),
        (solitude("both", denoiser="degree-preserving"), set()),
    ],
    ids=["solitude", "lpgnn", "no hops", "links", "link-beliefs", "blink", "dprr"],
)
def test_a_method_is_no_rival_of_its_own(method: Any, expected: set[str]) -> None:
    graph = links_made.graph()
    assert set(rivals_of(fitted(method, graph), graph, made.split_of(graph))) == expected


@pytest.mark.parametrize("x", [math.inf, None, 2.0])
def test_a_run_says_how_to_see_the_published_methods(x: float | None) -> None:
    """The methods that its command names take the settings that it names, and all cost what the run did."""
    graph = links_made.graph()
    method = fitted(ListSums(epsilon_x=x, epsilon_a=4.0, mode="both"), graph)
    *_, note = LINKS.notes(method, graph, {}, controlled=True)
    _, _, command = note.partition("graphveil compare ")
    names, data, *words = command.split()
    assert (names, data) == ("list-sums,links,solitude,blink", "DATA")
    features = "none" if x is None else f"{x:g}"
    assert " ".join(words) == f"--epsilon-x {features} --epsilon-y inf --epsilon-a 4 --set mode=both"
    settings = {"epsilon_x": x, "epsilon_y": math.inf, "epsilon_a": 4.0, "mode": "both"}
    for name in names.split(","):
        built = build_method(name, settings, 3, seed=0, device="cpu")
        assert built.links.relationship_epsilon == method.epsilon_relationship
    assert note not in LINKS.notes(method, graph, {}, controlled=False)


def _noting(start: Any, built: list[Any]) -> Any:
    def begin(self: Any, **options: Any) -> None:
        start(self, **options)
        built.append(self)

    return begin


@pytest.mark.parametrize(
    "method",
    [
        solitude(epsilon_y=1.0),
        solitude(denoiser="blink-soft", steps_x=0),
        pytest.param(beliefs("both", epsilon_y=2.0), marks=SLOW),
    ],
    ids=["private labels", "blink-soft", "beliefs with private labels"],
)
def test_controls_look_at_reports_alone(method: Any) -> None:
    """The accuracy of each is the same when features, links and all labels but those of test nodes are sealed."""
    graph = links_made.graph()
    split = made.split_of(graph)
    fitted(method, graph)
    opened, sealed = (link_controls_of(method, target, split) for target in (graph, scored(graph, split)))
    private = {"majority"} if math.isfinite(method.privacy.epsilon_y) else set()
    assert set(opened) == set(sealed) == CONTROLS | private
    for name in opened:
        assert np.array_equal(opened[name](), sealed[name]()), name


def test_no_edges_and_public_only_never_look_at_the_lists() -> None:
    graph = links_made.graph()
    split = made.split_of(graph)
    method = fitted(beliefs(), graph)
    opened = link_controls_of(method, graph, split)
    expected = {name: opened[name]() for name in ("no-edges", "public-only")}
    method.released = replace(method.released, lists=SealedLists())
    sealed = link_controls_of(method, graph, split)
    for name, right in expected.items():
        assert np.array_equal(sealed[name](), right), name
    for name in CONTROLS - set(expected):
        with pytest.raises(AssertionError, match="neighbour lists were read"):
            sealed[name]()


@pytest.mark.parametrize(
    ("mode", "denoiser"), [("lower", "none"), ("both", "degree-preserving"), ("directed", "blink-hybrid")]
)
def test_the_random_graph_is_as_dense_and_collected_alike(
    mode: str, denoiser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At epsilon 8 next to nothing is false: as many entries arrive, of other pairs, with noise of the same kind."""
    graph = links_made.graph(directed=mode == "directed")
    method = fitted(solitude(mode, denoiser=denoiser, epsilon_a=8.0), graph)
    seen: list[Any] = []

    def noted(_: Any, other: Any, same: Any) -> Tensor:
        seen.append(other)
        return method.predict_proba()

    monkeypatch.setattr(link_controls, "_refit_scores", noted)
    link_controls_of(method, graph, made.split_of(graph))["random-graph"]()
    (other,) = seen
    assert other.people is method.released.people and other.links == method.links
    true, strange = (_entries(released) for released in (method.released, other))
    # Noisy degrees of 60 people, by which lists are thinned, move the number by a tenth or so; fixed seeds.
    assert len(strange) == pytest.approx(len(true), rel=0.4 if denoiser == "degree-preserving" else 0.15)
    assert len(true & strange) < 0.4 * len(true)
    wrong = random_edges(made.NODES, 3 * expected_links(method.released), mode == "directed", 0)
    assert wrong.shape[1] > 1.5 * graph.edge_index.shape[1]


def _entries(released: Any) -> set[tuple[int, int]]:
    lists = released.lists["lists"]
    edges = getattr(lists, "edges", lists).to_edge_index()
    return set(map(tuple, edges.T.tolist()))


def test_public_links_have_no_rivals_and_no_strangers() -> None:
    graph = links_made.graph()
    split = made.split_of(graph)
    method = fitted(solitude(None, epsilon_a=math.inf), graph)
    assert set(link_controls_of(method, graph, split)) == CONTROLS - {"random-graph"}
    assert rivals_of(method, graph, split) == {}


def test_public_only_is_an_even_guess_or_the_most_frequent_public_label() -> None:
    graph = links_made.graph()
    split = made.split_of(graph)
    hidden = link_controls_of(fitted(beliefs(epsilon_y=1.0), graph), graph, split)["public-only"]()
    assert hidden.tolist() == [1 / 3] * int(split.test.sum())
    guesses = link_controls_of(fitted(beliefs(), graph), graph, split)["public-only"]()
    most = graph.y[(split.train | split.val) & (graph.y >= 0)].mode().values
    assert guesses.tolist() == (graph.y[split.test] == most).tolist()


@pytest.mark.parametrize("kind", [Solitude, LinkBeliefs])
def test_a_method_without_reports_has_no_controls_and_no_rivals(kind: Any) -> None:
    graph = links_made.graph()
    method = kind(epsilon_x=2.0, epsilon_a=4.0, mode="lower")
    assert link_controls_of(method, graph, made.split_of(graph)) == {}
    assert rivals_of(method, graph, made.split_of(graph)) == {}


@pytest.mark.parametrize(("blocks", "again"), [("full", []), ("planted", ["fields"])])
def test_parts_that_were_read_once_are_not_read_again(
    blocks: str, again: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rivals on the same reports pool what the method has read, and say what they would say by themselves."""
    graph = links_made.graph()
    split, usual = made.split_of(graph), {"epsilon_x": 2.0, "epsilon_a": 4.0, "mode": "lower"}
    method = fitted(LinkBeliefs(**usual, reading="all", blocks=blocks), graph)
    alone = {
        name: LinkBeliefs(**usual, reading=reading).fit_reports(method.released).predict_proba()
        for name, reading in (("link-beliefs", "beliefs"), ("list-sums", "sums"))
    }
    read = _reads(monkeypatch)
    rivals = rivals_of(method, graph, split)
    for name, control in alone.items():
        assert np.array_equal(rivals[name](), hits(control, graph, split))
    assert read == again


def _reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parts that are read from now on."""
    read: list[str] = []
    opinions = _Server.opinions

    def noted(self: Any, part: str) -> Any:
        read.append(part)
        return opinions(self, part)

    monkeypatch.setattr(_Server, "opinions", noted)
    return read


#: Control -> the parts that it reads itself; the method has read the others, on the same reports.
READ_AGAIN = {
    "no-edges": [],
    "random-features": ["regression", "network", "fields", "sums"],
    "random-graph": ["fields", "sums", "counts"],
}


def test_controls_read_again_only_what_is_not_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a control shares with the method changes no bit of what it says."""
    graph = links_made.graph()
    method = fitted(LinkBeliefs(epsilon_x=2.0, epsilon_a=4.0, mode="lower", reading="all", rounds=2), graph)
    read = _reads(monkeypatch)
    controls = link_controls_of(method, graph, made.split_of(graph))
    shared = dict[str, Any]()
    for name, parts in READ_AGAIN.items():
        read.clear()
        shared[name] = controls[name]()
        assert read == parts, name
    monkeypatch.setattr(link_controls, "_parts_read", lambda method, names: {})
    for name, right in shared.items():
        assert np.array_equal(controls[name](), right), name
