"""Record and replay of a holder's program where the unit is a person: one account over training and guesses.

run      the program of one holder that guesses; labels come from the label holder as they are
change   a person's features, the own list where lists are read, and the label where the person trains
frozen   noisy votes, noisy gradients and randomized guesses
equal    number, order, kinds and sizes of all messages, every body, and all that is kept
moved    votes and one clipped gradient of a sum, by what their bounds say at most, or one guess; never both
account  votes and gradients that moved declare what the accountant charges for both together
noise    of votes, and of all gradients together, measured and not read off the settings
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from scipy import stats
from torch import Tensor

from graphveil.aggregation import PerturbedSum
from graphveil.audit.hooks import DescentTap, Summed, SumTap, all_taps, exact_sums
from graphveil.audit.replay import Arguments, Evidence, Pipeline, Question, audit_replay
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
        role: of the person, one of ROLES. seed: of both runs' randomness.
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
    votes = _VotesTap(setting.privacy.delta)
    training = _TrainingTap(setting.privacy.delta, votes)
    common_taps = tuple(tap for tap in all_taps() if tap.owner not in (NoisyUpdates, PerturbedSum))
    audit = audit_replay(
        Pipeline(
            target=f"federation guesses, one person who {'trains' if role == 'trains' else 'is guessed about'}"
            f"{', with edges' if degree_bound else ''}",
            run=lambda person, randomness: _run(setting, person, randomness),
            first=made_person(),
            second=made_person(role),
            epsilon=setting.privacy.epsilon,
            delta=setting.privacy.delta,
            outcome=_outcome,
            taps=(training, votes, *common_taps),
        ),
        seed=seed,
    )
    audit = _with_noise(audit, "gradients", training.noise)
    return _with_noise(audit, "votes", votes.noise) if degree_bound else audit


@dataclass(frozen=True)
class _VotesTap:
    """Noisy votes, which declare their own price where they moved."""

    delta: float
    owner: type = PerturbedSum
    attribute: str = "perturb"
    moved: list[Hops] = field(default_factory=list)
    noise: list[Tensor] = field(default_factory=list)

    def read(self, mechanism: PerturbedSum, arguments: Arguments) -> Question[Summed]:
        """Take what `SumTap` does."""
        return SumTap().read(mechanism, arguments)

    def weigh(self, mechanism: PerturbedSum, answer: Tensor, first: Summed, second: Summed) -> Evidence:
        """Weigh as `SumTap` does, and take note of the noise and of its price."""
        self.noise.append((answer.double() - torch.from_numpy(exact_sums(mechanism, first))) / mechanism.sigmas[0])
        evidence = SumTap().weigh(mechanism, answer, first, second)
        if not evidence.change:
            return evidence
        # In units of the noise: a part of a pipeline of which one standard deviation is 1.
        self.moved.append(Hops(count=1, sensitivity=mechanism.mu, name=f"votes {len(self.moved)}"))
        return replace(evidence, declared=gaussian_epsilon(1 / mechanism.mu, self.delta))


@dataclass(frozen=True)
class _TrainingTap:
    """The noise of private gradients, all of which together declare the price of their schedule and of votes, once."""

    delta: float
    votes: _VotesTap
    owner: type = NoisyUpdates
    attribute: str = "add_noise"
    noise: list[Tensor] = field(default_factory=list)
    _moved: list[bool] = field(default_factory=list)

    def read(self, mechanism: NoisyUpdates, arguments: Arguments) -> Question[Tensor]:
        """Take what `DescentTap` does."""
        return DescentTap().read(mechanism, arguments)

    def weigh(self, mechanism: NoisyUpdates, answer: Tensor, first: Tensor, second: Tensor) -> Evidence:
        """Measure how far a sum moved; the first that moved declares the whole training."""
        schedule = mechanism.schedule
        self.noise.append((answer.double() - first) / (schedule.noise_multiplier * schedule.grid.cap))
        change = DescentTap().weigh(mechanism, answer, first, second).change
        if change == 0.0 or any(self._moved):
            return Evidence(change)
        self._moved.append(True)
        part = ChangedSamples(steps=schedule.steps, rate=schedule.rate, samples=1)
        noise = {part.name: (schedule.noise_multiplier,)}
        if not self.votes.moved:
            return Evidence(change, pipeline_epsilon([part], noise, self.delta))
        # Votes are drawn before the first gradient, and have declared their own part of what both cost together.
        total = pipeline_epsilon(
            [part, *self.votes.moved], noise | {sums.name: (1.0,) for sums in self.votes.moved}, self.delta
        )
        return Evidence(
            change, total - sum(gaussian_epsilon(1 / sums.sensitivity, self.delta) for sums in self.votes.moved)
        )


def _with_noise(audit: Audit, of: str, noise: Sequence[Tensor]) -> Audit:
    """Return the audit with the measured noise of a mechanism, which must not be smaller than the declared 1."""
    squares, count = math.fsum(float(part.square().sum()) for part in noise), sum(part.numel() for part in noise)
    measured = f"{count} numbers of {of} have noise of {math.sqrt(squares / max(count, 1)):.3f} of what is declared"
    enough = count > 0 and squares >= float(stats.chi2.ppf(_FALSE_ALARM, count))
    return replace(
        audit,
        verdict=audit.verdict if enough else "broken",
        false_alarm=audit.false_alarm + _FALSE_ALARM,
        notes=(*audit.notes, measured) if enough else (measured, *audit.notes),
    )


def made_person(changed: str = "") -> Person:
    """Return what a holder has and receives; `changed` is the role of a person who has another record."""
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
    # Either of them lists one half of the others, and with another record the other half; who lists them stays.
    halves = [(edges[0] == node) & ((edges[1] < _NODES // 2) != (node != person)) for node in (0, _NODES - 1)]
    return Person(Holding(x, edges[:, ~(halves[0] | halves[1])], 1.0), received)


def _run(setting: Setting, person: Person, randomness: Randomness) -> tuple[Any, ...]:
    """Run the program of the holder that guesses; return its messages, and the state at each checkpoint."""
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


def _outcome(seen: Sequence[Any]) -> dict[str, object]:
    """What may not differ between neighbours, by name."""
    return {"number of messages and checkpoints": len(seen)} | {f"step {n}": message for n, message in enumerate(seen)}
