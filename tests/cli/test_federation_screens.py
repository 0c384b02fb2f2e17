"""What people read of a federation: every line that a screen may show follows from the answer behind it."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console, RenderableType

from graphveil.cli import federation_screens as screens
from graphveil.federation.core.agreement import Agreement, Party
from graphveil.federation.core.guarantees import guarantee_of
from graphveil.reports.federation.plan import planned, priced
from tests.reports.federation.test_party import agreement


def read(screen: RenderableType) -> str:
    """A screen as one line of text."""
    out = io.StringIO()
    Console(file=out, width=100, color_system=None).print(screen)
    return " ".join(out.getvalue().split())


def plan(unsigned: tuple[str, ...] = (), **options: Any) -> str:
    return read(screens.planned(planned(agreement(**options), 1000, 100, list(unsigned))))


def finish(**changes: Any) -> dict[str, Any]:
    """The answer of a holder that has finished."""
    options = changes.pop("options", {})
    agreed: Agreement = agreement(**options)
    return {
        "party": "clinic",
        "mode": agreed.setting.protocol.mode,
        "opens": "what it opens",
        "opened": agreed.setting.protocol.opened,
        "rounds": 3,
        "publications": agreed.setting.publications,
        "epsilon": agreed.setting.privacy.epsilon,
        **priced(agreed.setting),
        "epsilon_y": agreed.setting.privacy.epsilon_y,
        "guarantee": guarantee_of(agreed.setting).to_dict(),
        "messages": [],
        "bytes_sent": 2_500,
        "bytes_received": 12,
        "seconds": 95.0,
        "folder": "run/clinic",
        "files": ["card.md", "card.html"],
        **changes,
    }


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1234, "1.23 kB"),
        (999_999, "1e+03 kB"),
        (2_500_000, "2.5 MB"),
        (3.2e9, "3.2 GB"),
        (7.5e12, "7.5 TB"),
    ],
)
def test_bytes_are_written_in_the_unit_that_keeps_them_short(count: float, said: str) -> None:
    assert screens.size(count) == said


def test_what_was_spent_is_rounded_up_and_never_down() -> None:
    assert screens.spent(2.50001, 8.0, "the server") == "epsilon 2.51 of 8 spent"
    assert screens.spent(3.0, math.inf, "the label holder") == "no privacy against the label holder"


def test_a_plan_without_noise_says_so_in_both_places() -> None:
    shown = plan(epsilon=math.inf)
    assert "inf: no privacy against the server, as was agreed" in shown
    assert "NOT PROTECTED: the server can learn those of training nodes" in shown and "sigma" not in shown


def test_a_plan_with_noise_states_the_total_the_part_and_the_noise() -> None:
    shown = plan(epsilon=8.0, republish=1, epochs=3)
    assert "8 in TOTAL over 3 publications, at delta 0.0001" in shown
    assert "sigma" in shown and "on rows of length at most 1" in shown
    sigmas = [agreement(republish=every, epochs=3).setting.publication.sigma for every in (1, 3)]
    assert f"1 3 {sigmas[0]:.3g} {2 * sigmas[0]:.3g} 3 1 {sigmas[1]:.3g} {2 * sigmas[1]:.3g}" in shown


def test_a_plan_of_guesses_states_the_chance_and_no_delta() -> None:
    """At epsilon 2 of 3 classes a guess stays with probability e^2 / (e^2 + 2) = 0.787."""
    shown = plan(mode="guesses", epsilon=2.0)
    assert "2 in TOTAL for one guess a node, with no delta" in shown
    assert "a guess is sent as it is with probability 0.787, else as one of the 2 other classes" in shown
    assert "each holder randomizes its own guesses" in shown and "Threat model all follow" not in shown
    assert "NOT PROTECTED: all holders are given those of training nodes" in shown
    assert "sigma" not in shown


def test_a_plan_says_which_labels_are_randomized() -> None:
    assert "randomized once at their holder, epsilon 1.5 each" in plan(epsilon_y=1.5)


@pytest.mark.parametrize("unsigned", [(), ("clinic", "bank")])
def test_a_plan_says_who_has_not_signed(unsigned: tuple[str, ...]) -> None:
    shown = plan(unsigned)
    assert ("Not signed by clinic, bank" in shown) == bool(unsigned)


def test_a_plan_counts_for_the_nodes_that_were_typed() -> None:
    assert "for 1,000 nodes (--nodes), 100 of them training (--training); alignment not counted" in plan()


def test_what_a_mode_opens_stands_once() -> None:
    """Beside its name; the assumptions list the rest of what a guarantee leans on."""
    shown = plan(mode="individual")
    assert shown.count(planned(agreement(mode="individual"), 10, 1, [])["opens"][:40]) == 1


def test_an_acknowledgement_is_shown_where_one_was_needed() -> None:
    options = {"mode": "paper", "width": 64, "epochs": 10}
    assert "Acknowledged" in read(screens.finished(finish(options={**options, "opened": True})))
    assert "Acknowledged" not in plan()


def test_a_finished_holder_without_labels_says_how_long_it_ran() -> None:
    shown = read(screens.finished(finish(party="bank")))
    assert shown.startswith("bank has finished 3 rounds") and "test nodes" not in shown
    assert "2.5 kB, received 12 B, in 1 min 35 s" in shown and "card.md, card.html" in shown


@pytest.mark.parametrize("alone", [None, {"mean": 0.6}])
def test_a_finished_label_holder_says_how_often_it_was_right(alone: Mapping[str, float] | None) -> None:
    answer = finish(
        accuracy={"mean": 0.75, "low": 0.7, "high": 0.801}, test_nodes=1500, best_round=2, accuracy_alone=alone
    )
    if alone is None:
        del answer["accuracy_alone"]
    shown = read(screens.finished(answer))
    assert shown.startswith("clinic: 75.0 %") and "1,500 test nodes" in shown and "95%: 70.0 to 80.1" in shown
    assert "round 2 of 3" in shown
    assert ("Its own network alone" in shown and "60.0 %" in shown) is (alone is not None)


def test_messages_are_summed_by_who_sent_them() -> None:
    messages = [
        {"kind": "noisy-share", "from": "clinic", "to": "server", "count": 3, "bytes": 30_000},
        {"kind": "seal", "from": "bank", "to": "clinic", "count": 1, "bytes": 32},
        {"kind": "seal", "from": "clinic", "to": "bank", "count": 1, "bytes": 32},
        {"kind": "seal", "from": "clinic", "to": "shop", "count": 1, "bytes": 32},
    ]
    shown = read(screens.finished(finish(messages=messages)))
    assert "noisy-share 3 x, 30 kB seal 2 x, 64 B 1 x, 32 B" in shown


@pytest.mark.parametrize(
    ("epsilon", "total", "said"),
    [
        (None, None, "the server publishes no rows"),
        (2.5, 8.0, "Epsilon 2.5 of 8 spent"),
        ("inf", "inf", "no privacy against the server"),
    ],
)
def test_a_status_says_what_was_paid(epsilon: Any, total: Any, said: str) -> None:
    known = {"party": "clinic", "state": "running", "round": 3, "rounds": 20, "time": "now", "reader": "the server"}
    shown = read(screens.status({**known, "epsilon": epsilon, "epsilon_total": total}))
    assert said in shown and "Round 3 of 20" in shown


def made(unsigned: list[str], *, keys: bool) -> str:
    parties = [
        {"name": p.name, "role": p.role, "address": p.address, "certificate": 40 * "a", "made": keys}
        for p in (Party("server", "server", "s:1", ""), Party("clinic", "holder", "c:1", ""))
    ]
    known = {"run": "ours", "mode": "individual", "agreement": 64 * "b", "folder": "run"}
    return read(screens.made({**known, "parties": parties, "unsigned": unsigned}))


def test_keys_that_were_made_here_must_be_handed_on_safely() -> None:
    shown = made([], keys=True)
    assert "Keys server, clinic:" in shown and "Signed by all parties" in shown
    assert 16 * "b" in shown and 17 * "b" not in shown and 17 * "a" not in shown
    assert "graphveil federation plan run/server" in shown


def test_own_keys_are_not_handed_on_and_their_owners_sign() -> None:
    shown = made(["clinic"], keys=False)
    assert "its own" in shown and "made here" not in shown
    assert "Not signed by clinic:" in shown and "Signed by all" not in shown


@pytest.mark.parametrize("missing", [[], ["bank", "shop"]])
def test_a_signature_says_who_is_still_missing(missing: list[str]) -> None:
    answer = {"party": "clinic", "agreement": 64 * "c", "signed": ["clinic"], "unsigned": missing, "file": "s.json"}
    shown = read(screens.signed(answer))
    assert ("Missing bank, shop;" in shown and "s.json" in shown) == bool(missing)
    assert ("the run can begin" in shown) != bool(missing)


def test_a_new_key_is_kept_and_its_fingerprint_read_out() -> None:
    answer = {"party": "clinic", "folder": "k", "fingerprint": "ab:cd", "certificate": "k/c.pem", "key": "k/key.pem"}
    shown = read(screens.keyed(answer))
    assert "k/key.pem: it never leaves this machine" in shown
    assert "Hand out k/c.pem;" in shown and "Fingerprint ab:cd" in shown


def test_a_split_says_who_holds_what_and_the_next_command() -> None:
    holders = [
        {"name": "holder1", "columns": 1200, "edges": 34_000, "labels": True},
        {"name": "holder2", "columns": 3, "edges": 0, "labels": False},
    ]
    shown = read(screens.split({"nodes": 2000, "holders": holders, "folder": "parts\x1b[2J"}))
    assert shown.startswith("2,000 nodes ") and "holder1 1,200 34,000 yes holder2 3 0 Folder" in shown
    assert "federation init --from parts [2J --out RUN" in shown and "\x1b" not in shown
