"""A line's seconds, and what a plan takes them from: trips and the busiest direction, counted in simulated runs."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from graphveil.audit.federation import replay
from graphveil.audit.federation.predictions import EVERYBODY, Finished
from graphveil.audit.federation.replay import NODES, sources_of
from graphveil.errors import InputError
from graphveil.federation.core.messages import simulate
from graphveil.federation.core.mode import MODE_OF
from graphveil.federation.crypto.psi import align, alignment_bytes, alignment_trips
from graphveil.federation.effects import Effect, Receive, Roster, Send
from graphveil.federation.modes.programs import prediction_traffic, programs_of, traffic_of
from graphveil.federation.simulation import simulate_training
from graphveil.federation.transport.line import Line
from graphveil.privacy import SeededRandomness
from tests.federation.views import holdings, setting_of


def test_a_line_is_a_rate_and_a_delay() -> None:
    assert Line.parse("100Mbit/50ms") == Line(1e8, 0.05) == Line.parse(" 0.1gbit/0.05S ")
    assert Line.parse("512kbit/0ms") == Line(512_000.0, 0.0)
    assert Line(1e8, 0.05).seconds(12.5e6, 4) == pytest.approx(1.2)
    for text in (
        "",
        "100",
        "100Mbit",
        "50ms/100Mbit",
        "0Mbit/1ms",
        "-1Mbit/1ms",
        "1e3Mbit/1ms",
        "100Mbit/50",
        "infbit/1ms",
    ):
        with pytest.raises(InputError, match="RATE/DELAY of one direction, such as 100Mbit/50ms"):
            Line.parse(text)


def longest_chain(effects: Mapping[str, Sequence[Effect]]) -> int:
    """How many messages wait for each other."""
    left, trips = {name: deque(of) for name, of in effects.items()}, Counter[str]()
    mail: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
    while any(left.values()):
        for name, ahead in left.items():
            while ahead and not (isinstance(ahead[0], Receive) and not mail[ahead[0].sender, name]):
                effect = ahead.popleft()
                if isinstance(effect, Send):
                    mail[name, effect.to].append(trips[name] + 1)
                elif isinstance(effect, Receive):
                    trips[name] = max(trips[name], mail[effect.sender, name].popleft())
    return max(trips.values())


@pytest.mark.parametrize("mode", [mode for mode in MODE_OF if mode != "all-shares"])
@pytest.mark.parametrize(("holders", "epochs", "republish", "hops"), [(2, 4, 1, 1), (3, 4, 2, 2)])
def test_a_plan_counts_trips_and_the_busiest_direction(
    mode: str, holders: int, epochs: int, republish: int, hops: int
) -> None:
    by_holder = holdings(holders, 24, 3)
    setting = setting_of(by_holder, mode=mode, epochs=epochs, republish=republish, hops=hops, opened=True)
    effects: defaultdict[str, list[Effect]] = defaultdict(list)
    trained = simulate_training(
        setting, by_holder, randomness=SeededRandomness(1), watch=lambda name, effect: effects[name].append(effect)
    )
    # A session adds a trip a publication: no simulation waits until all have saved. Seals take as long.
    priced_rounds = setting.publications + (mode != "guesses")
    assert programs_of(setting).sizes.trips(setting) == longest_chain(effects) + (
        priced_rounds if mode != "shared-linear" else 0
    )
    sent = Counter[tuple[str, str]]()
    for entry in trained.transcript.entries:
        sent[entry.sender, entry.receiver] += entry.bytes
    head = by_holder["h1"].head
    assert head is not None
    planned = traffic_of(setting, 24, int(head.train.sum()), int(head.val.sum())).by_link()
    assert max(sent.values()) == max(planned.values())


@pytest.mark.parametrize("holders", [2, 3])
@pytest.mark.parametrize("mode", MODE_OF)
def test_a_plan_of_a_prediction_counts_each_byte_by_kind_and_trips(
    mode: str, holders: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished, effects = Finished.of(holders, 0, mode), defaultdict[str, list[Effect]](list)

    def watched(programs: Any, *, watch: Any) -> Any:
        def both(name: str, effect: Effect) -> None:
            effects[name].append(effect)
            watch(name, effect)

        return simulate(programs, watch=both)

    monkeypatch.setattr(replay, "simulate", watched)
    setting = finished.setting
    messages = finished.predict(sources_of(setting, 1, 1)).run.messages
    sent = Counter[str]()
    for _, _, message in messages:
        sent[message.kind] += message.body.numel() * message.body.element_size()
    # One count of ids for each holder goes to the server before the programs that are run here.
    plan = prediction_traffic(setting, EVERYBODY, EVERYBODY - NODES).by_kind()
    assert plan == sent | {"aligned": 8 * holders} and {*plan, "blinded-ids", "blinded-set"} == set(
        setting.mode.sent_later
    )
    # Nobody publishes before all have saved, which takes a trip that no simulation has; seals take as long.
    trips = longest_chain(effects) + (mode in ("individual", "paper", "guesses"))
    planned = programs_of(setting).sizes.trips_later(setting)
    assert planned == trips or (mode == "all-shares" and planned > trips)


@pytest.mark.parametrize("holders", [2, 4])
def test_bytes_and_trips_of_an_alignment(holders: int) -> None:
    names, effects = tuple(f"h{number}" for number in range(holders)), defaultdict[str, list[Effect]](list)
    ids = [str(number) for number in range(5)]
    programs = {name: align(Roster(name, names), ids, randomness=SeededRandomness(1)) for name in names}
    _, transcript = simulate(programs, watch=lambda name, effect: effects[name].append(effect))
    sent = Counter[tuple[str, str]]()
    for entry in transcript.entries:
        sent[entry.sender, entry.receiver] += entry.bytes
    assert alignment_bytes(holders, 5) == (transcript.bytes, max(sent.values()))
    assert alignment_trips(holders) == longest_chain(effects)
