"""What all parties agree on before a run: every option in its range, what follows from it, and what makes no run."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.audit.federation.views import kinds_to_server
from graphveil.errors import InputError
from graphveil.federation.core.mode import MODE_OF
from graphveil.federation.core.setting import MODES, OPTIONS, Member, Setting
from graphveil.federation.modes import programs

BANK, SHOP = Member("bank", 300, labels=True), Member("shop", 500)
PERSON: dict[str, Any] = {"unit": "person", "mode": "guesses"}
SHARES: dict[str, Any] = {"mode": "all-shares", "epsilon": math.inf}


def setting(*members: Member, classes: int = 2, **options: Any) -> Setting:
    return Setting.of(members or (BANK, SHOP), classes, **{"epsilon": 8.0, "epochs": 10, **options})


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ((BANK,), "1 holder; allowed: 2 to 5"),
        ((BANK, *(Member(name, 3) for name in "abcde")), "6 holders; allowed: 2 to 5"),
        ((BANK, Member("bank", 3)), "names bank, bank, server; allowed: a different name for every party"),
        ((BANK, Member("server", 3)), "names bank, server, server"),
        ((SHOP, Member("mill", 3)), "none or several holders have the labels; allowed: exactly one label holder"),
        ((BANK, Member("shop", 3, labels=True)), "none or several holders have the labels"),
    ],
)
def test_members_that_make_no_federation_are_refused(members: tuple[Member, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        setting(*members)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "papers"}, f"mode is 'papers'; allowed: {', '.join(MODES)}"),
        ({"aggregator": "gat2"}, "aggregator is 'gat2'; allowed: "),
        ({"width": 0}, "width is 0; allowed: a whole number in 1..1000000"),
        ({"republish": 10**30}, "republish is 1000"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"clip": 0.0}, "clip"),
        ({"epsilon_y": -1.0}, "epsilon"),
        ({"epsilonx": 1.0}, "setting 'epsilonx' is not known; allowed: mode, "),
        ({"classes": 0}, "classes is 0; allowed: a whole number in 1..1000000"),
        # With a person as the unit, or with shares of everything, there is less to choose from.
        ({"unit": "person", "mode": "individual"}, "unit person in mode individual"),
        ({"unit": "family"}, "unit is 'family'"),
        ({"degree_bound": 6, "mode": "guesses"}, "with unit person"),
        ({**PERSON, "epsilon": math.inf}, "protects nobody"),
        ({**PERSON, "epsilon": 0.0}, "epsilon"),
        ({**PERSON, "delta": 1e-300}, "delta"),
        ({**PERSON, "delta": 1.0}, "delta"),
        ({**PERSON, "degree_bound": -1}, "degree_bound is -1"),
        ({**PERSON, "degree_bound": 10**6}, "degree_bound"),
        (
            {"mode": "all-shares"},
            "epsilon 8 in mode all-shares, which publishes nothing with noise; allowed: inf; take",
        ),
        ({**SHARES, "layers": 2}, "layers is 2 in mode all-shares; allowed: 1"),
        ({**SHARES, "aggregator": "gcn"}, "aggregator is gcn in mode all-shares; allowed: sage"),
        ({**SHARES, "combine": "concat"}, "combine is concat in mode all-shares; allowed: mean"),
        ({**SHARES, "republish": 2}, "republish is 2 in mode all-shares; allowed: 1"),
        ({**SHARES, "bits": 17}, "bits is 17 in mode all-shares; allowed: 18"),
        ({**SHARES, "shared_rate": 0.1}, "shared_rate is 0.1; allowed: on shares, a power of two"),
        ({**SHARES, "shared_rate": math.inf}, "shared_rate is inf; allowed"),
    ],
)
def test_an_option_outside_its_range_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        setting(**options)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 500), st.integers(1, 60))
def test_every_epoch_is_in_one_round(epochs: int, republish: int) -> None:
    schedule = setting(mode="individual", epochs=epochs, republish=republish)
    steps = [schedule.steps(round) for round in range(1, schedule.publications + 1)]
    assert sum(steps) == epochs
    assert all(1 <= step <= republish for step in steps)
    assert set(steps[:-1]) <= {republish}
    assert schedule.publications == schedule.rounds - 1 == math.ceil(epochs / republish)


@pytest.mark.parametrize("mode", MODES)
def test_options_come_back_as_they_were_given(mode: str) -> None:
    options = {"mode": mode, "width": 4, "epochs": 7, "republish": 3, "epsilon": 9.0, "opened": True}
    options |= {"republish": 1, "epsilon": math.inf} if mode == "all-shares" else {}
    given = setting(**options)
    assert list(given.options) == list(OPTIONS)
    assert {name: given.options[name] for name in options} == options
    assert Setting.of(given.members, given.classes, **given.options) == given
    changed = given.with_options(epochs=8)
    assert {name for name in OPTIONS if changed.options[name] != given.options[name]} == {"epochs"}


def test_paper_mode_opens_no_more_than_a_quarter_unless_that_is_said() -> None:
    """300 columns: 74 opened projections pass, 75 are a quarter of them and would let a holder solve."""
    few = {"mode": "paper", "epochs": 1, "epsilon": math.inf}
    setting(width=74, **few)
    with pytest.raises(InputError, match="paper mode opens 75 projections of bank's 300 columns") as refusal:
        setting(width=75, **few)
    assert "allowed: fewer than 75" in str(refusal.value) and "--set opened=true" in str(refusal.value)
    setting(width=75, opened=True, **few)
    with pytest.raises(InputError, match="opens 80 projections"):
        setting(width=40, **{**few, "epochs": 2})


@pytest.mark.parametrize("epsilon_y", [0.5, 2.0, math.inf])
def test_labels_are_heard_through_randomized_response(epsilon_y: float) -> None:
    channel = setting(classes=4, epsilon_y=epsilon_y).label_channel.double()
    assert channel.sum(dim=1).tolist() == pytest.approx([1.0] * 4)
    if math.isinf(epsilon_y):
        assert channel.tolist() == [[float(row == column) for column in range(4)] for row in range(4)]
    else:
        ratio = float(channel.max() / channel.min())
        assert ratio == pytest.approx(math.exp(epsilon_y), rel=1e-6)


def test_every_table_has_every_mode() -> None:
    """A mode that is added to the list and forgotten in a table must not run, or be priced, as another one."""
    assert [*programs._PROGRAMS] == [*MODE_OF] == [*MODES]


def test_the_server_may_be_sent_what_its_mode_says_and_nothing_else() -> None:
    """Spelled out, so that a kind of message that is added to a mode is looked at before audits let it through."""
    rows = {"labelled-rows", "validation-rows"}
    publishing, hidden = {*rows, "embeddings", "hidden-gradient", "kept-round"}, {"matrix-key", "hidden-matrix"}
    assert {
        name: (kinds_to_server(mode, mode.sent), kinds_to_server(mode, mode.sent_later))
        for name, mode in MODE_OF.items()
    } == {
        "individual": (publishing, {"new-rows", "embeddings"}),
        "paper": (publishing, {"new-rows", "embeddings"}),
        "shared-linear": (
            {*rows, *hidden, "noisy-share", "hidden-gradient", "kept-round"},
            {"new-rows", *hidden, "noisy-share"},
        ),
        "guesses": (set(), set()),
        "all-shares": ({*rows, "kept-round"}, {"new-rows"}),
    }
