"""The audit of a person at one holder: what is shipped passes; weaker noise, clips, roles and readings are found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.audit.federation_person import ROLES, audit_person
from graphveil.federation.core.person import PersonPrice
from graphveil.federation.core.publication import Guessing
from graphveil.federation.core.setting import Setting
from graphveil.federation.modes import guesses
from graphveil.federation.modes.private_network import private_guesses
from graphveil.mechanisms import RandomizedResponse
from graphveil.training import dp_sgd
from graphveil.training.noisy_updates import NoisyUpdates

_schedule, _add_noise, _clipped_sum = PersonPrice.schedule, NoisyUpdates.add_noise, dp_sgd.clipped_sum


def half_in_the_schedule(me: PersonPrice, people: int, multiplier: float | None = None) -> Any:
    """What is declared is accounted again."""
    schedule = _schedule(me, people, multiplier)
    return replace(schedule, noise_multiplier=schedule.noise_multiplier / 2)


def half_in_the_sampler(me: NoisyUpdates, totals: Tensor, randomness: Any) -> None:
    """Noise is measured."""
    before = totals.clone()
    _add_noise(me, totals, randomness)
    totals.copy_(((totals + before) / 2).round())


def unclipped(layers: Any, grid: Any, randomness: Any) -> Any:
    """A gradient is longest where noise has made the network sure of another class: in some of the runs."""
    return _clipped_sum(layers, replace(grid, clip=8 * grid.clip, cap=8 * grid.cap), randomness)


def everybody(rows: Tensor, nodes: int) -> Tensor:
    """Guesses of those who train: both prices would have to be paid."""
    return torch.arange(nodes)


def smoothed(features: Tensor, *rest: Any, **named: Any) -> Tensor:
    """Guesses that read a neighbour: the person is everybody's."""
    return private_guesses(torch.cat([features[:20], features[20:] + 3 * features[-1:]]), *rest, **named)


def greedy(features: Tensor, rows: Tensor, labels: Tensor, setting: Setting, **named: Any) -> Tensor:
    """Everybody trains, with the label that the data suggest: a person would pay twice."""
    own = features[:, : setting.classes].argmax(dim=1)
    own[rows] = labels
    return private_guesses(features, torch.arange(len(features)), own, setting, **named)


WEAK = (
    (PersonPrice, "schedule", half_in_the_schedule, "trains", "declare"),
    (NoisyUpdates, "add_noise", half_in_the_sampler, "trains", "have noise of 0.5"),
    (dp_sgd, "clipped_sum", unclipped, "trains", "hides a change of 1"),
    (guesses, "_others", everybody, "trains", "declare"),
    (guesses, "private_guesses", smoothed, "guessed", "hides a change of 1"),
    (guesses, "private_guesses", greedy, "guessed", "declare"),
    (
        Guessing,
        "response",
        property(lambda me: RandomizedResponse(epsilon=4.0, classes=me.classes)),
        "guessed",
        "declare",
    ),
)


@pytest.mark.parametrize("role", ROLES)
def test_a_person_who_trains_and_one_who_is_guessed_about_pass(role: str) -> None:
    """False-alarm rate 1e-6 each, seeds fixed."""
    for seed in range(2):
        found = audit_person(role, seed=seed)
        assert found.holds, found.notes
    # One guess shows the whole price; training shows its price to nobody in one draw.
    assert found.lower_bound == pytest.approx(2.0 if role == "guessed" else 0.0)


@pytest.mark.parametrize(
    ("owner", "name", "weak", "role", "note"), WEAK, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_weakened_copy_is_found(
    owner: Any, name: str, weak: Any, role: str, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise is measured with false-alarm rate 1e-6, seeds fixed; all else is compared exactly."""
    monkeypatch.setattr(owner, name, weak)
    found = [audit_person(role, seed=seed) for seed in range(3)]
    assert any(not one.holds and any(note in text for text in one.notes) for one in found)
