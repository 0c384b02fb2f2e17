"""Mode "guesses": what leaves, what it costs, what is learnt from it, and that nothing else is sent."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor

from graphveil.errors import BudgetError, InputError
from graphveil.federation.core.guarantees import ledger_of
from graphveil.federation.core.messages import simulate
from graphveil.federation.core.publication import Guessing
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import RunContext
from graphveil.federation.effects import Checkpoint, Effect, Receive, Send
from graphveil.federation.modes.guesses import GuessPublisher, guessing_holder
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.modes.local_network import LocalNetwork, guess_chances, guess_loss, label_loss, train_local
from graphveil.federation.simulation import simulate_training
from graphveil.privacy import SeededRandomness
from tests.federation.modes.test_private_network import CLASSES, N, head_of
from tests.federation.modes.test_private_network import federation as people


def federation(holders: int = 2, **changes: Any) -> tuple[Setting, dict[str, Holding]]:
    plain = {"unit": "publication", "hops": 2, "epochs": 60, "learning_rate": 0.05, "epsilon": math.inf}
    return people(holders, **{**plain, **changes})


def test_what_was_drawn_is_kept_before_it_leaves_and_a_restart_sends_and_pays_the_same() -> None:
    """A fresh draw after an interruption would be a second report of the same guesses."""
    setting, by_holder = federation(epsilon=1.0)
    states: dict[int, dict[str, Tensor]] = {}
    sent: list[Tensor] = []

    def watch(name: str, effect: Effect) -> None:
        if name == "h2" and isinstance(effect, Checkpoint):
            states[effect.round] = dict(effect.state())
        if name == "h2" and isinstance(effect, Send):
            assert 1 in states, "a guess left before it was kept"
            sent.append(effect.body)

    simulate_training(setting, by_holder, randomness=SeededRandomness(3), watch=watch)
    again = guessing_holder(RunContext("h2", setting, SeededRandomness(4), done=1, state=states[1]), by_holder["h2"])
    effect = next(again)
    assert isinstance(effect, Send) and torch.equal(effect.body, sent[0])
    over = guessing_holder(RunContext("h2", setting, SeededRandomness(4), done=2, state=states[2]), by_holder["h2"])
    with pytest.raises(StopIteration) as ended:
        next(over)
    assert ended.value.value.publisher.spent == 1.0


def test_reports_follow_the_law_that_they_are_paid_for() -> None:
    """Kept reports of 30,000 guesses against their probability: false alarm 1e-6; twice the epsilon is refused."""
    setting, _ = federation(epsilon=1.0)
    guesses = torch.arange(30_000) % CLASSES
    publisher = GuessPublisher(setting)
    publisher.randomize(guesses, randomness=SeededRandomness(5))
    unchanged = int((publisher.publish() == guesses).sum())
    low, high = (stats.binom.ppf(q, len(guesses), math.e / (math.e + 2)) for q in (5e-7, 1 - 5e-7))
    assert low <= unchanged <= high
    assert stats.binom.ppf(5e-7, len(guesses), math.exp(2) / (math.exp(2) + 2)) > unchanged


def test_one_publication_costs_epsilon_and_no_delta() -> None:
    setting, by_holder = federation(epsilon=2.0, epochs=5)
    trained = simulate_training(setting, by_holder, randomness=SeededRandomness(3))
    assert (setting.publications, setting.rounds, setting.guessing.per_round) == (1, 2, 2.0)
    assert setting.guessing.keep == pytest.approx(math.exp(2) / (math.exp(2) + 2), rel=1e-12)
    assert trained.holders["h2"].publisher.spent == 2.0
    assert trained.holders["h1"].publisher.spent == 0.0  # the label holder's own rows go nowhere
    ledger = ledger_of(setting, 1)
    assert ledger.total("rows") == (2.0, 0.0) and ledger_of(setting, 0).total("rows") == (0.0, 0.0)
    assert dict(ledger.spends[0].parameters) == {"publications": 1, "classes": 3, "keep": setting.guessing.keep}
    unsent = GuessPublisher(setting)  # drawn once, whether or not it left
    unsent.randomize(torch.zeros(N, dtype=torch.int64), randomness=SeededRandomness(1))
    for publisher in (trained.holders["h2"].publisher, unsent):
        with pytest.raises(BudgetError, match="publication 2 of 1"):
            publisher.randomize(torch.zeros(N, dtype=torch.int64), randomness=SeededRandomness(1))


def test_how_often_a_holder_is_right_is_found_behind_both_randomizations() -> None:
    """30,000 pairs: errors of 0.05 have chance below 1e-6; ignoring the response is off by more."""
    confusion = torch.tensor([[0.8, 0.15, 0.05], [0.1, 0.6, 0.3], [0.2, 0.1, 0.7]])
    generator = torch.Generator().manual_seed(2)
    response, channel = Guessing(2.0, 3).channel.float(), Guessing(1.5, 3).channel.float()
    true = torch.randint(0, 3, (30_000,), generator=generator)

    def through(matrix: Tensor, values: Tensor) -> Tensor:
        return torch.multinomial(matrix[values], 1, generator=generator).squeeze(1)

    heard, reports = through(channel, true), through(response, through(confusion, true))
    want = confusion @ response
    assert float((guess_chances(reports, heard, response, channel) - want).abs().max()) < 0.05
    wrong = guess_chances(reports, heard, response, torch.eye(3))
    assert float((wrong - want).abs().max()) > 0.05
    nothing = torch.zeros(0, dtype=torch.int64)
    assert torch.allclose(guess_chances(nothing, nothing, response, channel).sum(dim=1), torch.ones(3))


def test_the_loss_of_guesses_is_their_likelihood() -> None:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(6, 3, generator=generator)
    chances = [torch.rand(3, 3, generator=generator).softmax(dim=1) for _ in range(2)]
    guesses = [torch.randint(0, 3, (6,), generator=generator) for _ in range(2)]
    each = [
        sum(
            float(logits[row].softmax(dim=0)[c] * chances[0][c, guesses[0][row]] * chances[1][c, guesses[1][row]])
            for c in range(3)
        )
        for row in range(6)
    ]
    want = -sum(map(math.log, each)) / 6
    assert float(guess_loss(logits, guesses, chances)) == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("person", [39, 35])
def test_who_neither_trains_nor_has_connections_moves_one_guess_alone(person: int) -> None:
    """The unit that a guess is priced for: a mean or a length over all rows would carry a person into every guess."""
    generator = torch.Generator().manual_seed(1)
    rows, features = torch.arange(10), torch.rand(40, 5, generator=generator)
    labels = torch.randint(0, CLASSES, (len(rows),), generator=generator)
    ring = torch.stack([torch.arange(35), (torch.arange(35) + 1) % 35])  # the last five have no connections

    def loss(logits: Tensor) -> Tensor:
        return label_loss(logits[rows], labels, torch.eye(CLASSES))

    def logits(features: Tensor) -> Tensor:
        network = LocalNetwork(features, torch.cat([ring, ring.flip(0)], dim=1), CLASSES, hops=2)
        train_local(network, rows, loss, epochs=5, rate=0.05, decay=0.0)
        return network().detach()

    changed = features.clone()
    changed[person] = torch.tensor([9.0, 0.0, 0.0, 0.0, 0.0])
    moved = (logits(changed) != logits(features)).any(dim=1)
    assert moved.nonzero().flatten().tolist() == [person]
    # Somebody who trains moves the weights, and with them every guess: another unit.
    changed[0] = 1.0
    assert bool((logits(changed) != logits(features)).any(dim=1)[1:].all())


@pytest.mark.parametrize(("value", "kind"), [(CLASSES, "guesses"), (-1, "guesses"), (CLASSES, "training-labels")])
def test_a_number_that_is_no_class_is_refused(value: int, kind: str) -> None:
    setting, by_holder = federation(epochs=1)
    head = head_of(by_holder)
    randomness, generator = SeededRandomness(1), torch.Generator()
    head.open(setting, randomness=randomness, generator=generator)

    def wrong(name: str) -> Any:
        if name == "h2":
            yield Receive("h1", "training-labels", (N,))
        yield Send("h1" if name == "h2" else "h2", kind, torch.full((N,), value))

    liar = "h2" if kind == "guesses" else "h1"
    honest = "h1" if liar == "h2" else "h2"
    context = RunContext(honest, setting, randomness, generator)
    programs = {honest: guessing_holder(context, by_holder[honest]), liar: wrong(liar)}
    with pytest.raises(InputError, match=f"{liar}: a number that is not a class"):
        simulate(programs)


def test_without_validation_nodes_nothing_is_sent() -> None:
    setting, by_holder = federation()
    head, own = head_of(by_holder), by_holder["h1"]
    without = LabelHead(head.labels, head.train, head.val & False, head.test)
    by_holder["h1"] = Holding(own.features, own.edge_index, 1.0, without)
    with pytest.raises(InputError, match="no validation nodes"):
        simulate_training(setting, by_holder, randomness=SeededRandomness(3))
