"""Record and replay of a holder's program where the unit is a person: one account over training and guesses.

run      the program of one holder that guesses; labels come from the label holder without noise
change   a person's features, their own list where lists are read, and their label where they train
frozen   noisy votes, noisy gradients and randomized guesses
equal    number, order, kinds and sizes of all messages, every body, and every checkpoint
moved    votes and one clipped gradient of a sum, each within its bound, or one guess; never both
account  votes and gradients that moved declare what the accountant charges for both together
noise    of votes, and of all gradients together, measured and not read off the settings
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from scipy import stats
from torch import Tensor

from graphveil.aggregation import PerturbedSum
from graphveil.audit.hooks import DESCENT, SUMS, Summed, all_taps, exact_sums
from graphveil.audit.replay import Evidence, Pipeline, audit_replay
from graphveil.audit.verdict import Audit
from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.core.states import RunContext
from graphveil.federation.effects import Checkpoint, Receive, Send, advance
from graphveil.federation.modes.guesses import guessing_holder
from graphveil.federation.modes.holder import Holding
from graphveil.privacy import ChangedSamples, Hops, Randomness, gaussian_epsilon, pipeline_epsilon
from graphveil.training.noisy_updates import NoisyUpdates

_NODES, _COLUMNS, _CLASSES, _TRAINING = 60, 6, 3, 20
#: D, of the audits in which connections are read.
DEGREE = 5
#: Who changes: one who trains, or one who is guessed about.
ROLES = ("trains", "guessed")
_FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class Person:
    """One holder's data in one of two worlds: its features and edges, and the labels that it receives, int64 [n]."""

    holding: Holding
    labels: Tensor


def audit_person(role: str, *, seed: int = 0, degree_bound: int = 0) -> Audit:
    """Replay a holder's program on two data sets that differ in one person.

    Args:
        role: of the person, one of ROLES.
        degree_bound: D; 0: connections are not read.
    """
    setting = Setting.of(
        (Member("holder1", _COLUMNS, True), Member("holder2", _COLUMNS)),
        _CLASSES,
        mode="guesses",
        unit="person",
        epsilon=2.0,
        degree_bound=degree_bound,
    )
    measured = _Measured(setting.privacy.delta)
    weighs: dict[object, Callable[..., Evidence]] = {
        NoisyUpdates: measured.weigh_gradient,
        PerturbedSum: measured.weigh_votes,
    }
    taps = tuple(replace(tap, weigh=weighs.get(tap.owner, tap.weigh)) for tap in all_taps())
    audit = audit_replay(
        Pipeline(
            target=f"federation guesses, one person who {'trains' if role == 'trains' else 'is guessed about'}"
            f"{', with edges' if degree_bound else ''}",
            run=lambda person, randomness: _run(setting, person, randomness),
            first=person_data(),
            second=person_data(role),
            epsilon=setting.privacy.epsilon,
            delta=setting.privacy.delta,
            outcome=lambda seen: (
                {"number of messages and checkpoints": len(seen)}
                | {f"step {n}": message for n, message in enumerate(seen)}
            ),
            taps=taps,
        ),
        seed=seed,
    )
    audit = _with_noise(audit, "gradients", measured.gradient_noise)
    return _with_noise(audit, "votes", measured.vote_noise) if degree_bound else audit


@dataclass(frozen=True)
class _Measured:
    """The noise of votes and of private gradients; what moved declares the price of both together, once."""

    delta: float
    votes: list[Hops] = field(default_factory=list)
    vote_noise: list[Tensor] = field(default_factory=list)
    gradient_noise: list[Tensor] = field(default_factory=list)
    _trained: list[bool] = field(default_factory=list)

    def weigh_votes(self, mechanism: PerturbedSum, answer: Tensor, first: Summed, second: Summed) -> Evidence:
        """Weigh as `SUMS` does, and take note of the noise and of its price.

        Args:
            answer: the first run's noisy votes.
            first, second: edges, rows and hop of the two runs.
        """
        self.vote_noise.append((answer.double() - torch.from_numpy(exact_sums(mechanism, first))) / mechanism.sigmas[0])
        evidence = SUMS.weigh(mechanism, answer, first, second)
        if not evidence.change:
            return evidence
        # In units of the noise: a part of a pipeline of which one standard deviation is 1.
        self.votes.append(Hops(count=1, sensitivity=mechanism.mu, name=f"votes {len(self.votes)}"))
        return replace(evidence, declared=gaussian_epsilon(1 / mechanism.mu, self.delta))

    def weigh_gradient(self, mechanism: NoisyUpdates, answer: Tensor, first: Tensor, second: Tensor) -> Evidence:
        """Measure how far a sum moved; the first that moved declares the whole training.

        Args:
            first, second: the sums of the two runs.
        """
        schedule = mechanism.schedule
        self.gradient_noise.append((answer.double() - first) / (schedule.noise_multiplier * schedule.grid.cap))
        change = DESCENT.weigh(mechanism, answer, first, second).change
        if change == 0.0 or any(self._trained):
            return Evidence(change)
        self._trained.append(True)
        part = ChangedSamples(steps=schedule.steps, rate=schedule.rate, samples=1)
        noise = {part.name: (schedule.noise_multiplier,)} | {sums.name: (1.0,) for sums in self.votes}
        # Votes are drawn before the first gradient, and have declared their own part of what both cost together.
        total = pipeline_epsilon([part, *self.votes], noise, self.delta)
        return Evidence(change, total - sum(gaussian_epsilon(1 / sums.sensitivity, self.delta) for sums in self.votes))


def _with_noise(audit: Audit, of: str, noise: Sequence[Tensor]) -> Audit:
    squares, count = math.fsum(float(part.square().sum()) for part in noise), sum(part.numel() for part in noise)
    measured = f"{count} numbers of {of} have noise of {math.sqrt(squares / max(count, 1)):.3f} of what is declared"
    enough = count > 0 and squares >= float(stats.chi2.ppf(_FALSE_ALARM, count))
    return replace(
        audit,
        verdict=audit.verdict if enough else "broken",
        false_alarm=audit.false_alarm + _FALSE_ALARM,
        notes=(*audit.notes, measured) if enough else (measured, *audit.notes),
    )


def person_data(changed: str = "") -> Person:
    """Return what a holder has and receives; `changed`: the role of a person who has another record, "" for nobody."""
    generator = torch.Generator().manual_seed(23)
    x = (2 * torch.rand(_NODES, _COLUMNS, generator=generator) - 1).round(decimals=3)
    labels = torch.randint(0, _CLASSES, (_NODES,), generator=generator)
    # The person is everybody's neighbour: a program that read connections would move all others' guesses.
    ends = torch.arange(1, _NODES)
    pairs = torch.cat([torch.stack([0 * ends, ends]), torch.stack([ends - 1, 0 * ends + _NODES - 1])[:, 1:]], dim=1)
    person = {"": None, "trains": 0, "guessed": _NODES - 1}[changed]
    if person is not None:
        # The opposite person: a gradient that turns round, and a guess that changes.
        x[person] = -x[person]
        labels[person] = (labels[person] + 1) % _CLASSES
    received = torch.where(torch.arange(_NODES) < _TRAINING, labels, -1)
    edges = torch.cat([pairs, pairs.flip(0)], dim=1)
    # Each of both roles' persons lists one half of all others, and with another record the other half; who lists them
    # stays.
    halves = [(edges[0] == node) & ((edges[1] < _NODES // 2) != (node != person)) for node in (0, _NODES - 1)]
    return Person(Holding(x, edges[:, ~(halves[0] | halves[1])], 1.0), received)


def _run(setting: Setting, person: Person, randomness: Randomness) -> tuple[Any, ...]:
    program = guessing_holder(RunContext("holder2", setting, randomness), person.holding)
    reply: Tensor | None = None
    seen: list[tuple[Any, ...]] = []
    while True:
        try:
            effect = advance(program, reply)
        except StopIteration:
            return tuple(seen)
        reply = person.labels if isinstance(effect, Receive) else None
        if isinstance(effect, Send):
            seen.append((effect.to, effect.kind, effect.body.clone()))
        elif isinstance(effect, Checkpoint):
            seen.append((effect.round, dict(effect.state()), effect.epsilon))
