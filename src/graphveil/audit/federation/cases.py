"""Audits of what a federation's holders publish: rows with noise, and shares that have to be uniform.

exact    one row of one number, published once: every output under both ends of the clip
mu       rows far beyond the clip, published in every round; the noise of `noise_for`, added inside shares
events   the same after James and Stein's factor, which is post-processing and must not cost more
shares   every number that is masked, as each reader gets it: exact tests of the highest and the lowest bits
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from scipy import stats
from scipy.special import gammaln, logsumexp
from torch import Tensor

from graphveil.audit import sampled
from graphveil.audit.exact import audit_table
from graphveil.audit.verdict import Audit, judge, timed
from graphveil.federation.core.dither import Dither
from graphveil.federation.core.guarantees import guarantee_of
from graphveil.federation.core.publication import Publication
from graphveil.federation.core.publisher import Publisher, james_stein
from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.crypto.masks import MaskKey
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import Randomness
from graphveil.runtime.words import count_of

_EPSILON, _DELTA, _ROUNDS, _COLUMNS, _CLIP = 2.0, 1e-4, 3, 4, 0.5
_SAMPLES: Final = 40_000
#: How far beyond the clip the audited rows lie: a clip that is not applied is seen at once.
_BEYOND: Final = 10.0
_CELLS: Final = 16
#: Concentrations of the mixture in `uneven`: for words that reach only some cells, and for slightly uneven ones.
_CONCENTRATIONS: Final = (0.5, 16.0)
#: What all rounds show of each row: (publication, unit rows [n, d], key of the noise) -> scores [n].
Release = Callable[[Publication, Tensor, MaskKey], Tensor]


def published_setting(columns: int = _COLUMNS, rounds: int = _ROUNDS, epsilon: float = _EPSILON) -> Setting:
    """Return the setting whose publications are audited.

    Args:
        columns: h.
        epsilon: of all publications together.
    """
    members = (Member("holder1", 8, True), Member("holder2", 8))
    return Setting.of(
        members, 2, width=columns, epochs=rounds, epsilon=epsilon, delta=_DELTA, clip=_CLIP, mode="individual"
    )


@timed
def audit_published_exactly() -> Audit:
    """Enumerate all outputs of one published number at both ends of its range and in the middle."""
    setting = published_setting(columns=1, rounds=1)
    to = setting.publication
    sigma, steps = to.sigma * 2.0**to.bits, 1 << to.bits
    noise = RoundedNormal(sigma, math.ceil(to.cut * sigma))
    outputs = np.arange(-steps - noise.limit, steps + noise.limit + 1)
    table = np.full((3, len(outputs)), -np.inf)
    for row, value in zip(table, (-steps, 0, steps), strict=True):
        possible = np.abs(outputs - value) <= noise.limit
        row[possible] = noise.log_pmf(outputs[possible] - value)
    return audit_table("federation, one published row", guarantee_of(setting), table)


def audit_published(*, seed: int = 0, samples: int = _SAMPLES) -> Audit:
    """Publish rows far beyond the clip in all rounds, and bound mu.

    Args:
        seed: of rows and noise.
    """
    return _by_mu("federation, published rows", _published, seed=seed, samples=samples)


def audit_noise_in_shares(*, seed: int = 0, samples: int = _SAMPLES) -> Audit:
    """Bound mu of rows of length C with the noise that one holder adds within its share.

    Args:
        seed: of rows and noise.
    """
    return _by_mu("federation, noise within shares", _within_shares, seed=seed, samples=samples)


@timed
def audit_shrunk(*, seed: int = 0, samples: int = _SAMPLES, actual: float = _EPSILON) -> Audit:
    """Publish rows, shrink them as the server does, and bound epsilon by events.

    Args:
        actual: the epsilon that noise and factor are made for, while that of `published_setting` is claimed. For tests.
    """
    draw = _draw(published_setting(epsilon=actual).publication, partial(_published, shrunk=True))
    target = "federation, rows after James and Stein"
    return sampled.audit_events(target, guarantee_of(published_setting()), draw, samples=samples, seed=seed)


def audit_uniform(
    target: str, words: Mapping[str, Sequence[Tensor]], findings: Sequence[str] = (), *, false_alarm: float = 1e-6
) -> Audit:
    """Test that masked numbers are uniform to their reader.

    Args:
        words: name of a stream -> the bodies that reached one reader in it, int64; a body sent twice counts once.
        findings: further faults, whatever the words are.
        false_alarm: the chance that uniform words are called broken, all tests together.
    """
    findings, count = [*findings], 0
    # A union over all streams and both tests, so that the stated rate holds for all of them together.
    level = false_alarm / (2 * max(len(words), 1))
    for name, bodies in words.items():
        # Sent twice, the same masked words say nothing new; counted twice they would look too regular to be uniform.
        different = {body.numpy().tobytes(): body.flatten() for body in bodies}
        numbers = torch.cat(list(different.values())).numpy().view(np.uint64)
        count += len(numbers)
        # Highest bits show a value that outgrows its mask, lowest ones a mask that is laid on in whole steps.
        for place, shift in (("highest", 60), ("lowest", 0)):
            cells = (numbers >> np.uint64(shift) & np.uint64(_CELLS - 1)).astype(np.int64)
            if uneven(np.bincount(cells, minlength=_CELLS), level):
                findings.append(f"{name}: the {place} four bits are not uniform")
    amount = f"{count_of(count, 'masked number')} in {count_of(len(words), 'stream')}"
    notes = (f"{amount}, each to one reader; exact tests of eight bits",)
    return judge(target, 0.0, 0.0, 0.0, false_alarm, notes=notes, findings=tuple(findings))


def uneven(counts: np.ndarray, level: float) -> bool:
    """Return whether cells are not equally likely; if they are, True comes with chance `level` at most.

    Half of the level is for single cells, by their binomial tails.  The other half is for all together: the ratio of a
    mixture's likelihood (Dirichlet chances of each concentration) to that of equal chances is 1 in expectation, so by
    Markov's inequality it exceeds 2 / level that seldom.  Both hold for any number of words; a chi-square needs many.
    Source: Good, Journal of the Royal Statistical Society B 29, 1967.

    Args:
        counts: of each cell, int64.
    """
    cells, words = len(counts), int(counts.sum())
    tails = np.minimum(stats.binom.cdf(counts, words, 1 / cells), stats.binom.sf(counts - 1, words, 1 / cells))
    ratios = [
        gammaln(cells * a) - gammaln(words + cells * a) + float((gammaln(counts + a) - gammaln(a)).sum())
        for a in _CONCENTRATIONS
    ]
    ratio = float(logsumexp(ratios)) - math.log(len(ratios)) + words * math.log(cells)
    return 2 * cells * float(tails.min()) < level / 2 or ratio > math.log(2 / level)


@timed
def _by_mu(target: str, release: Release, *, seed: int, samples: int) -> Audit:
    to = published_setting().publication
    options: dict[str, Any] = {"samples": samples, "seed": seed}
    return sampled.audit_mu(target, to.epsilon, to.delta, _draw(to, release), **options)


def _draw(publication: Publication, release: Release) -> sampled.Draw:
    """Return what scores rows at one end of the clip or at the other: the first number, summed over all rounds."""

    def draw(is_first: bool, count: int, randomness: Randomness) -> sampled.Scores:
        rows = torch.zeros(count, publication.columns)
        rows[:, 0] = 1.0 if is_first else -1.0
        drawn: sampled.Scores = release(publication, rows, MaskKey.fresh(randomness)).numpy()
        return drawn

    return draw


def _published(to: Publication, rows: Tensor, key: MaskKey, *, shrunk: bool = False) -> Tensor:
    publisher = Publisher(to, key)
    published = (publisher.publish(_BEYOND * to.clip * rows, str(number), "") for number in range(1, to.rounds + 1))
    return torch.stack(
        [(james_stein(embedding, to) if shrunk else embedding)[:, 0].double() for embedding in published]
    ).sum(dim=0)


def _within_shares(to: Publication, rows: Tensor, key: MaskKey) -> Tensor:
    """Return scores of rows of the most length before dither; the server opens them whole, with one holder's noise."""
    publisher, shape, dither = Publisher(to, key), (len(rows), to.columns), Dither(to, 36, 2)
    noise = [publisher.noise_for(str(number), "", shape, dither)[:, 0] for number in range(1, to.rounds + 1)]
    return torch.stack([dither.longest * rows[:, 0].double() + 2.0**-36 * sample for sample in noise]).sum(dim=0)
