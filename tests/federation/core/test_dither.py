"""What is opened with noise: no bit of it is free of noise, and the law keeps the price that was paid, exactly."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from graphveil.audit.exact import audit_table
from graphveil.errors import InputError
from graphveil.federation.core.dither import Dither
from graphveil.federation.core.guarantees import guarantee_of
from graphveil.federation.core.publication import Publication
from graphveil.federation.core.setting import Member, Setting
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import SeededRandomness

#: One number a row, published once, in a ring so small that every output can be counted: steps of 4.
TO = Publication(2.0, 1e-4, 1, 1)
SMALL = Dither(TO, 12, 2)


class Count:
    """Not random: 0, 1, 2, .. once each."""

    def uint64(self, count: int) -> np.ndarray:
        return np.arange(count, dtype=np.uint64)


def law(dither: Dither, values: list[int], low: list[int]) -> np.ndarray:
    """log Pr[z + noise = .] of whole numbers z, the low part of the noise as given, each equally likely."""
    step = 1 << dither.step_bits
    normal = RoundedNormal(dither.sigma, math.ceil(dither.publication.cut * dither.sigma))
    reach = max(map(abs, values)) + step * (normal.limit + 1)
    outputs = np.arange(-reach, reach + 1)
    table = np.full((len(values), len(outputs)), -np.inf)
    for row, value in zip(table, values, strict=True):
        for part in low:
            steps, rest = np.divmod(outputs - value - part, step)
            here = (rest == 0) & (np.abs(steps) <= normal.limit)
            row[here] = np.logaddexp(row[here], normal.log_pmf(steps[here]) - math.log(len(low)))
    return table


def low_parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What `draw` adds below a step for the words 0, 1, 2, .., without its steps."""
    with monkeypatch.context() as patch:
        patch.setattr(RoundedNormal, "draw", lambda me, count, words: np.zeros(count, np.int64))
        return sorted(SMALL.draw((16, 1), Count()).flatten().tolist())


def test_the_low_part_of_the_noise_is_uniform_below_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SMALL.step_bits == 2
    assert low_parts(monkeypatch) == [low for low in range(4) for _ in range(4)]


@pytest.mark.slow  # whole rounds
@pytest.mark.parametrize("weak", ["", "no low part", "rows too long"])
def test_every_output_of_an_opened_number_keeps_the_price(weak: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumerated: the two ends of what z may be, and two in the middle that differ in the lowest bit alone.

    Without the low part, numbers that differ in their lowest bit have no output in common.
    """
    longest = 1.01 * TO.clip if weak == "rows too long" else SMALL.longest
    ends = [math.ceil(-longest * 2**SMALL.scale), 0, 1, math.floor(longest * 2**SMALL.scale)]
    low = [0] if weak == "no low part" else sorted(set(low_parts(monkeypatch)))
    setting = Setting.of((Member("a", 1, True), Member("b", 1)), 2, width=1, epochs=1, epsilon=2.0, delta=1e-4)
    assert setting.publication == TO
    result = audit_table("opened", guarantee_of(setting), law(SMALL, ends, low))
    assert result.holds == (not weak)
    if not weak:
        assert result.lower_bound > 0.99 * result.claimed_epsilon


@pytest.mark.parametrize("clip", [0.3, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("width", [1, 16, 64])
def test_a_rounded_row_moves_by_no_more_than_the_noise_is_made_for(clip: float, width: int) -> None:
    """2 C' + sqrt(h) steps are 2 C, and the noise has the deviation sigma C, whatever C is."""
    dither = Dither(Publication(4.0, 1e-4, 5, width, clip), 36, 2)
    step = 2.0 ** (dither.step_bits - 36)
    assert 2 * dither.longest + math.sqrt(width) * step == pytest.approx(2 * clip, rel=1e-12)
    assert dither.sigma * step == pytest.approx(dither.publication.sigma * clip, rel=1e-12)
    assert clip / step <= 2.0**dither.publication.bits
    drawn = dither.draw((40_000,), SeededRandomness(3)).double() * 2.0**-36
    low, high = (stats.chi2.ppf(q, 40_000) * (dither.sigma * step) ** 2 / 40_000 for q in (5e-7, 1 - 5e-7))
    assert low < float((drawn - step / 2).square().mean()) < high


def test_noise_that_the_ring_has_no_room_for_is_refused() -> None:
    with pytest.raises(InputError, match="fraction bits"):
        Dither(replace(TO, clip=1e6), 52, 5)
    with pytest.raises(InputError, match="no noise of sigma"):
        Dither(replace(TO, clip=1e-12), 36, 2)
