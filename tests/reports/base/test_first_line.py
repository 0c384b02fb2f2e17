"""What a reader will take for a person is a person: where less is protected, the first line of everything says so.

Every method, mechanism, release and mode of a federation is asked for its guarantee; nothing is trained.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import torch

from graphveil.cli.base import screens
from graphveil.federation.core.guarantees import guarantee_of
from graphveil.federation.core.setting import MODES, Member, Setting
from graphveil.graphs import social_graph
from graphveil.mechanisms import PairDomain, catalogue
from graphveil.mechanisms.edges.noisy_counts import NoisyCounts
from graphveil.mechanisms.permanent import permanent_guarantee
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.methods.registry import METHODS, build_method, plan
from graphveil.methods.release.privacy import EDGE_METHODS, ReleasePrivacy
from graphveil.methods.release.scores import central_mean
from graphveil.privacy import Guarantee, RepeatAndSelect
from graphveil.privacy.statement.registry import explain_code
from graphveil.reports.base import trust
from graphveil.reports.base.card import pages
from graphveil.reports.runs.card import run_card
from graphveil.reports.runs.page import page_html
from tests.reports import made
from tests.reports.pages import read

GRAPH = social_graph(200)
INF = math.inf
CURATOR: list[dict[str, Any]] = [
    {},
    {"unit": "directed-edge"},
    {"unit": "k-edges", "relationships": 5},
    {"unit": "node", "degree_bound": 20},
    {"unit": "node", "degree_bound": 20, "rule": "declared"},
    {"epsilon": INF},
]
LOCAL: list[dict[str, Any]] = [{}, {"epsilon_x": INF}, {"epsilon_x": None}, {"epsilon_x": INF, "epsilon_y": INF}]
LINKS: list[dict[str, Any]] = [*LOCAL, {"mode": "both"}, {"epsilon_a": INF}, {"epsilon_y": 1.0, "epsilon_x": 1.0}]


def of_methods() -> Iterator[tuple[str, Guarantee]]:
    settings = {"gap": CURATOR, "progap": CURATOR, "class-sums": CURATOR[:3], "lpgnn": LOCAL, "solitude": LINKS}
    settings |= {name: [needed] for name, needed in made.NEEDED.items()}
    for name, info in METHODS.items():
        for chosen in settings.get(name, [{}]):
            method = build_method(name, chosen, len(GRAPH.schema.classes))
            if isinstance(method.privacy, CuratorPrivacy):  # its noise would take a while to find
                guarantee = method.privacy.guarantee(GRAPH.schema, edges="edges" in info.reads)
            else:
                guarantee = plan(name, GRAPH, chosen).guarantee
            yield f"{name} {chosen}", guarantee
    tuned = CuratorPrivacy(epsilon=2.0, delta=1e-5, queries=1, tuning=RepeatAndSelect(mean=5.0))
    yield "a tuned curator", tuned.guarantee(GRAPH.schema)


def of_mechanisms() -> Iterator[tuple[str, Guarantee]]:
    given = {
        "groups": torch.arange(10) % 3,
        "dimension": 4,
        "low": 0.0,
        "high": 1.0,
        "classes": 3,
        "nodes": 10,
        "domain": PairDomain(10),
    }
    for info in catalogue():
        names = set(inspect.signature(info.mechanism).parameters)
        facts: dict[str, Any] = {name: value for name, value in given.items() if name in names}
        facts |= {"delta": 1e-6} if "delta" in names else {}
        for more in [{"mode": mode} for mode in ("lower", "both", "directed")] if "mode" in names else [{}]:
            mechanism = info.mechanism(epsilon=1.0, **facts, **more)
            yield f"{info.name} {more}", mechanism.guarantee
            yield f"{info.name} {more}, permanent", permanent_guarantee(mechanism, 2)
    yield "noisy counts", NoisyCounts(epsilon=1.0).guarantee
    yield "mean of scores", central_mean(4, 100, epsilon=1.0, delta=1e-6).guarantee(None)


def of_releases() -> Iterator[tuple[str, Guarantee]]:
    for x, y, a in itertools.product((1.0, INF), repeat=3):
        for edges in EDGE_METHODS if a == 1.0 else EDGE_METHODS[:1]:
            privacy = ReleasePrivacy(epsilon_x=x, epsilon_y=y, epsilon_a=a, edges=edges)
            domain = PairDomain(10) if a == 1.0 else None
            yield f"release {x, y, a} {edges}", privacy.guarantee(GRAPH.schema, domain)


def of_federations() -> Iterator[tuple[str, Guarantee]]:
    members = (Member("clinic", 50, labels=True), Member("bank", 60))
    for mode, epsilon, labels in itertools.product(MODES, (4.0, INF), (2.0, INF)):
        if mode == "all-shares" and epsilon < INF:  # refused: it has no noise
            continue
        setting = Setting.of(members, 3, mode=mode, epsilon=epsilon, epsilon_y=labels, opened=True, width=4)
        yield f"{mode} {epsilon} {labels}", guarantee_of(setting)
    for degree in (0, 5):
        person = Setting.of(members, 3, mode="guesses", epsilon=4.0, unit="person", degree_bound=degree)
        yield f"one person, {degree} names", guarantee_of(person)


@cache
def promised() -> dict[str, Guarantee]:
    """What every producer promises, parts of it included, once each."""
    guarantees: dict[str, Guarantee] = {}
    for name, whole in itertools.chain(of_methods(), of_mechanisms(), of_releases(), of_federations()):
        parts = (*whole.parts, *(leaf for part in whole.parts for leaf in part.parts))
        guarantees |= {name: whole} | {f"{name}: part {place}": part for place, part in enumerate(parts)}
    distinct: dict[Guarantee, str] = {}
    for name, whole in guarantees.items():
        distinct.setdefault(whole, name)
    return {name: whole for whole, name in distinct.items()}


def less(guarantee: Guarantee) -> bool:
    """Whether less than a person is protected, so that it must be said."""
    return math.isfinite(guarantee.epsilon) and not guarantee.unit.is_person


def first_line(guarantee: Guarantee) -> str:
    return f"This protects {guarantee.unit.text}, not a person: {guarantee.unit.less}."


@pytest.mark.slow  # whole runs
def test_the_sentence_says_first_what_is_less_than_a_person() -> None:
    for name, guarantee in promised().items():
        assert guarantee.sentence().startswith(first_line(guarantee)) == less(guarantee), name
        assert ("not a person" in guarantee.sentence()) == less(guarantee), name


def test_every_code_is_known_and_read_back() -> None:
    for name, guarantee in promised().items():
        fields = guarantee.to_dict()
        for code in (fields["unit_code"], fields["against_code"], *fields["assumes_codes"]):
            assert all(entry.group != "unknown" for entry in explain_code(code)), name
        assert Guarantee.from_dict(fields) == guarantee, name


@pytest.mark.slow  # whole runs
def test_cards_pages_and_screens_say_it_too() -> None:
    """A party of a federation has a card of its own, whose first line is the sentence as well."""
    distinct = {whole.unit: whole for whole in promised().values() if whole.model != "vertical"}
    for guarantee in distinct.values():
        record = made.record(guarantee=guarantee)
        line, weaker = first_line(guarantee), less(guarantee)
        quoted = [row for row in pages(run_card(record, {}))["card.md"].splitlines() if row.startswith(">")]
        assert (f"> {line}" in quoted[0]) == weaker, line
        page = read(page_html(record, {})).text
        assert (line in page.partition("Epsilon")[0]) == weaker, line
        paragraph = dict(screens.promise(guarantee, record.settings))["Guarantee"]
        assert paragraph.startswith(line) == weaker, line


def test_headings_of_comparisons_say_it_too() -> None:
    for name, guarantee in promised().items():
        heading = trust.Promise.of(guarantee).protected
        assert heading.startswith("This protects ") == less(guarantee), name
        assert ("not a person" in heading) == less(guarantee), name


def test_all_kinds_of_units_are_met_and_both_answers() -> None:
    kinds = {part.kind for whole in promised().values() for part in (whole.unit, *whole.unit.parts)}
    assert kinds >= {"features", "label", "relationship", "directed link", "private edge", "undirected edge"}
    assert kinds >= {"edge entry", "node", "node and own list", "node without edges", "embedding row", "guess"}
    assert {less(whole) for whole in promised().values()} == {True, False}
    assert any(whole.unit.is_person and math.isfinite(whole.epsilon) for whole in promised().values())
