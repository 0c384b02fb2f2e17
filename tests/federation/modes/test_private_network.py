"""Mode "guesses" with unit person: who pays for what, what leaves, what is read, and when it is charged."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.errors import BudgetError, InputError
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.federation.core.person import SAMPLING_RATE, STEPS, PersonPrice
from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.core.states import RunContext
from graphveil.federation.effects import Checkpoint, Effect, Receive, Send
from graphveil.federation.modes.guesses import GuessPublisher, guessing_holder, private_guesses
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.modes.programs import traffic_of
from graphveil.federation.simulation import simulate_training
from graphveil.privacy import ChangedSamples, SeededRandomness, gaussian_epsilon, pipeline_epsilon
from graphveil.privacy.statement.observer import LABEL_HOLDER
from graphveil.privacy.statement.unit import PERSON_AT_HOLDER
from tests.federation.views import Recorder

N, CLASSES, COLUMNS, TRAINING = 300, 3, 12, 200
NONE = torch.zeros(N, 0)


def federation(holders: int = 2, **changes: Any) -> tuple[Setting, dict[str, Holding]]:
    """Holders "h1" (the labels) .. whose columns all tell of the classes."""
    generator = torch.Generator().manual_seed(5)
    labels = torch.randint(0, CLASSES, (N,), generator=generator)
    train, val = torch.arange(N) < TRAINING, (torch.arange(N) >= TRAINING) & (torch.arange(N) < 250)
    members, by_holder = [], {}
    for number in range(1, holders + 1):
        centres = torch.randn(CLASSES, COLUMNS, generator=generator)
        features = centres[labels] + torch.randn(N, COLUMNS, generator=generator)
        pairs = torch.randint(0, N, (2, 400), generator=generator)
        head = LabelHead(labels, train, val, ~(train | val)) if number == 1 else None
        by_holder[f"h{number}"] = Holding(features, torch.cat([pairs, pairs.flip(0)], 1), 10.0, head)
        members.append(Member(f"h{number}", COLUMNS, number == 1))
    plain: dict[str, Any] = {"mode": "guesses", "unit": "person", "hops": 1, "epochs": 40, "epsilon": 4.0}
    return Setting.of(tuple(members), CLASSES, **{**plain, **changes}), by_holder


def head_of(by_holder: dict[str, Holding]) -> LabelHead:
    head = by_holder["h1"].head
    assert head is not None
    return head


def effects_of(setting: Setting, data: dict[str, Holding], given: Tensor | None = None, seed: int = 3) -> list[Effect]:
    """What the program of "h2" asks for, on labels of a label holder that follows no protocol."""
    head = head_of(data)
    labels = torch.where(head.train, head.labels, -1) if given is None else given
    program = guessing_holder(RunContext("h2", setting, SeededRandomness(seed)), data["h2"])
    seen, reply = [], None
    while True:
        try:
            effect = next(program) if reply is None else program.send(reply)
        except StopIteration:
            return seen
        seen.append(effect)
        reply = labels if isinstance(effect, Receive) else None


def sent_by(effects: list[Effect]) -> Tensor:
    (sent,) = (effect.body for effect in effects if isinstance(effect, Send))
    return sent


def test_no_guess_of_anybody_who_trains_is_sent_and_nothing_else() -> None:
    setting, by_holder = federation(3)
    seen = Recorder()
    trained = simulate_training(setting, by_holder, randomness=SeededRandomness(3), watch=seen.watch)
    assert [(name, message.to, message.kind, tuple(message.body.shape)) for name, message in seen.sent] == [
        ("h1", "h2", "training-labels", (N,)),
        ("h1", "h3", "training-labels", (N,)),
        ("h2", "h1", "guesses", (N - TRAINING,)),
        ("h3", "h1", "guesses", (N - TRAINING,)),
    ]
    counted = traffic_of(setting, N, TRAINING)
    assert trained.transcript.bytes == counted.total - 8 * len(by_holder)  # a simulation aligns nobody
    alone, both = head_of(by_holder).history  # the seed is fixed: 200 who train are learnt from at epsilon 4
    assert both["val_loss"] < alone["val_loss"] and both["val_accuracy"] >= alone["val_accuracy"]


def test_connections_are_not_read_and_a_guess_reads_its_own_row_alone() -> None:
    setting, by_holder = federation()
    sent = sent_by(effects_of(setting, by_holder))
    by_holder["h2"] = Holding(by_holder["h2"].features, by_holder["h2"].edge_index[:, :0], 10.0)
    assert torch.equal(sent_by(effects_of(setting, by_holder)), sent)
    head = head_of(by_holder)
    rows, features = head.train.nonzero().squeeze(1), torch.as_tensor(by_holder["h2"].features)
    other = features.clone()
    other[-1] = -50 * features[-1]
    first, second = (
        private_guesses(x, NONE, rows, head.labels[rows], setting, randomness=SeededRandomness(4))[0]
        for x in (features, other)
    )
    assert (first != second).nonzero().flatten().tolist() in ([], [N - 1])


def test_the_whole_price_is_on_disk_before_labels_are_waited_for_and_training_asks_for_it() -> None:
    setting, by_holder = federation()
    first, second, *rest = effects_of(setting, by_holder)
    assert isinstance(first, Checkpoint) and (first.round, first.epsilon) == (0, 4.0)
    assert bool(first.state()["guesses/paid"]) and isinstance(second, Receive)
    assert all(effect.epsilon == 4.0 for effect in rest if isinstance(effect, Checkpoint))
    with pytest.raises(BudgetError, match="not paid for"):
        GuessPublisher(setting).require_charged()
    unpaid = {"guesses/count": torch.tensor([0]), "guesses/paid": torch.tensor([0])}
    program = guessing_holder(RunContext("h2", setting, SeededRandomness(3), state=unpaid), by_holder["h2"])
    next(program)
    with pytest.raises(BudgetError, match="not paid for"):
        program.send(torch.where(head_of(by_holder).train, head_of(by_holder).labels, -1))


def test_a_restart_sends_what_was_drawn_or_trains_anew_and_is_charged_once() -> None:
    """Before anything was drawn nothing has left; what the second attempt sends is kept before it leaves."""
    setting, by_holder = federation()
    effects = effects_of(setting, by_holder)
    drawn = next(effect for effect in effects if isinstance(effect, Checkpoint) and effect.round == 1)
    again = guessing_holder(
        RunContext("h2", setting, SeededRandomness(9), done=1, state=drawn.state()), by_holder["h2"]
    )
    effect = next(again)
    assert isinstance(effect, Send) and torch.equal(effect.body, sent_by(effects))
    after = next(again)
    assert isinstance(after, Checkpoint) and after.epsilon == 4.0
    begun = next(guessing_holder(RunContext("h2", setting, SeededRandomness(3)), by_holder["h2"]))
    assert isinstance(begun, Checkpoint)
    anew = guessing_holder(RunContext("h2", setting, SeededRandomness(8), state=begun.state()), by_holder["h2"])
    assert isinstance(next(anew), Receive)
    drawn = anew.send(torch.where(head_of(by_holder).train, head_of(by_holder).labels, -1))
    assert isinstance(drawn, Checkpoint) and (drawn.round, drawn.epsilon) == (1, 4.0)
    sent = next(anew)
    assert isinstance(sent, Send) and torch.equal(sent.body, drawn.state()["guesses/sent"])


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_training_costs_what_is_declared_and_hardly_less(epsilon: float) -> None:
    """By the accountant, checked by Renyi accounting and by the same number of steps without sampling."""
    price = PersonPrice(epsilon, 1e-4, CLASSES, COLUMNS)
    spent, delta = price.trained_price
    assert 0.999 * epsilon < spent <= epsilon and delta <= 1e-4
    noise = {price.training.name: (price.multiplier,)}
    assert pipeline_epsilon([price.training], noise, 1e-4, accountant="rdp") > spent
    # Sampling with probability 0.25 saves at most its factor, and all steps together cost more than one does.
    assert spent < gaussian_epsilon(price.multiplier, 1e-4, 2 * math.sqrt(STEPS))
    assert spent > gaussian_epsilon(price.multiplier, 1e-4, 2 * SAMPLING_RATE * math.sqrt(STEPS) / 2)
    half = {price.training.name: (price.multiplier / 2,)}
    assert pipeline_epsilon([price.training], half, 1e-4) > 2 * epsilon
    assert price.training == ChangedSamples(steps=STEPS, rate=SAMPLING_RATE, samples=1)
    schedule = price.schedule(80)
    assert (schedule.steps, schedule.rate, schedule.expected_batch) == (STEPS, SAMPLING_RATE, 20.0)
    assert (schedule.noise_multiplier, schedule.clip) == (price.multiplier, 1.0)
    assert (price.per_round, price.spent(0), price.spent(1), price.rounds) == (epsilon, 0.0, epsilon, 1)


def test_one_person_is_what_the_guarantee_names_and_the_ledger_charges() -> None:
    setting, _ = federation()
    guarantee = guarantee_of(setting)
    assert (guarantee.unit, guarantee.relation) == (PERSON_AT_HOLDER, "replace")
    assert (guarantee.epsilon, guarantee.delta) == (4.0, 1e-4)
    assert guarantee.against == LABEL_HOLDER and guarantee.protects
    for code in ("trains-or-is-guessed", "connections-unread", "one-id-a-person", "label-holder-open", "labels-given"):
        assert guarantee.assumption(code)
    assert not guarantee.assumption("training-moves") and not guarantee.assumption("neighbours-move")
    ledger = ledger_of(setting, 1)
    assert ledger.total("people") == pytest.approx((4.0, 1e-4), rel=1e-9)
    assert ledger_of(setting, 0).total("people") == (0.0, 0.0)
    assert dict(ledger.spends[0].parameters)["multiplier"] == setting.person_price.multiplier


def test_features_that_are_no_numbers_move_nobody_elses_guess() -> None:
    """A sample with NaN adds nothing to a sum of clipped gradients, and is guessed about alone."""
    setting, by_holder = federation()
    head, features = head_of(by_holder), torch.as_tensor(by_holder["h2"].features).clone()
    rows = head.train.nonzero().squeeze(1)
    features[0], features[N - 1] = math.nan, math.inf
    guesses, _ = private_guesses(features, NONE, rows, head.labels[rows], setting, randomness=SeededRandomness(4))
    assert guesses.shape == (N,) and 0 <= int(guesses.min()) <= int(guesses.max()) < CLASSES
    without, _ = private_guesses(
        features, NONE, rows[1:], head.labels[rows[1:]], setting, randomness=SeededRandomness(4)
    )
    assert without.shape == guesses.shape


def test_the_label_holder_may_choose_who_trains_and_with_which_labels_and_pays_nothing_for_anybody() -> None:
    """The proof holds for any: a person alone in training, and everybody but one."""
    setting, by_holder = federation()
    for train in (torch.arange(N) == 7, torch.arange(N) != 7):
        given = torch.where(train, torch.full((N,), CLASSES - 1), -1)
        assert sent_by(effects_of(setting, by_holder, given)).shape == (N - int(train.sum()),)
    with pytest.raises(InputError, match="no node trains"):
        effects_of(setting, by_holder, torch.full((N,), -1))
    head = head_of(by_holder)
    both = LabelHead(head.labels, head.train, head.val | head.train, head.test)
    by_holder["h1"] = Holding(by_holder["h1"].features, by_holder["h1"].edge_index, 10.0, both)
    with pytest.raises(InputError, match="trains and validates"):
        simulate_training(setting, by_holder, randomness=SeededRandomness(3))
