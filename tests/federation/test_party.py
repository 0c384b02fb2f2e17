"""Whole runs from parties' folders: three processes through the command line, kills, budgets, and refusals."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
import typer.testing

from graphveil.cli.app import build
from graphveil.errors import DataError
from graphveil.federation import party as party_module
from graphveil.federation.core.agreement import FILE, SIGNATURES, Agreement, read_agreement, sign
from graphveil.federation.crypto.keys import new_identity, read_identity
from graphveil.federation.crypto.psi import STAGE
from graphveil.federation.party import Outcome, run_party
from graphveil.federation.transport.mailbox import Mailbox
from graphveil.graphs import load_graph
from graphveil.runtime.progress import Progress
from tests.federation.parties import NAMES, Killed
from tests.federation.ports import free_ports
from tests.waiting import FOREVER, in_threads


def type_in(*words: object) -> None:
    done = typer.testing.CliRunner().invoke(build(), [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def folders(path: Path, *settings: str, epsilon: str = "8", nodes: int = 100) -> Path:
    """Make the holders' data and all parties' folders."""
    type_in("federation", "split", f"social-{nodes}", "--out", path / "parts", "--proportion", "6:4")
    chosen = [word for setting in ("width=4", "hops=2", *settings) for word in ("--set", setting)]
    where = ("--from", path / "parts", "--out", path / "run", "--port", free_ports(3)[0])
    type_in("federation", "init", *where, "--epsilon", epsilon, *chosen)
    return path


class Watching:
    """Messages sent and received: (sender's place, kind, digest), in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[tuple[int, str, str]] = []
        send = Mailbox.send

        def noted(box: Mailbox, kind: str, body: torch.Tensor) -> None:
            self.sent.append((box._ends.me, kind, hashlib.sha256(body.detach().numpy().tobytes()).hexdigest()))
            send(box, kind, body)

        monkeypatch.setattr(Mailbox, "send", noted)

    def of(self, kind: str, sender: int | None = None) -> list[str]:
        return [digest for who, what, digest in self.sent if what == kind and sender in (None, who)]


def run_threads(path: Path, *, kills: dict[str, list[int]] | None = None, **changes: Any) -> dict[str, Any]:
    """Run the three parties in threads; a killed one starts again. Returns outcomes or errors by name."""
    left = {name: list(rounds) for name, rounds in (kills or {}).items()}
    outcomes: dict[str, Any] = {}
    spelled = changes.get("spelled", {})

    def work(name: str) -> None:
        here = path / "run" / name
        graph = None if name == "server" else load_graph(str(path / "parts" / name))

        def tell(step: Progress) -> None:
            assert step.stage == STAGE or step.total == read_agreement(here).setting.rounds
            if left.get(name) and left[name][0] == step.done:
                left[name].pop(0)
                raise Killed

        while True:
            try:
                outcomes[name] = run_party(
                    read_agreement(here),
                    changes.get("identities", {}).get(name) or read_identity(here),
                    here,
                    graph=graph,
                    ids=None if graph is None else [spelled.get(name, "{}").format(value) for value in graph.ids],
                    patience=changes.get("patience", FOREVER),
                    listen=changes.get("listen", {}).get(name),
                    note=lambda text: None,
                    progress=tell,
                )
                return
            except Killed:
                continue
            except Exception as error:
                outcomes[name] = error
                return

    with in_threads(work, NAMES):
        pass
    return outcomes


@pytest.mark.parametrize(
    "mode",
    ["individual", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("paper", "shared-linear", "all-shares"))],
)
def test_rounds_that_run_again_cost_nothing_and_masks_are_new(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one too: key, weights and randomized labels are kept before it, so a party may be lost in it."""
    wire = Watching(monkeypatch)
    epsilon = "inf" if mode == "all-shares" else "8"
    path = folders(tmp_path, f"mode={mode}", "epochs=5", "opened=true", "epsilon-y=2", epsilon=epsilon)
    outcomes = run_threads(path, kills={"holder1": [0, 1], "holder2": [2, 4], "server": [0, 3]})
    for name in NAMES:
        assert isinstance(outcomes[name], Outcome), outcomes[name]
    for place, name in enumerate(NAMES[1:], start=1):
        publisher = outcomes[name].publisher
        if mode == "all-shares":
            # Nothing is published, so nobody waits for it; all the same no party is rounds ahead, and all go on.
            assert publisher is None and len(wire.of("blinded-ids", place)) == 2
            continue
        assert publisher.times_published == 5 and publisher.spent <= 8
        if mode != "shared-linear":  # where the noisy rows themselves cross the wire: of those who train five times,
            # not a sixth, and once of those who validate and of all others
            assert len(set(wire.of("embeddings", place))) == 7 <= len(wire.of("embeddings", place))
    keys = wire.of("mask-keys")
    assert len(keys) == len(set(keys))
    assert (len(keys) == 0) == (mode == "individual")
    assert torch.equal(outcomes["holder1"].order >= 0, torch.ones(100, dtype=torch.bool))
    for file in path.glob("run/*/checkpoints/*"):
        assert file.stat().st_mode & 0o077 == 0, file


def test_labels_and_guesses_that_are_sent_again_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every party is killed after every round but the last: one draw of labels and one of guesses ever leave.

    The label holder is killed in alignment, too, and its ids leave under one secret.
    """
    wire = Watching(monkeypatch)
    path = folders(tmp_path, "mode=guesses", "epochs=3", "epsilon-y=2")
    outcomes = run_threads(path, kills={"holder1": [200, 0, 1], "holder2": [0, 1], "server": [1]})
    assert len(set(wire.of("blinded-ids", 1))) == 2 < len(wire.of("blinded-ids", 1))
    assert not list(path.glob("run/*/checkpoints/*.aligning"))
    assert all(isinstance(outcome, Outcome) for outcome in outcomes.values()), outcomes
    assert len(set(wire.of("guesses", 2))) == 1 == len(set(wire.of("training-labels", 1)))
    assert outcomes["holder2"].publisher.spent == 8.0
    assert not [kind for sender, kind, _ in wire.sent if kind not in ("blinded-ids", "blinded-set", "aligned")
                and (sender, kind) not in ((1, "training-labels"), (2, "guesses"))]  # fmt: skip
    head = outcomes["holder1"].head
    assert len(head.history) == 2 and head.predictions.shape == head.alone.shape


def test_a_run_goes_on_with_the_people_it_began_with_alone(tmp_path: Path) -> None:
    """In another order, say, others would be published in their places, and by a later prediction once more."""
    path = folders(tmp_path, "mode=individual", "epochs=1")
    assert not any(isinstance(outcome, Exception) for outcome in run_threads(path).values())
    file = path / "parts" / "holder2" / "nodes.parquet"
    pl.read_parquet(file).reverse().write_parquet(file)
    outcomes = run_threads(path)
    assert "other people than at the start of the run" in str(outcomes["holder2"])
    assert "its own data" in str(outcomes["server"])


def test_other_columns_and_another_key_than_agreed_are_refused_before_anything_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = Watching(monkeypatch)
    path = folders(tmp_path, "mode=individual", "epochs=2")
    outcomes = run_threads(
        path, patience=1.0, identities={"holder2": new_identity("holder2")}, listen={"server": "no port"}
    )
    assert "cannot listen on no port" in str(outcomes["server"])
    assert "the certificate of holder2 is not the one in the agreement" in str(outcomes["holder2"])
    for old, new in (("holder2", "other"), ("holder1", "holder2"), ("other", "holder1")):
        (path / "parts" / old).rename(path / "parts" / new)
    outcomes = run_threads(path, patience=1.0)
    assert isinstance(outcomes["holder2"], DataError) and "feature columns" in str(outcomes["holder2"])
    assert not wire.sent


def test_a_certificate_that_has_ended_is_named_before_anything_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By every party whose clock is right; TLS alone would blame the agreement."""
    wire, path = Watching(monkeypatch), folders(tmp_path, "mode=individual", "epochs=2")
    monkeypatch.setattr(Agreement, "ends", {"holder2": datetime(2025, 1, 2, 3, 4, tzinfo=UTC)})
    outcomes = run_threads(path, patience=1.0)
    words = "the certificate of holder2 ended on 2025-01-02 at 03:04 UTC"
    assert len(outcomes) == 3 and all(words in str(error) for error in outcomes.values())
    assert not wire.sent


def test_ids_are_compared_in_the_form_that_all_agreed_on(tmp_path: Path) -> None:
    path = folders(tmp_path, "mode=individual", "epochs=1")
    identities = tuple(read_identity(path / "run" / name) for name in NAMES)
    agreed = (path / "run" / "server" / FILE).read_text().replace('ids = "exact"', 'ids = "canonical"')
    for name in reversed(NAMES):
        if name == "holder1":  # the last of the holders that still has the other agreement
            outcomes = run_threads(path, patience=2.0)
            assert "different agreements" in str(outcomes["holder2"])
        (path / "run" / name / FILE).write_text(agreed)
        (path / "run" / name / SIGNATURES).write_text(sign(agreed.encode(), identities))
    outcomes = run_threads(path, spelled={"holder2": "  {}\u200b"})
    assert len(outcomes["holder1"].order) == len(outcomes["holder2"].order) == 100


def test_holders_that_align_different_rows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Watching(monkeypatch)
    path = folders(tmp_path, "mode=individual", "epochs=2")
    align = party_module.align

    def shorter(roster: Any, *given: Any, **named: Any) -> Any:
        rows = yield from align(roster, *given, **named)
        return rows[:-1] if roster.me == "holder2" else rows

    monkeypatch.setattr(party_module, "align", shorter)
    outcomes = run_threads(path)
    # By counts at the server, or at the holder that is told of a row it does not have: whichever comes first.
    assert "aligned" in str(outcomes["server"]) or "does not exist" in str(outcomes["holder2"])
    assert not wire.of("embeddings") and not wire.of("hidden-gradient")
