"""Runs that are disturbed: killed parties, cut connections, parties that stop, stay away or lose their checkpoints."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import BudgetError, DataError, WriteError
from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.effects import PeerError, Receive
from graphveil.federation.transport.session import WHY, Message
from graphveil.runtime.progress import Progress
from tests.federation.parties import NAMES, Place, Running, program, run_all
from tests.waiting import until


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> torch.Tensor:
    parties = run_all(Place(tmp_path_factory.mktemp("calm")))
    return parties["holder1"].result


def test_all_messages_are_in_everybodys_transcript_and_a_finished_run_ends_at_once(tmp_path: Path) -> None:
    place = Place(tmp_path)
    parties = run_all(place)
    sent = {
        name: [(e.receiver, e.kind) for e in parties[name].finished.transcript.entries if e.sender == name]
        for name in NAMES
    }
    for name in NAMES:
        for other in NAMES:
            entries = parties[other].finished.transcript.entries
            got = [e.kind for e in entries if (e.sender, e.receiver) == (name, other)]
            assert got == [kind for to, kind in sent[name] if to == other]
    before = len(place.sent)
    again = run_all(place)  # of parties that have finished
    assert torch.equal(again["holder1"].result, parties["holder1"].result) and len(place.sent) == before


def test_a_message_that_the_log_does_not_take_never_leaves_and_both_ends_log_one_hash(tmp_path: Path) -> None:
    logs: dict[str, list[Message]] = {name: [] for name in NAMES}

    def full(message: Message) -> None:
        logs["holder1"].append(message)
        if (message.entry.kind, message.entry.round) == ("embeddings", 2):
            raise WriteError("no space left", where="transcript.jsonl")

    parties = run_all(Place(tmp_path), holder1={"record": full}, server={"record": logs["server"].append})
    assert isinstance(parties["holder1"].error, WriteError)
    sent, got = (
        [(m.entry.round, m.tag) for m in logs[name] if (m.entry.sender, m.entry.kind) == ("holder1", "embeddings")]
        for name in ("holder1", "server")
    )
    assert [round for round, _ in sent] == [1, 2] and got == sent[:1] and sent[0][1] != sent[1][1]


def test_all_parties_killed_in_turn(tmp_path: Path, undisturbed: torch.Tensor) -> None:
    place = Place(tmp_path)
    dies: dict[str, Any] = {"holder1": {"dies": (0, 3)}, "server": {"dies": (2,)}, "holder2": {"dies": (5,)}}
    parties = run_all(place, **dies)
    assert [parties[name].deaths for name in NAMES] == [1, 2, 1]
    assert torch.equal(parties["holder1"].result, undisturbed) and torch.equal(parties["holder2"].result, undisturbed)
    assert len(place.masks) == len(set(place.masks)) > 2  # every session has masks of its own
    for name in NAMES[1:]:  # and a round that ran again published the same bytes
        for round in range(1, 6):
            assert len({rows for me, r, rows in place.sent if (me, r) == (name, round)}) == 1


@pytest.mark.slow  # somebody waits for more than its patience
def test_a_party_that_computes_is_waited_for(tmp_path: Path) -> None:
    place = Place(tmp_path, patience=3.0)

    def build(done: int, state: Any) -> Any:
        session = next(session for session, links in place.lines if "holder2" not in links.mail)
        for _ in range(8):
            time.sleep(0.5)
            session.computing(Progress(0, 1))
        return (yield from program(place, "holder2", done, state))

    parties = run_all(place, holder2={"build": build})
    assert torch.equal(parties["holder1"].result, parties["holder2"].result)


def test_cut_connections_lose_nothing(tmp_path: Path, undisturbed: torch.Tensor) -> None:
    place = Place(tmp_path)

    def cut(round: int) -> bool:
        for _, links in place.lines:
            for call in list(links._calls.values()):
                call.cancel()
        return False

    peers = [Running(place, name) for name in ("server", "holder2")]
    finished = place.run("holder1", die=cut)
    assert all(peer.wait().error is None for peer in peers) and place.noted("lost the stream with holder1")
    assert torch.equal(finished.result, undisturbed)
    # No session was lost, and no message sent twice.
    assert len([e for e in finished.transcript.entries if e.kind == "embeddings"]) == 5


def _stops(error: Exception, place: Place, me: str, done: int, state: Any) -> Any:
    yield Receive("server", "mask-keys", (1, 32))
    raise error


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (DataError("row 17 holds 42.0"), "own"),
        (BudgetError("publication 6 of 5"), "budget"),
        (ZeroDivisionError("x of person 17 is 42.0"), "fault"),
    ],
)
def test_others_are_told_why_a_party_stopped_and_nothing_of_its_data(
    error: Exception, why: str, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    parties = run_all(place, holder2={"build": partial(_stops, error, place, "holder2")})
    assert parties["holder2"].error is error
    for name in ("server", "holder1"):
        text = str(parties[name].error)
        assert isinstance(parties[name].error, PeerError)
        assert text.startswith(f"holder2: stopped: {WHY[why]}")
        assert "17" not in text and "42" not in text
    assert not place.sent or all(me == "holder1" for me, _, _ in place.sent)


@pytest.mark.parametrize(
    ("lost", "who", "words"),
    [
        ("*.checkpoint", ["holder2"], "published for round 3"),
        ("*", ["holder2"], "published for round 3"),
        ("*", ["holder1", "holder2"], "has read what was published for round 3"),
    ],
)
def test_lost_checkpoints_are_not_forgotten_publications(lost: str, who: list[str], words: str, tmp_path: Path) -> None:
    """A holder that has published refuses to begin anew: its budget would be spent twice.

    Nothing protects a holder that puts its whole folder back from itself; the note of any other one stops the run, of
    a reader too.
    """
    place = Place(tmp_path)
    first = {name: Running(place, name, dies=(3,), pause=1e6) for name in NAMES}
    until(lambda: all(running.deaths for running in first.values()))
    for file in [file for name in who for file in (tmp_path / name).glob(lost)]:
        file.unlink()
    before = len(place.sent)
    parties = run_all(place)
    refused = [running.error for running in parties.values() if isinstance(running.error, BudgetError)]
    assert refused and all("new agreement" in str(error) and words in str(error) for error in refused)
    assert all(running.error is not None for running in parties.values())
    assert len(place.sent) == before  # nothing was published again


def test_nobody_publishes_before_all_have_saved(tmp_path: Path) -> None:
    """Holder 1's rows of round 3 may not leave while holder 2 has not saved round 2."""
    place, left = Place(tmp_path), []

    class Slow(Checkpoints):
        def save(self, round: int, state: Any) -> None:
            if round == 2:
                time.sleep(0.7)
                session = next(session for session, _ in place.lines if session._me == "holder1")
                left.extend(entry.round for entry in session._entries if entry.kind == "embeddings")
            super().save(round, state)

    parties = run_all(place, holder2={"store": Slow(tmp_path / "slow", place.agreement.hex())})
    assert left == [1, 2]
    assert len([e for e in parties["server"].finished.transcript.entries if e.kind == "embeddings"]) == 10
