"""Which settings are tried next: listed combinations, or what a sampler of Optuna makes of the scores so far.

Only where scores cost nothing: they are computed from released values, or on a public graph.  Where trials have a
price, candidates are drawn as `search` draws them, since the price is proved for that draw alone.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from graphveil.errors import InputError
from graphveil.runtime.extras import require_packages

GRID, RANDOM, TPE = "grid", "random", "tpe"
SAMPLERS = (GRID, RANDOM, TPE)


@dataclass(frozen=True)
class Range:
    """All values between two ends, both included; whole where both ends are. `log`: drawn evenly by their logarithm."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise InputError(f"{self.low}:{self.high}", allowed="LOW:HIGH, two numbers, the smaller one first")
        if self.log and self.low <= 0:
            raise InputError(f"{self.low}:{self.high}:log", allowed="ends above 0")


Values: TypeAlias = Sequence[Any] | Range


class Proposals:
    """Settings one after the other, here listed ones; each is given its score before the next one is asked for.

    Attributes:
        total: how many there will be; earlier: settings and score of those that an earlier process tried.
    """

    total: int
    earlier: Sequence[tuple[Mapping[str, Any], float]] = ()

    def __init__(self, over: Mapping[str, Sequence[Any]], trials: int, seed: int) -> None:
        self._all = candidates(over, trials, seed)
        self.total = len(self._all)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._all)

    def tell(self, score: float) -> None:
        """Hear what the settings last proposed scored; a list does not depend on it."""


def proposals(
    over: Mapping[str, Values], trials: int, sampler: str, seed: int, journal: Path | None = None, key: str = ""
) -> Proposals:
    """Return what proposes settings.

    Args:
        trials: at most so many.
        seed: of what is drawn.
        journal: a file that keeps scores, so that a search that was stopped goes on; None: nothing is kept.
        key: tells this search from others in that file.
    """
    if sampler != GRID:
        return _Sampled(over, trials, sampler, seed, journal, key)
    return Proposals({name: values for name, values in over.items() if not isinstance(values, Range)}, trials, seed)


def require_sampler(over: Mapping[str, Values], sampler: str, *, paid: bool) -> None:
    """Refuse a sampler that cannot propose these values, or may not.

    Args:
        paid: whether each trial has a price.
    """
    if sampler not in SAMPLERS:
        raise InputError(f"{sampler!r}", where="--sampler", allowed=", ".join(SAMPLERS))
    ranges = [key for key, values in over.items() if isinstance(values, Range)]
    if paid and sampler == TPE:
        raise InputError(
            f"{TPE} chooses by what earlier trials scored, and the price of private trials is proved only for settings "
            "drawn without looking at them",
            where="--sampler",
            allowed=RANDOM,
            remedy="search on a public graph with --proxy",
        )
    if paid and ranges:
        raise InputError(f"{ranges[0]} is a range", where="--over", allowed="listed values where trials have a price")
    if paid:
        return
    if sampler == GRID and ranges:
        remedy = f"list values, {ranges[0]}=V1,V2, or add --sampler {RANDOM} or {TPE}"
        raise InputError(f"{ranges[0]} is a range, which has no list of values", where="--over", remedy=remedy)
    if sampler != GRID:
        require_packages("optuna", "optuna", where=f"--sampler {sampler}")


def candidates(over: Mapping[str, Sequence[Any]], trials: int, seed: int) -> list[dict[str, Any]]:
    """Return all combinations of the values, or `trials` of them drawn with `seed` where there are more."""
    names = list(over)
    count = math.prod(len(values) for values in over.values())
    # In the order of the product: with room for all there is nothing to draw.
    if count <= trials:
        return [dict(zip(names, values, strict=True)) for values in itertools.product(*over.values())]
    drawn = []
    # By number and not by listing: a grid may have more combinations than fit in memory.
    for number in random.Random(seed).sample(range(count), trials):
        chosen = {}
        for name in names:
            number, place = divmod(number, len(over[name]))
            chosen[name] = over[name][place]
        drawn.append(chosen)
    return drawn


class _Sampled(Proposals):
    def __init__(
        self, over: Mapping[str, Values], trials: int, sampler: str, seed: int, journal: Path | None, key: str
    ) -> None:
        import optuna
        from optuna.storages.journal import JournalFileBackend, JournalStorage

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.total = trials
        self._space = {name: _distribution(values) for name, values in over.items()}
        storage = None if journal is None else JournalStorage(JournalFileBackend(str(journal)))
        # By all that a score depends on: other searches in the same file are other studies.
        name = hashlib.sha256(f"{key} {sampler} {seed} {over}".encode()).hexdigest()
        self._study = optuna.create_study(
            study_name=name, storage=storage, direction="maximize", load_if_exists=storage is not None
        )
        done = self._study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
        self.earlier = tuple((trial.params, float(trial.value or 0.0)) for trial in done)
        # Not the same seed again: a search that goes on would draw what it has drawn already.
        kinds = {RANDOM: optuna.samplers.RandomSampler, TPE: optuna.samplers.TPESampler}
        self._study.sampler = kinds[sampler](seed=(seed + len(done)) % 2**32)
        self._trial: Any = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for _ in range(self.total - len(self.earlier)):
            self._trial = self._study.ask(self._space)
            yield dict(self._trial.params)

    def tell(self, score: float) -> None:
        self._study.tell(self._trial, score)


def _distribution(values: Values) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not isinstance(values, Range):
        return CategoricalDistribution(tuple(values))
    if isinstance(values.low, int) and isinstance(values.high, int):
        return IntDistribution(values.low, values.high, log=values.log)
    return FloatDistribution(values.low, values.high, log=values.log)
