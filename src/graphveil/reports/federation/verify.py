"""A party's log of messages held against its agreement, and against the log of another party.

kinds          each message is of a kind that the mode has, in that direction, with this party at one end
publications   no more rounds with a publication than were paid for, and none under two names
two logs       what one party read in a session is what the other sent it, from the first message on, by SHA-256

A log is what its own machine wrote: it shows a fault of the program or a changed file.  A party that lies rewrites its
log, but not the one of the party that it sent to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from graphveil.errors import DataError
from graphveil.federation.core.agreement import Agreement
from graphveil.federation.core.messages import KINDS
from graphveil.federation.crypto.keys import CERTIFICATE, name_of
from graphveil.federation.transport.session import Message
from graphveil.files.reading import read_bytes
from graphveil.reports.federation.log import OF_LABELS, TRANSCRIPT, read_log
from graphveil.reports.federation.plan import SENT, draft


def verified(folder: Path, other_log: Path | None = None) -> dict[str, Any]:
    """Return what a party's log says and where it contradicts the agreement, as `--json` prints it.

    Args:
        folder: the party's.
        other_log: `transcript.jsonl` of another party, or its lines that name this one.

    Raises:
        DataError: there is no log, or a file is missing or damaged.
    """
    agreement, file = draft(folder)[0], folder / TRANSCRIPT
    me = name_of(_certificate(folder))
    if not file.is_file():
        raise DataError("no message has been sent from here", where=str(folder))
    log = read_log(file, agreement)
    faults = [*_direction_faults(log.messages, agreement, me), *_publication_faults(log.messages, agreement)]
    answer = {"party": me, "agreement": agreement.hash.hex(), "messages": len(log.messages), "torn": log.torn}
    answer |= {"paid": _paid(agreement), "published": _published(log.messages)}
    answer |= {"peer": None, "equal": 0, "unread": 0}
    if other_log is not None:
        answer |= _compared(log.messages, read_log(_there(other_log), agreement).messages, agreement, me, faults)
    return {**answer, "faults": faults}


def _certificate(folder: Path) -> bytes:
    try:
        return read_bytes(folder / CERTIFICATE)
    except FileNotFoundError as error:
        raise DataError("is missing", where=str(folder / CERTIFICATE), remedy="restore it") from error


def _there(file: Path) -> Path:
    if not file.is_file():
        raise DataError("cannot be read", where=str(file), remedy=f"name another party's {TRANSCRIPT}")
    return file


def _direction_faults(messages: Iterable[Message], agreement: Agreement, me: str) -> Iterator[str]:
    """Yield what the mode does not allow, once for each kind and direction, and messages without a hash."""
    parties, allowed = {party.name: party for party in agreement.parties}, SENT[agreement.setting.protocol.mode]
    for kind, sender, receiver in dict.fromkeys((m.entry.kind, m.entry.sender, m.entry.receiver) for m in messages):
        what = f"{kind} from {sender} to {receiver}"
        if sender not in parties or receiver not in parties or sender == receiver or me not in (sender, receiver):
            yield f"{what}: not a message of {me} and another party of the agreement"
        elif kind not in allowed:
            yield f"{what}: mode {agreement.setting.protocol.mode} has no such message"
        elif not (parties[sender].plays(KINDS[kind].sender) and parties[receiver].plays(KINDS[kind].receiver)):
            yield f"{what}: goes from the {KINDS[kind].sender} to the {KINDS[kind].receiver}"
    if bare := sum(not message.sha256 for message in messages):
        yield f"{bare} messages without their hash: of an earlier version"


def _published(messages: Iterable[Message]) -> dict[str, int]:
    """Return in how many rounds each party has sent what its ledger charges."""
    rounds = defaultdict(set)
    for message in messages:
        if KINDS[message.entry.kind].priced and message.entry.kind not in OF_LABELS:
            rounds[message.entry.sender].add(message.entry.round)
    return {sender: len(different) for sender, different in rounds.items()}


def _paid(agreement: Agreement) -> int:
    """Return in how many rounds a party may publish: all modes but "guesses" publish in one more who did not train."""
    setting = agreement.setting
    return setting.publications + (setting.protocol.mode != "guesses")


def _publication_faults(messages: Sequence[Message], agreement: Agreement) -> Iterator[str]:
    """Yield who published more often than paid for, and what was published under two names."""
    paid, names = _paid(agreement), defaultdict(set)
    for sender, count in _published(messages).items():
        if count > paid:
            yield f"{sender} published in {count} rounds; {paid} were paid for"
    # By name and not by hash of the body: a round that runs again sends the same sum under new masks.
    for message in messages:
        if message.publication:
            names[message.entry.sender, message.entry.kind, message.entry.round].add(message.publication)
    for (sender, kind, round), different in names.items():
        if len(different) > 1:
            yield f"{kind} of {sender}: round {round} was published {len(different)} times, with different data"


def _compared(
    mine: Sequence[Message], theirs: Sequence[Message], agreement: Agreement, me: str, faults: list[str]
) -> dict[str, Any]:
    """Compare both directions of a pair of logs; add to the faults."""
    ends = [{message.entry.sender, message.entry.receiver} for message in theirs]
    peers = set.intersection(*ends) - {me} if ends else set()
    if len(peers) != 1:
        faults.append("the other log is not that of one other party of this agreement")
        return {}
    (peer,) = peers
    faults += _publication_faults(theirs, agreement)
    equal = unread = 0
    for sender, receiver, sent, got in ((me, peer, mine, theirs), (peer, me, theirs, mine)):
        left, arrived = _of_pair(sent, sender, receiver), _of_pair(got, sender, receiver)
        for session in dict.fromkeys([*left, *arrived]):
            out, into = left[session], arrived[session]
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(out, into, strict=False)))
            if same < len(into):
                faults.append(f"{into[same][0]} from {sender} to {receiver}: not what was sent, in session {session}")
            equal, unread = equal + same, unread + max(len(out) - len(into), 0)
    return {"peer": peer, "equal": equal, "unread": unread}


def _of_pair(messages: Iterable[Message], sender: str, receiver: str) -> dict[str, list[tuple[object, ...]]]:
    """Return what went one way in each session, in order, without rounds: the two ends may count a message apart."""
    sessions: dict[str, list[tuple[object, ...]]] = defaultdict(list)
    for message in messages:
        entry = message.entry
        if (entry.sender, entry.receiver) == (sender, receiver):
            sessions[message.session].append((entry.kind, entry.shape, message.sha256))
    return sessions
