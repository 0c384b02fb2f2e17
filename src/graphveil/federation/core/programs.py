"""Parties as programs: generators that ask for messages to be sent and received (see `effects`)."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.core.messages import KINDS, Entry, Transcript, require_kind, require_shape
from graphveil.federation.effects import Checkpoint, Program, Receive, Send, Watch, advance

#: (sender, receiver) -> the messages under way, (kind, body) each, oldest first.
_Mail: TypeAlias = dict[tuple[str, str], deque[tuple[str, Tensor]]]


def simulate(programs: Mapping[str, Program[Any]], *, watch: Watch | None = None) -> tuple[dict[str, Any], Transcript]:
    """Run all parties to their ends in one process, deterministically; return what each returned, and the transcript.
    Raises InputError for parties that wait for each other, by name, or for a message that is not what was expected.

    Args:
        watch: called with a party's name and each of its effects, for progress and tests.
    """
    mail: _Mail = defaultdict(deque)
    results: dict[str, Any] = {}
    waiting: dict[str, Receive] = {}
    entries: list[Entry] = []
    rounds = dict.fromkeys(programs, 0)

    def go_on(name: str, message: Tensor | None) -> None:
        waiting.pop(name, None)
        while True:
            try:
                effect = advance(programs[name], message)
            except StopIteration as stop:
                results[name] = stop.value
                return
            message = None
            if watch is not None:
                watch(name, effect)
            if isinstance(effect, Receive):
                waiting[name] = effect
                return
            if isinstance(effect, Checkpoint):
                rounds[name] = effect.round
            else:
                entries.append(_delivered(name, effect, rounds[name], programs, mail))

    for name in programs:
        go_on(name, None)
    while len(results) < len(programs):
        # The first that can go on, in a fixed order: so one seed gives one transcript, whatever the machine.
        ready = next((name for name, expected in waiting.items() if mail[expected.sender, name]), None)
        if ready is None:
            stuck = "; ".join(
                f"{name} waits for {expected.kind} of {expected.sender}" for name, expected in waiting.items()
            )
            raise InputError(f"messages that nobody sends: {stuck}", where="simulation")
        expected = waiting[ready]
        go_on(ready, checked_body(expected, *mail[expected.sender, ready].popleft()))
    left = [f"{kind} from {sender} to {to}" for (sender, to), box in mail.items() for kind, _ in box]
    # A message that nobody reads is still a message that somebody could read: it must be in the protocol or not sent.
    if left:
        raise InputError(f"messages that nobody reads: {', '.join(left)}", where="simulation")
    return results, Transcript.of(entries)


def checked_body(expected: Receive, kind: str, body: Tensor) -> Tensor:
    """Return the body of a message, or raise InputError where kind, type or shape are not the expected ones."""
    if kind != expected.kind:
        raise InputError(f"received message {kind!r}", where=expected.sender, allowed=expected.kind)
    require_shape(expected, body)
    return body


def _delivered(name: str, sent: Send, number: int, programs: Collection[str], mail: _Mail) -> Entry:
    require_kind(sent.kind, sent.body)
    if sent.to not in programs or sent.to == name:
        raise InputError(f"message {sent.kind!r} to {sent.to!r}", allowed=", ".join(programs))
    # A copy, as a wire makes one: a sender that goes on computing in place must not change what it has sent.
    mail[name, sent.to].append((sent.kind, sent.body.clone()))
    size = sent.body.numel() * sent.body.element_size()
    return Entry(number, name, sent.to, sent.kind, tuple(sent.body.shape), size, KINDS[sent.kind].reveals)
