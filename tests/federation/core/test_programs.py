"""Programs of parties in one process: who waits for whom, what is refused, and what the transcript keeps."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.core.messages import checked_body, simulate
from graphveil.federation.effects import Checkpoint, Program, Receive, Send

WORDS = torch.tensor([[1, 2], [3, 4]])


def tells(to: str, body: Tensor, kind: str = "masked-sum") -> Program[str]:
    yield Send(to, kind, body)
    return "told"


def hears(sender: str, shape: tuple[int, ...], kind: str = "masked-sum") -> Program[list[int]]:
    body: Tensor = yield Receive(sender, kind, shape)
    return body.flatten().tolist()


def passes_on(sender: str, to: str) -> Program[None]:
    for number in (1, 2):
        body = yield Receive(sender, "masked-sum", (-1, 2))
        yield Checkpoint(number, dict)
        yield Send(to, "masked-sum", body + number)


def asks_twice(body: Tensor) -> Program[int]:
    total = 0
    for _ in range(2):
        yield Send("b", "masked-sum", body)
        total += int((yield Receive("c", "masked-sum", (-1, 2))).sum())
    return total


def test_messages_arrive_in_order_whoever_starts() -> None:
    programs = {"b": passes_on("a", "c"), "c": passes_on("b", "a"), "a": asks_twice(WORDS)}
    results, transcript = simulate(programs)
    assert results == {"a": (10 + 8) + (10 + 16), "b": None, "c": None}
    rows = [(entry.round, entry.sender, entry.receiver) for entry in transcript.entries]
    assert rows == [(0, "a", "b"), (1, "b", "c"), (1, "c", "a"), (0, "a", "b"), (2, "b", "c"), (2, "c", "a")]
    assert {(entry.shape, entry.bytes) for entry in transcript.entries} == {((2, 2), 32)}


def test_a_sender_that_goes_on_computing_does_not_change_what_it_sent() -> None:
    def sends_then_overwrites() -> Program[None]:
        body = WORDS.clone()
        yield Send("b", "masked-sum", body)
        body.zero_()

    results, _ = simulate({"a": sends_then_overwrites(), "b": hears("a", (2, 2))})
    assert results["b"] == [1, 2, 3, 4]


def test_parties_that_wait_for_each_other_are_all_named() -> None:
    with pytest.raises(InputError, match="simulation: messages that nobody sends: a waits for") as refusal:
        simulate({"a": hears("b", (1,)), "b": hears("a", (1,), "correction")})
    assert "a waits for masked-sum of b; b waits for correction of a" in str(refusal.value)


def test_a_message_that_nobody_reads_is_an_error_of_the_protocol() -> None:
    def nothing() -> Program[None]:
        return
        yield

    with pytest.raises(InputError, match="simulation: messages that nobody reads: masked-sum from a to b"):
        simulate({"a": tells("b", WORDS), "b": nothing()})


@pytest.mark.parametrize("to", ["a", "nobody"])
def test_a_message_to_oneself_or_to_nobody_is_refused(to: str) -> None:
    with pytest.raises(InputError, match=f"message 'masked-sum' to '{to}'; allowed: a, b"):
        simulate({"a": tells(to, WORDS), "b": hears("a", (2, 2))})


@pytest.mark.parametrize(
    ("body", "kind"), [(WORDS, "gossip"), (WORDS.float(), "masked-sum"), (WORDS.to(torch.int32), "masked-sum")]
)
def test_only_listed_kinds_of_their_own_type_cross_the_wire(body: Tensor, kind: str) -> None:
    with pytest.raises(InputError, match=kind):
        simulate({"a": tells("b", body, kind), "b": hears("a", (2, 2))})


@pytest.mark.parametrize("shape", [(4,), (2, 3), (3, -1), (2, 2, 1), ()])
def test_another_shape_than_the_reader_waits_for_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError):
        simulate({"a": tells("b", WORDS), "b": hears("a", shape)})
    with pytest.raises(InputError, match="a: received message 'correction'; allowed: masked-sum"):
        checked_body(Receive("a", "masked-sum", (2, 2)), "correction", WORDS)
