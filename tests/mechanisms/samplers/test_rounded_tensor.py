"""Rounded normal noise in tensor arithmetic: the integers of the sampler in numpy, from the same words."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.mechanisms.samplers.rounded_tensor import NormalTensors
from graphveil.privacy import BlockKey, BlockNoise, SeededRandomness
from graphveil.privacy.derived import KeyedStream

COUNT = 6001


@pytest.fixture(scope="module")
def keys() -> list[BlockKey]:
    return list(BlockNoise(SeededRandomness(1)).keys(3))


def law(sigma: float) -> RoundedNormal:
    return RoundedNormal(sigma, math.ceil(12 * sigma))


def drawn(sigma: float, count: int, key: BlockKey) -> np.ndarray:
    """What the sampler in numpy gives."""
    return law(sigma).draw(count, key.stream())


@pytest.mark.parametrize(("sigma", "count"), [(10.0, 1), (37.25, (1 << 16) + 1), (8192.0, COUNT)])
def test_draws_are_those_of_the_sampler_in_numpy(sigma: float, count: int, keys: list[BlockKey]) -> None:
    found = NormalTensors.of(law(sigma), "cpu").draw(count, keys)
    for key, draws in zip(keys, found, strict=True):
        assert np.array_equal(draws.numpy(), drawn(sigma, count, key))


def undecided(sigma: float, key: BlockKey) -> np.ndarray:
    """The first 64 bits of a stream's draws that no strip decides."""
    stream = key.stream()
    rest = KeyedStream(stream.bytes(32))
    words = stream.uint64(COUNT).view(np.uint32)[:COUNT]
    left = words[law(sigma).table.read(words)[1]]
    found: np.ndarray = (left.astype(np.uint64) << np.uint64(32)) | rest.uint64(left.size) >> np.uint64(32)
    return found


def halves(numbers: np.ndarray) -> tuple[Tensor, Tensor]:
    upper, lower = (
        torch.from_numpy(part.astype(np.uint32).view(np.int32)) for part in (numbers >> np.uint64(32), numbers)
    )
    return upper, lower


def test_a_draw_that_64_bits_leave_open_is_decided_by_all(keys: list[BlockKey]) -> None:
    """An end is planted where the last undecided draw falls: the sampler in numpy draws that row."""
    last = undecided(300.0, keys[1])[-1:]
    planted = replace(NormalTensors.of(law(300.0), "cpu"), ends=torch.from_numpy(last.view(np.int64)) ^ -(1 << 63))
    wrong, tied = planted.search(*halves(last))
    right = drawn(300.0, COUNT, keys[1])
    assert tied.all()
    assert wrong.item() not in right
    assert np.array_equal(planted.draw(COUNT, keys)[1].numpy(), right)


def test_numbers_are_compared_without_a_sign() -> None:
    """Halves from 2^31 on are negative in int32; the draws rise with the numbers all the same."""
    table = law(10.0).table
    # Between two ends of what cells are owed; in the tails 64 bits do not tell these apart.
    numbers = table.ends[:-1] // np.uint64(2) + table.ends[1:] // np.uint64(2)
    draws, tied = NormalTensors.of(law(10.0), "cpu").search(*halves(numbers))
    expected, ties = table.search(numbers)
    assert np.array_equal(draws.numpy(), expected)
    assert torch.nonzero(tied).ravel().tolist() == ties.tolist()
    assert len(set(draws.tolist())) > 100


@pytest.mark.parametrize("spoilt", ["strips", "ends"])
def test_another_table_is_noticed(spoilt: str, keys: list[BlockKey]) -> None:
    """The comparison can fail: tables of a slightly wider law give other integers."""
    right, wider = (NormalTensors.of(law(sigma), "cpu") for sigma in (300.0, 310.0))
    other = getattr(wider, spoilt)[-len(getattr(right, spoilt)) :]
    weakened = replace(right, **{spoilt: other})
    assert not np.array_equal(weakened.draw(COUNT, keys)[0].numpy(), drawn(300.0, COUNT, keys[0]))
