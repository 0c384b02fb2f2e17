"""A party's log of messages held against its agreement, and against the log of another party.

kinds          each message is of a kind that the run or prediction sends, in that direction, with this party at one end
publications   no more rounds with a publication than were paid for, in a prediction one, and none under two names
two logs       what one party read in a session is what the other sent it, from the first message on, by their tags

A log is what its own machine wrote: it shows a fault of the program or a changed file.  A dishonest party can rewrite
its own log, but not the log of the party that it sent to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from graphveil.errors import DataError
from graphveil.federation.core.agreement import Agreement
from graphveil.federation.core.messages import KINDS
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto.keys import CERTIFICATE, name_of
from graphveil.federation.predicting import folder_of
from graphveil.federation.transport.session import Message
from graphveil.files.reading import read_bytes
from graphveil.reports.federation.log import OF_LABELS, TRANSCRIPT, read_log
from graphveil.reports.federation.plan import draft
from graphveil.runtime.words import count_of


@dataclass(frozen=True)
class _Agreed:
    """What a log may hold: of the run, or of a prediction."""

    name: str
    kinds: Collection[str]
    paid: int

    @staticmethod
    def of(setting: Setting, prediction: str | None) -> _Agreed:
        mode = setting.mode
        if prediction is not None:
            return _Agreed("a prediction", mode.sent_later, 1)
        # All modes but "guesses" publish in one more round, of those who did not train.
        return _Agreed(f"mode {mode.name}", mode.sent, setting.publications + (not mode.guesses))


def verify_log(folder: Path, other_log: Path | None = None, *, prediction: str | None = None) -> dict[str, Any]:
    """Return what a party's log says and where it contradicts the agreement, as `--json` prints it.

    Args:
        other_log: `transcript.jsonl` of another party, or its lines that name this one.
        prediction: its name, where the log is of one and not of the run.

    Raises:
        DataError: there is no log, or a file is missing or damaged.
        InputError: for a name of a prediction that is none.
    """
    agreement, place = draft(folder)[0], folder if prediction is None else folder_of(folder, prediction)
    me, agreed = name_of(_certificate(folder)), _Agreed.of(agreement.setting, prediction)
    if not (place / TRANSCRIPT).is_file():
        raise DataError("no message has been sent from here", where=str(place))
    log = read_log(place / TRANSCRIPT, agreement)
    faults = [*_direction_faults(log.messages, agreement, agreed, me), *_publication_faults(log.messages, agreed.paid)]
    answer: dict[str, Any] = {"party": me, "agreement": agreement.hash.hex(), "prediction": prediction}
    answer |= {"messages": len(log.messages), "torn": log.torn}
    answer |= {"paid": agreed.paid, "published": _published(log.messages)}
    answer |= {"peer": None, "equal": 0, "unread": 0}
    if other_log is not None:
        if not other_log.is_file():
            raise DataError("cannot be read", where=str(other_log), remedy=f"name another party's {TRANSCRIPT}")
        theirs = read_log(other_log, agreement).messages
        faults += _publication_faults(theirs, agreed.paid)
        answer |= _compared(log.messages, theirs, me, faults)
    return {**answer, "faults": faults}


def _certificate(folder: Path) -> bytes:
    try:
        return read_bytes(folder / CERTIFICATE)
    except FileNotFoundError as error:
        raise DataError("is missing", where=str(folder / CERTIFICATE), remedy="restore it") from error


def _direction_faults(messages: Iterable[Message], agreement: Agreement, agreed: _Agreed, me: str) -> Iterator[str]:
    """Yield what was not agreed, once for each kind and direction, and messages without a tag."""
    parties = {party.name: party for party in agreement.parties}
    for kind, sender, receiver in dict.fromkeys((m.entry.kind, m.entry.sender, m.entry.receiver) for m in messages):
        what = f"{kind} from {sender} to {receiver}"
        if sender not in parties or receiver not in parties or sender == receiver or me not in (sender, receiver):
            yield f"{what}: not a message of {me} and another party of the agreement"
        elif kind not in agreed.kinds:
            yield f"{what}: {agreed.name} has no such message"
        elif not (parties[sender].plays(KINDS[kind].sender) and parties[receiver].plays(KINDS[kind].receiver)):
            yield f"{what}: goes from the {KINDS[kind].sender} to the {KINDS[kind].receiver}"
    if bare := sum(not message.tag for message in messages):
        yield f"{count_of(bare, 'message')} without a tag"


def _published(messages: Iterable[Message]) -> dict[str, int]:
    """Return in how many rounds each party has sent what its ledger charges."""
    rounds = defaultdict(set)
    for message in messages:
        if KINDS[message.entry.kind].priced and message.entry.kind not in OF_LABELS:
            rounds[message.entry.sender].add(message.entry.round)
    return {sender: len(different) for sender, different in rounds.items()}


def _publication_faults(messages: Sequence[Message], paid: int) -> Iterator[str]:
    """Yield who published more often than paid for, and what was published under two names."""
    names = defaultdict(set)
    for sender, count in _published(messages).items():
        if count > paid:
            yield f"{sender} published in {count_of(count, 'round')}; {paid} {'was' if paid == 1 else 'were'} paid for"
    # By name and not by hash of the body: a round that runs again sends the same sum under new masks.
    for message in messages:
        if message.publication:
            names[message.entry.sender, message.entry.kind, message.entry.round].add(message.publication)
    for (sender, kind, round), different in names.items():
        if len(different) > 1:
            yield f"{kind} of {sender}: round {round} was published {len(different)} times, with different data"


def _compared(mine: Sequence[Message], theirs: Sequence[Message], me: str, faults: list[str]) -> dict[str, Any]:
    """Compare both directions of a pair of logs; add to the faults."""
    ends = [{message.entry.sender, message.entry.receiver} for message in theirs]
    peers = set.intersection(*ends) - {me} if ends else set()
    if len(peers) != 1:
        faults.append("the other log is not that of one other party of this agreement")
        return {}
    (peer,) = peers
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
    """Return what went one way in each session, in order, without rounds, which the two ends may count differently."""
    sessions: dict[str, list[tuple[object, ...]]] = defaultdict(list)
    for message in messages:
        entry = message.entry
        if (entry.sender, entry.receiver) == (sender, receiver):
            sessions[message.session].append((entry.kind, entry.shape, message.tag))
    return sessions
