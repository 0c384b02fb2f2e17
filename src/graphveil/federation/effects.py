"""The effects of a party's program: to send a message, to wait for one, to save a finished round.

    body = yield Receive(sender, kind, shape)       the message's array
    yield Send(to, kind, body)                      nothing comes back
    yield Checkpoint(round, state)                  nothing comes back

A program is a generator of these and knows no network: `core.messages` runs all parties in one process, `transport`
runs one of them over the network.  A part of a program is a program too, run with ``yield from``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from torch import Tensor

from graphveil.errors import GraphveilError

T = TypeVar("T")


class PeerError(GraphveilError):
    """Another party is unreachable, silent for too long, or does not follow the protocol."""


@dataclass(frozen=True)
class Roster:
    """Who takes part, as one party sees it; `me`: its name, `holders`: all in the agreement's order."""

    me: str
    holders: tuple[str, ...]
    server: str = "server"

    @property
    def other_holders(self) -> tuple[str, ...]:
        return tuple(name for name in self.holders if name != self.me)


@dataclass(frozen=True)
class Send:
    """Hand a message to one party.

    Attributes:
        kind: a name in `core.messages.KINDS`.
        body: the array, of that kind's element type.
        name: of the publication that a priced message is, hexadecimal; the same name never stands for other data.
    """

    to: str
    kind: str
    body: Tensor
    name: str = ""


@dataclass(frozen=True)
class Receive:
    """Wait for a message of one party; `shape` holds -1 for a size that only the sender knows."""

    sender: str
    kind: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Checkpoint:
    """Everything before this round is finished and may be saved.

    Attributes:
        state: returns name -> array, what the party needs to resume from here.
        epsilon: of the party's publications so far.
    """

    round: int
    state: Callable[[], Mapping[str, Tensor]]
    epsilon: float = 0.0


Effect: TypeAlias = Send | Receive | Checkpoint
#: A program that returns a T; it is sent the array of each message that it waits for.
Program: TypeAlias = Generator[Effect, Tensor, T]
#: Called with a party's name and each of its effects, as they happen.
Watch: TypeAlias = Callable[[str, Effect], None]


def advance(program: Program[T], reply: Tensor | None) -> Effect:
    """Run a program to its next effect.

    Args:
        reply: the array of the message that it waits for; None where its last effect was not `Receive`.

    Raises:
        StopIteration: it has ended; `value` is what it returns.
    """
    return next(program) if reply is None else program.send(reply)


def with_changed_effects(program: Program[T], change: Callable[[Effect], Effect]) -> Program[T]:
    """Run a program, and replace its effects; return what it returns.

    Args:
        change: effect -> the effect in its place; replies go to the program as they are.
    """
    reply = None
    while True:
        try:
            effect = advance(program, reply)
        except StopIteration as stop:
            result: T = stop.value
            return result
        # Replies pass through untouched: `change` can watch or add to effects, but not forge a peer's message.
        reply = yield change(effect)
