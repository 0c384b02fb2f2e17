"""Rows of P, weights and rows of z never pass the bounds that the noise is made for: worst cases, in whole numbers."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.core.dither import Bounds, Dither
from graphveil.federation.core.messages import simulate
from graphveil.federation.core.rows import publications_by_group
from graphveil.federation.core.setting import Member, Setting
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.masks import MaskKey, ZeroSum
from graphveil.federation.crypto.sharing import share, uniform
from graphveil.federation.crypto.truncation import Scale, deal_truncation, truncate_shared
from graphveil.federation.effects import Effect, Roster, Send, Watch
from graphveil.federation.modes import linear_server, propagation
from graphveil.federation.modes.propagation import transition_matrix
from graphveil.privacy import SeededRandomness
from tests.federation.views import holdings, is_uniform, setting_of, watched

UNIT = 1 << ring.FRACTION_BITS
SCALE = Scale(ring.FRACTION_BITS, 1 << 38)


def setting_with(columns: int = 1433, **changes: Any) -> Setting:
    members = (Member("a", columns // 2, True), Member("b", columns - columns // 2))
    plain: dict[str, Any] = {"width": 16, "hops": 4, "epochs": 3, "epsilon": 8.0}
    return Setting.of(members, 3, **{**plain, **changes})


def longest_row(length: float, weights: scipy.sparse.csr_array, columns: int, hops: int) -> float:
    """The longest row of P in units of 1 where every rounding goes up: equal positive rows at both of two holders."""
    # The first entry is exact and all others are just above a half: they are rounded up by nearly half a unit each.
    short = (math.floor(0.75 * length * UNIT / math.sqrt(columns)) + 0.501) / UNIT
    half = torch.full((1, columns // 2), short, dtype=torch.float64)
    half[0, 0] = math.sqrt(length**2 / 2 - (columns // 2 - 1) * short**2)
    rows = torch.cat([ring.encode(half), ring.encode(half)], dim=1).expand(weights.shape[0], -1).numpy()
    for _ in range(hops):
        rows = (weights @ rows >> ring.FRACTION_BITS) + 1  # a cut is wrong by 0 or 1
    return float(np.sqrt((rows.astype(float) ** 2).sum(axis=1)).max() / UNIT)


@pytest.mark.parametrize("columns", [2, 64, 1433])
@pytest.mark.parametrize("hops", [1, 4])
def test_a_row_of_p_is_never_longer_than_1_whatever_is_rounded_up(columns: int, hops: int) -> None:
    """The room that was kept before, 2^-20, does not do; nor do weights of a walk that are rounded to the nearest."""
    both = 2 * columns
    bounds = setting_with(both, hops=hops).bounds
    whole = scipy.sparse.csr_array(np.full((1, 1), UNIT))  # S = 1: nothing is lost on the way
    assert 1 - 3 * both**0.5 / UNIT - 2.0**-19 < longest_row(bounds.row_length, whole, both, hops) <= 1
    assert longest_row(1 - 2.0**-20, whole, both, hops) > 1
    walk = transition_matrix(torch.tensor([range(10_000), [0] * 10_000]), 10_000)  # a node with 10,000 neighbours
    down = propagation.rounded_down(walk, 1, ring.FRACTION_BITS)
    assert int(down.sum(axis=1).max()) <= UNIT
    nearest = np.round(walk[[0]].data * UNIT * 1.02).astype(int)
    assert nearest.sum() > UNIT


@pytest.mark.parametrize("holders", [2, 3, 4, 5])
def test_the_walks_of_all_holders_add_up_to_1_at_most(holders: int) -> None:
    by_holder = holdings(holders, 300, 2, seed=holders)
    walks = [
        propagation.rounded_down(transition_matrix(holding.edge_index, 300), holders, ring.FRACTION_BITS)
        for holding in by_holder.values()
    ]
    sums = sum(walk.sum(axis=1) for walk in walks)
    assert int(np.min(sums)) >= UNIT - 300 and int(np.max(sums)) <= UNIT


def cut_together(
    values: Tensor, holders: int, scale: Scale = SCALE, watch: Watch | None = None, *, bare: bool = False
) -> Tensor:
    """What each holder has after a truncation of what they and the dealer share, or, bare, of what the first has."""
    source, names = SeededRandomness(1), tuple("abcde"[:holders])
    keys = {name: MaskKey.fresh(source) for name in names}
    pairs = {frozenset(pair): MaskKey.fresh(source) for pair in itertools.combinations(names, 2)}
    part = uniform(tuple(values.shape), randomness=source)
    parts = share(values - part, holders, randomness=source)
    if bare:
        part, parts = torch.zeros_like(values), [values, *[torch.zeros_like(values)] * (holders - 1)]
    programs: dict[str, Any] = {"server": deal_truncation(keys, part, scale.bits, "1")}
    for me, mine in zip(names, parts, strict=True):
        zero = ZeroSum(Roster(me, names), {other: pairs[frozenset((me, other))] for other in names if other != me})
        programs[me] = truncate_shared(zero, mine, keys[me], scale, "1")
    results, _ = simulate(programs, watch=watch)
    return torch.stack([results[name] for name in names])


@pytest.mark.parametrize("holders", [2, 3, 4, 5])
def test_a_cut_is_off_by_one_at_most(holders: int) -> None:
    """Within their bound numbers are never off by more, but 0 instead with chance 2^-25 an element: 1e-4 in all."""
    values = torch.randint(-(1 << 38), 1 << 38, (3_001,), generator=torch.Generator().manual_seed(1))
    assert set((cut_together(values, holders).sum(dim=0) - (values >> 18)).tolist()) == {0, 1}


@pytest.mark.parametrize("holders", [2, 3])
def test_all_that_a_truncation_sends_and_leaves_is_uniform(holders: int) -> None:
    """False-alarm rate 1e-6, seed fixed; the dealer talks to the first holder alone, and reads nothing."""
    sent: dict[tuple[str, str, str], list[Tensor]] = {}

    def watch(name: str, effect: Effect) -> None:
        if isinstance(effect, Send):
            sent.setdefault((name, effect.to, effect.kind), []).append(effect.body)

    left = cut_together(torch.zeros(3_001, dtype=torch.int64), holders, watch=watch, bare=True)
    masked = {key: bodies for key, bodies in sent.items() if key[2] != "safe-bits"}
    rest = "bcde"[: holders - 1]
    assert set(masked) == {("server", "a", "correction"), *((name, "a", "masked-sum") for name in rest)}
    assert len(masked["server", "a", "correction"]) == 1 and set(sent) - set(masked) == {
        ("a", name, "safe-bits") for name in rest
    }
    numbers = [*itertools.chain(*masked.values()), *left]
    assert all(is_uniform(words, len(numbers)) for words in numbers)


@pytest.mark.parametrize("holders", [2, 3])
@pytest.mark.parametrize("bounded", [True, False])
def test_where_a_masked_sum_could_leave_the_ring_the_result_is_0(
    holders: int, bounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masks at both ends of the ring: without the bound a number of 2^-1 becomes one of 2^28."""
    ends = torch.tensor([(1 << 63) - 1, -(1 << 63), (1 << 63) - (1 << 30), (1 << 30) - (1 << 63), 7, 0, -1, 5])
    real, drawn = MaskKey.expand, dict[bytes, Tensor]()

    def expand(key: MaskKey, label: str, shape: tuple[int, ...]) -> Tensor:
        if label != "r 1":
            return real(key, label, shape)
        # The first holder's is drawn first: it alone is the whole mask, and those of the others are zeros.
        return drawn.setdefault(key.secret, torch.zeros_like(ends) if drawn else ends)

    monkeypatch.setattr(MaskKey, "expand", expand)
    values = torch.tensor([1, -1, 1, -1, 1, -1, 1, -1]) << 35
    result = cut_together(values, holders, SCALE if bounded else Scale(ring.FRACTION_BITS, 1), bare=True)
    result = result.sum(dim=0)
    good = torch.isin((result - (values >> 18)), torch.tensor([0, 1]))
    if bounded:
        assert bool((good | (result == 0)).all()) and result[:4].tolist() == [0] * 4 and bool(good[4:].all())
    else:
        assert int(result.abs().max()) > 1 << 45


@pytest.mark.parametrize("rounding", ["to zero", "away from zero"])
def test_weights_never_pass_their_bound_whatever_the_server_adds_up(rounding: str) -> None:
    """A as long as it may be, all in one direction."""
    rows, setting = 3_000, setting_with(6, width=4, epochs=3)
    size = math.sqrt(setting.columns * setting.model.width)
    sent = linear_server.bounded(torch.full((rows, setting.model.width), 1e6, dtype=torch.float64), setting) * UNIT
    exact = setting.bounds.longest_a(rows)
    if rounding == "away from zero":
        assert float((sent + 1).norm()) / UNIT > exact
        return
    length = float(sent.norm()) / UNIT
    assert 0.9 * exact < length <= exact and torch.equal(sent, sent.round())
    start = 2 * (setting.bounds.start_entry + 0.5 / UNIT) * size
    cut = (size + setting.model.hops * math.sqrt(setting.model.width)) / UNIT
    longest = min(dither.longest for dither in dithers(setting))
    assert start + math.sqrt(rows) * (1 + 1 / UNIT) * length + cut <= longest < setting.privacy.clip


def dithers(setting: Setting) -> list[Dither]:
    all_dithers = [
        setting.dither_of(setting.publication_of(times)) for times in publications_by_group(setting).values()
    ]
    return [dither for dither in all_dithers if dither is not None]


@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize("holders", [2, 3])
def test_rows_of_a_whole_run_stay_within_their_bounds(
    holders: int, weak: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P, W and z of every round, from what all holders keep, with a server that pulls as far as it may, or further."""
    if weak:
        monkeypatch.setattr(Bounds, "longest_a", lambda me, rows: 200.0)
    by_holder = holdings(holders, 40, 5)
    setting = setting_of(by_holder, epsilon=8.0, epochs=4, shared_rate=1e9)
    seen = watched(setting, by_holder, monkeypatch)
    longest = min(dither.longest for dither in dithers(setting))

    def whole(key: str) -> Tensor:
        """The sum of all shares after each round, the set-up first."""
        rounds = range(setting.publications + 1)
        return torch.stack(
            [torch.stack([seen.checkpoints[name][r][key] for name in setting.names]).sum(dim=0) for r in rounds]
        )

    p, a = whole("p")[0], whole("a")
    part = seen.checkpoints[setting.server][0]["memory/part"]
    z = ring.decode(whole("z") + whole("gram") @ a + part, 2 * setting.protocol.bits)
    trained = p[: a.shape[1]].double() / UNIT
    w = whole("w").double() / UNIT + trained.T @ (a.double() / UNIT)
    assert float(p.double().norm(dim=1).max()) <= UNIT
    assert (float(w.norm(dim=(1, 2)).max()) <= longest) != weak
    assert (float(z.norm(dim=2).max()) <= longest) != weak


def test_too_few_fraction_bits_are_refused() -> None:
    for few in ({"bits": 7}, {"bits": 9, "epochs": 200}):
        with pytest.raises(InputError, match="rounding takes all the room"):
            setting_with(**few)
    assert setting_with(bits=7, epsilon=math.inf, hops=1, columns=8).bounds.row_length < 1
    with pytest.raises(InputError, match="rounding takes all the room"):
        Bounds(2, 1433, 16, 4, 6, math.inf)
