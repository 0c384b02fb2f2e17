"""The picture of trust: epsilons are the guarantee's, nobody is drawn to see what is protected, all names exist."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from graphveil.attacks.catalogue import ATTACKS, PUBLISHED
from graphveil.attacks.federation.catalogue import FEDERATION_ATTACKS
from graphveil.audit import targets
from graphveil.federation.core.setting import MODES, Member, Setting
from graphveil.methods.registry import METHODS
from graphveil.privacy.statement.registry import CODES
from graphveil.privacy.statement.unit import other_unit
from graphveil.reports.base import trust
from graphveil.reports.base.drawing import picture_json, picture_svg
from graphveil.reports.base.parties import Arrow, Parties, Party, State, parties_of
from graphveil.reports.federation.parties import federation_parties
from tests.reports import made
from tests.reports.base.test_trust import CASES, promised

ROOT = Path(__file__).parents[3]
#: Every method by its defaults, and those settings that promise something else.
RUNS = [*((name, made.NEEDED.get(name, {})) for name in METHODS), *((case[0], case[1]) for case in CASES)]
MEMBERS = Member("clinic", 40, labels=True), Member("bank", 60)
#: Who looks, as attacks on a federation name them.
SPIES = {"server": "server", "label holder": "labels", "holder without labels": "holders"}


def drawn(method: str, settings: dict[str, Any], **options: Any) -> Parties:
    return parties_of(promised(method, settings), method, METHODS[method].settle(settings), **options)


def prices(picture: Parties) -> set[tuple[str, float, float]]:
    return {(a.unit, a.epsilon, a.delta) for a in picture.arrows if a.epsilon is not None}


def require_names(picture: Parties) -> None:
    """Every code, command and file that a picture names exists."""
    items: tuple[Party | Arrow, ...] = (*picture.parties, *picture.arrows)
    for item in items:
        facts = picture.facts(item)
        assert facts["sees"] and facts["learns"] and facts["shown_by"], item
        assert {fact["code"] for fact in facts["assumes"]} <= {*CODES}
        for name in facts["shown_by"]:
            words = name.split()
            if words[:2] == ["graphveil", "audit"]:
                assert words[2] in targets()
            elif words[:2] == ["graphveil", "attack"]:
                assert words[4] in (FEDERATION_ATTACKS if picture.guarantee.model == "vertical" else ATTACKS)
                assert (words[2] == "RELEASE") == (words[4] == PUBLISHED)
            else:
                assert (ROOT / name).is_file(), name


@pytest.mark.parametrize(("method", "settings"), RUNS, ids=str)
def test_epsilons_are_the_guarantees_and_nobody_sees_what_is_protected(method: str, settings: dict[str, Any]) -> None:
    picture = drawn(method, settings)
    finite = {(p.unit.text, p.epsilon, p.delta) for p in trust.parts_of(picture.guarantee) if p.epsilon < math.inf}
    assert prices(picture) == finite
    states = trust.protection(picture.guarantee, METHODS[method].reads, METHODS[method].settle(settings))
    for aspect in trust.ASPECTS[:3]:
        untrusted = [a for a in picture.arrows if not picture.party_named(a.target).trusted and a.state != State.PUBLIC]
        seen = {arrow.state for arrow in untrusted if aspect in arrow.kind}
        expected = {"yes": {State.NOISY}, "partly": {State.NOISY}, "no": {State.PLAIN}, "unused": set()}[states[aspect]]
        assert seen == expected, aspect
    require_names(picture)


@pytest.mark.parametrize("options", [{"epsilon": 8.0}, {"epsilon_y": 4.0}, {"epsilon": 8.0, "unit": "person"}], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_a_federation_is_drawn_by_the_messages_that_it_sends(mode: str, options: dict[str, Any]) -> None:
    if (mode != "guesses" and "unit" in options) or (mode == "all-shares" and "epsilon" in options):
        return
    setting = Setting.of(MEMBERS, 3, mode=mode, opened=True, epochs=4, **options)
    picture = federation_parties(setting)
    assert {kind for arrow in picture.arrows for kind in arrow.messages} == {*setting.mode.sent}
    rows = picture.guarantee.unit.text, setting.privacy.epsilon, picture.guarantee.delta
    labels = "one user's label", setting.privacy.epsilon_y, 0.0
    assert prices(picture) == {price for price in (rows, labels) if price[1] < math.inf}
    assert all(arrow.state == State.PLAIN for arrow in picture.arrows if "hidden-share" in arrow.messages)
    for arrow in picture.arrows:
        spies = [
            SPIES[FEDERATION_ATTACKS[n.split()[4]].spy] for n in arrow.shown_by if n.startswith("graphveil attack")
        ]
        assert {*spies} <= {arrow.target}
        if arrow.target != "labels" and "label" in arrow.kind and "epsilon_y" in options and arrow.source == "labels":
            assert arrow.state != State.PLAIN or "own features" in arrow.kind
    require_names(picture)


def test_a_void_run_and_another_guarantee_are_other_pictures() -> None:
    picture = drawn("lpgnn", {})
    part = picture.guarantee.parts[0]
    other = replace(picture.guarantee, parts=(replace(part, epsilon=3.0), *picture.guarantee.parts[1:]))
    void = replace(picture.guarantee, void="its noise was reproducible (seed 3)")
    for guarantee, words in ((other, "epsilon 3 for"), (void, "VOID, nobody is protected")):
        changed = parties_of(guarantee, "lpgnn", {})
        svg = picture_svg(changed)
        assert words in svg and words not in picture_svg(picture)
        assert changed.to_dict() != picture.to_dict()
    assert "at most" not in str(changed.to_dict()) and "anything: VOID" in changed.learns(
        changed.party_named("collector")
    )
    assert picture_json(changed)["void"] == void.void


def test_what_is_open_though_declared_private_and_what_comes_from_outside_is_drawn() -> None:
    [plain] = [
        arrow for arrow in drawn("class-sums", {}, private=("labels", "edges")).arrows if "as they are" in arrow.price
    ][1:]
    assert plain.learns.endswith("although the data declare them private (labels)")
    picture = parties_of(promised("class-sums", {}), "class-sums", {"start": "public"})
    assert [party.key for party in picture.parties] == ["public", "people", "curator", "readers"]
    require_names(picture)
    own = [arrow for arrow in drawn("node-sums", {}).arrows if arrow.target == "people"]
    # Whose answers nobody else sees are not attacked by them.
    assert {n.split()[-1] for n in own[0].shown_by if "graphveil attack" in n} == {"membership", "link-stealing"}
    assert [arrow.learns.startswith("about anybody else: of 100 guesses") for arrow in own] == [True]
    release = drawn("heterorr", {}, release=True)
    require_names(release)
    assert any("attack RELEASE" in name for arrow in release.arrows for name in arrow.shown_by)


def test_a_method_and_a_unit_that_nobody_knows_are_drawn_from_their_texts() -> None:
    guarantee = replace(promised("label-pool", {}), unit=other_unit("one thing of somebody's"), parts=())
    picture = parties_of(guarantee, "theirs", {})
    assert prices(picture) == {("one thing of somebody's", guarantee.epsilon, 0.0)}
    assert all("audit" not in name for arrow in picture.arrows for name in arrow.shown_by)


@pytest.mark.parametrize("live", [False, True])
def test_the_drawing_fits_and_is_reached_by_keys_where_it_is_live(live: bool) -> None:
    for picture in (drawn("solitude", {}), federation_parties(Setting.of(MEMBERS, 3, mode="shared-linear"))):
        root = ElementTree.fromstring(picture_svg(picture, live=live))
        groups = [g for g in root.iter("g") if "data-party" in g.attrib or "data-arrow" in g.attrib]
        assert len(groups) == len(picture.parties) + len(picture.arrows)
        assert {g.get("tabindex") for g in groups} == ({"0"} if live else {None})
        assert (root.get("role") == "group") == live and root.findtext("title") and root.findtext("desc")
        # Where inline styles are forbidden, the picture keeps its colours.
        assert not any("style" in element.attrib for element in root.iter())
        assert max(len(text.text or "") for text in root.iter("text")) <= 45
        bottoms = [float(r.get("y", 0)) + float(r.get("height", 0)) for r in root.iter("rect")]
        assert max(bottoms) <= float(root.get("viewBox", "").split()[3])
