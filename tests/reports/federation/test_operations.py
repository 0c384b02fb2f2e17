"""What a party reads before it signs, and its log held against the agreement and against another party's log."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphveil.errors import DataError, InputError
from graphveil.federation.core.agreement import FILE, SIGNATURES
from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.core.messages import ANYBODY, KINDS, Entry, Transcript
from graphveil.federation.core.mode import MODE_OF
from graphveil.federation.core.setting import MODES
from graphveil.federation.crypto.keys import read_identity
from graphveil.federation.party import Outcome
from graphveil.federation.transport.session import Message
from graphveil.reports.federation.earlier import paid_earlier
from graphveil.reports.federation.folders import add_signature, facts_from, take_agreement, write_parties
from graphveil.reports.federation.log import TRANSCRIPT, TranscriptFile, read_log
from graphveil.reports.federation.party import write_outcome
from graphveil.reports.federation.review import PREVIOUS, REVIEWED, agreement_in, ending_soon, note_reviewed, review_of
from graphveil.reports.federation.verify import verify_log
from tests.federation.crypto.test_keys import identity_files

HOLDERS = ["clinic=127.0.0.1:2=30", "bank=127.0.0.1:3=40"]


def parties(path: Path, **settings: Any) -> Path:
    """Folders of a clinic with the labels, a bank and the server."""
    whole = {"epsilon": 4.0, "mode": "individual", "epochs": 3, "opened": True, **settings}
    write_parties(path, "run", facts_from("127.0.0.1:1", HOLDERS, "no,yes", "0,1"), whole, {})
    return path


@pytest.mark.parametrize("mode", list(MODES))
def test_a_review_names_every_kind_that_a_party_is_sent_once(mode: str, tmp_path: Path) -> None:
    epsilon = math.inf if mode == "all-shares" else 4.0
    answer = review_of(parties(tmp_path / "run", mode=mode, epsilon=epsilon) / "bank")
    for who, roles in zip(answer["sees"], ({"server"}, {"holder", "label holder"}, {"holder"}), strict=True):
        kinds = [message["kind"] for message in who["sees"]]
        own = {kind for kind in MODE_OF[mode].sent if KINDS[kind].sender in roles - {"holder"}}
        read = {kind for kind in MODE_OF[mode].sent if KINDS[kind].receiver in {*roles, ANYBODY}}
        assert sorted([*kinds, *who["nothing"]]) == sorted(read - own)
        assert all(KINDS[kind].reveals.startswith("nothing") for kind in who["nothing"])
    server, clinic, bank = (party["pays"] for party in answer["parties"])
    # In modes "guesses" and "all-shares" the label holder reads and publishes nothing.
    rows = set() if mode in ("guesses", "all-shares") else {"rows"}
    assert server == {} and clinic.keys() == {"labels"} | rows
    assert bank == {"rows": epsilon} and answer["previous"] is None


def test_what_was_not_reviewed_is_not_signed_and_changes_since_the_last_agreement_are_named(tmp_path: Path) -> None:
    bank = parties(tmp_path / "run") / "bank"
    with pytest.raises(InputError, match=r"was not reviewed on this machine; graphveil federation review .*bank shows"):
        add_signature(bank)
    note_reviewed(bank, agreement_in(bank / FILE).hash.hex())
    assert "bank" in add_signature(bank)["signed"]
    file, text = tmp_path / "next.toml", (bank / FILE).read_text()
    file.write_text(text.replace("epsilon = 4.0", "epsilon = 5.0").replace("127.0.0.1:2", "127.0.0.1:22"))
    with pytest.raises(InputError, match="was not reviewed"):
        take_agreement(bank, file)
    assert (bank / FILE).read_text() == text and (bank / SIGNATURES).is_file()  # a refusal changes nothing
    for _ in range(2):  # also after it was reviewed: another look shows the same
        answer = review_of(bank, file)
        assert {row["fact"]: (row["before"], row["now"]) for row in answer["changes"]} == {
            "epsilon": ("4.0", "5.0"),
            "clinic: address": ("127.0.0.1:2", "127.0.0.1:22"),
        }
        note_reviewed(bank, answer["agreement"])
    take_agreement(bank, file)
    assert (bank / PREVIOUS).read_text() == text and len(review_of(bank)["changes"]) == 2
    file.write_text(f"# {file.read_text()}")
    assert review_of(bank, file)["changes"] == [] and review_of(bank, file)["previous"] is not None
    (bank / REVIEWED).write_text("[]")
    with pytest.raises(DataError, match="review again"):
        add_signature(bank)
    with pytest.raises(DataError, match="is no folder"):
        review_of(tmp_path / "nobody")


def test_what_a_run_cost_that_never_finished_is_said_before_the_next(tmp_path: Path) -> None:
    """Stopped before its last round and agreed on anew, again and again, runs would cost nobody anything."""
    run = parties(tmp_path / "run", epsilon_y=3.0)
    bank, server = run / "bank", run / "server"
    before = agreement_in(bank / FILE)
    agreed = replace(before, data=before.data + b"# anew")
    with closing(Checkpoints(bank / "checkpoints", before.hash.hex())) as store:
        store.publish(2, "ab")
    assert paid_earlier(bank, before) == [] == paid_earlier(server, agreed)
    assert ["published in 2 rounds" in line for line in paid_earlier(bank, agreed)] == [True]
    (bank / PREVIOUS).write_bytes(before.data)
    rows, labels = paid_earlier(bank, agreed)
    paid = float(rows.partition(":")[0].rpartition(" rows epsilon ")[2])
    assert "did not finish" in rows and 2 < paid < 4 and "labels epsilon 3" in labels
    nobody: Any = object()
    write_outcome(bank, "bank", before, Outcome(None, None, nobody, Transcript(())))
    assert ["did not finish" in line for line in paid_earlier(bank, agreed)] == [False, False]


@pytest.mark.parametrize(("days", "lines"), [(-1, ["ended"]), (29, ["ends"]), (31, [])])
def test_certificates_near_their_end_are_named(days: int, lines: list[str], tmp_path: Path) -> None:
    agreement = agreement_in(parties(tmp_path / "run") / "bank" / FILE)
    old = replace(agreement.parties[1], certificate=identity_files(days)["certificate.pem"].decode())
    named = ending_soon(replace(agreement, parties=(agreement.parties[0], old, agreement.parties[2])))
    assert len(named) == len(lines)
    assert all(f"the certificate of clinic {line} on 20" in name for line, name in zip(lines, named, strict=True))


def message(sender: str, receiver: str, kind: str, round: int, **changes: str) -> Message:
    entry = Entry(round, sender, receiver, kind, (2,), 8, KINDS[kind].reveals)
    facts = {"session": 32 * "a", "tag": 64 * "1", "publication": f"rows of round {round}"}
    return Message(entry, **{**facts, **changes})


def run_of(holder: str) -> Iterator[Message]:
    """Three rounds of a holder with the server, the second of them twice."""
    for session, rounds in (("a", (1, 2)), ("b", (2, 3))):
        for round in rounds:
            yield message(holder, "server", "embeddings", round, session=32 * session, tag=64 * str(round))
            yield message("server", holder, "embedding-gradient", round, session=32 * session, publication="")


def keep(run: Path, party: str, messages: list[Message]) -> None:
    (run / party / TRANSCRIPT).unlink(missing_ok=True)
    log = TranscriptFile(run / party, agreement_in(run / party / FILE), identity=read_identity(run / party))
    with log.recording() as record:
        for entry in messages:
            record(entry)


def check(run: Path, party: str = "bank", other: str | None = None) -> dict[str, Any]:
    return verify_log(run / party, run / other / TRANSCRIPT if other else None)


def test_logs_of_one_run_agree_also_when_a_message_was_lost_at_a_restart(tmp_path: Path) -> None:
    run, log = parties(tmp_path / "run"), list(run_of("bank"))
    # The rows of round 2 left in the first session, never arrived and were never answered.
    keep(run, "bank", [*log[:3], *log[4:]])
    keep(run, "server", [*log[:2], *log[4:]])
    report = check(run, other="server")
    assert (report["faults"], report["peer"], report["equal"], report["unread"]) == ([], "server", 6, 1)
    assert report["published"] == {"bank": 3} and report["paid"] == 4
    assert check(run, "server", "bank")["peer"] == "bank"


def test_rows_that_did_not_train_are_published_in_a_round_of_their_own(tmp_path: Path) -> None:
    """In "shared-linear" alone; a second such round was not paid for."""
    run = parties(tmp_path / "run", mode="shared-linear")
    log = [message("bank", "server", "noisy-share", round) for round in (1, 2, 3, 5, 6)]
    keep(run, "bank", log[:-1])
    assert check(run)["faults"] == []
    keep(run, "bank", log)
    assert check(run)["faults"] == ["bank published in 5 rounds; 4 were paid for"]


def test_a_log_holds_no_name_by_which_rows_could_be_guessed_and_says_what_was_cut_off(tmp_path: Path) -> None:
    run = parties(tmp_path / "run")
    keep(run, "bank", list(run_of("bank")))
    file = run / "bank" / TRANSCRIPT
    text = file.read_text()
    assert "rows of round" not in text
    names = [json.loads(line)["publication"] for line in text.splitlines()]
    assert len({*names} - {""}) == 3 and names[2] == names[4]
    with file.open("a") as out:
        out.write(text[:40])
    agreement = agreement_in(run / "bank" / FILE)
    heard: list[str] = []
    with TranscriptFile(run / "bank", agreement, say=heard.append).recording() as record:
        record(next(run_of("bank")))
    assert len(heard) == 1 and "cut off" in heard[0]
    log = read_log(file, agreement)
    assert (len(log.messages), log.torn, log.messages[-1].publication) == (9, 1, "")
    assert check(run)["torn"] == 1 and check(run)["faults"] == ["1 message without a tag"]


def test_a_log_says_of_no_message_what_was_in_it_or_that_it_equals_another(tmp_path: Path) -> None:
    """To whoever is at neither end; both ends write the same, each with its own key."""
    run = parties(tmp_path / "run")
    log = [message("bank", "clinic", "labelled-rows", 1, publication="") for _ in range(3)]
    logs = {}
    for party in ("bank", "clinic"):
        keep(run, party, log)
        logs[party] = [json.loads(line)["tag"] for line in (run / party / TRANSCRIPT).read_text().splitlines()]
    assert logs["bank"] == logs["clinic"] and len({*logs["bank"], log[0].tag, ""}) == 5
    bank, clinic, server = (read_identity(run / name) for name in ("bank", "clinic", "server"))
    assert bank.shared_with(clinic.certificate) == clinic.shared_with(bank.certificate)
    assert server.shared_with(bank.certificate) != bank.shared_with(clinic.certificate)


def more(round: int) -> Message:
    return message("bank", "server", "embeddings", round)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda log: [*log, message("bank", "server", "guesses", 3)], "mode individual has no such message"),
        (lambda log: [*log, message("bank", "server", "hidden", 3)], "goes from the server to the label holder"),
        (lambda log: [*log, message("bank", "clinic", "embeddings", 3)], "goes from the holder to the server"),
        (lambda log: [*log, message("clinic", "server", "embeddings", 3)], "not a message of bank and another"),
        (lambda log: [*log, message("bank", "nobody", "blinded-ids", 0)], "not a message of bank and another"),
        (lambda log: [*log, *map(more, (4, 5))], "bank published in 5 rounds; 4 were paid for"),
        (lambda log: [*log, message("bank", "server", "embeddings", 3, publication="x")], "round 3 was published 2"),
        (lambda log: [replace(log[0], tag=""), *log[1:]], "1 message without a tag"),
        (lambda log: [replace(log[0], tag=64 * "e"), *log[1:]], "in session aaaaaaaaaaaaaaaa"),
        (lambda log: [log[2], log[1], log[0], *log[3:]], "embeddings from bank to server: not what was sent"),
        (lambda log: [*log, replace(log[-1], session=32 * "c")], "embedding-gradient from server to bank: not what"),
        (lambda log: log[1:], "embeddings from bank to server: not what was sent"),
    ],
)
def test_what_does_not_fit_is_a_fault_of_one_line(
    change: Callable[[list[Message]], list[Message]], fault: str, tmp_path: Path
) -> None:
    """In the bank's log; the server's is right, and lacks nothing."""
    run, log = parties(tmp_path / "run"), list(run_of("bank"))
    keep(run, "server", log)
    keep(run, "bank", change(log))
    faults = check(run, other="server")["faults"]
    assert any(fault in line for line in faults), faults


def test_logs_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    run = parties(tmp_path / "run")
    with pytest.raises(DataError, match="no message has been sent from here"):
        check(run)
    keep(run, "bank", list(run_of("bank")))
    with pytest.raises(DataError, match="name another party's transcript"):
        check(run, other="server")
    keep(run, "server", [])
    assert "not that of one other party" in check(run, other="server")["faults"][0]
    (run / "bank" / "certificate.pem").unlink()
    with pytest.raises(DataError, match=r"certificate\.pem: is missing"):
        check(run)
