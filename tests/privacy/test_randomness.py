"""Randomness: uniform, fresh, never shared, never shown (checklist item 17)."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from graphveil.errors import InputError
from graphveil.privacy import Randomness, SecureRandomness, SeededRandomness, require_randomness
from tests.waiting import in_threads

FORKS = """
import os
from graphveil.privacy import SecureRandomness
from graphveil.mechanisms.samplers.bits import bit_law
import numpy as np
source = SecureRandomness()
source.uint64(3)
fractions = np.full(256, 0.5)
def noise(): return bit_law(1.0, 1).draw(fractions, source).tobytes().hex() + source.bytes(16).hex()
for depth in range(4):
    read, write = os.pipe()
    if os.fork() == 0:
        if depth % 2:
            # As if the child had its parent's process number: only the fork hook is left.
            source._process = os.getpid()
        line = noise()
        again, inner = os.pipe()
        if os.fork() == 0:
            os.write(inner, noise().encode())
            os._exit(0)
        os.wait()
        os.write(write, (line + " " + os.read(again, 4096).decode()).encode())
        os._exit(0)
    os.wait()
    print(os.read(read, 8192).decode())
print(noise())
"""


def test_item_17_forked_workers_are_pairwise_distinct() -> None:
    """Checklist item 17: a process, its four children and their children all draw different noise."""
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True)
    lines = done.stdout.split()
    assert len(lines) == 9
    assert len(set(lines)) == 9
    assert len({line[-32:] for line in lines}) == 9


def test_item_17_no_key_is_shown_saved_or_copied() -> None:
    """Checklist item 17: no key or generator state in what can be printed or stored."""
    source = SecureRandomness()
    assert repr(source) == "SecureRandomness()"
    values = [value for value in vars(source).values() if isinstance(value, bytes | bytearray | int)]
    assert values == [os.getpid()]
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            leak(source)
    with pytest.raises(TypeError):
        pickle.dumps(SeededRandomness(1))


def test_item_17_every_bit_of_the_key_comes_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checklist item 17: 256 bits are asked for, and each of them decides the stream; fewer could be tried out."""
    sizes: list[int] = []

    def feed(entropy: bytes) -> None:
        sizes.clear()

        def urandom(count: int) -> bytes:
            start = sum(sizes)
            sizes.append(count)
            return entropy[start : start + count]

        monkeypatch.setattr("graphveil.privacy.source.randomness.os.urandom", urandom)

    feed(bytes(64))
    streams = {SecureRandomness().bytes(32)}
    assert sum(sizes) == 32
    for bit in range(256):
        feed((1 << bit).to_bytes(32, "little") + bytes(32))
        streams.add(SecureRandomness().bytes(32))
    assert len(streams) == 257


def test_item_17_no_block_is_drawn_twice() -> None:
    """Checklist item 17: successive draws, separate sources and threads never share a block."""
    first, second, drawn = SecureRandomness(), SecureRandomness(), list[np.ndarray]()
    with in_threads(lambda source: drawn.append(source.uint64(20_000)), (first, second) * 4):
        pass
    assert len(np.unique(np.concatenate(drawn))) == 160_000


def test_a_changed_process_number_alone_re_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a fork passes the hook by, the process number still tells."""
    zeros = mock.Mock(side_effect=bytes)
    monkeypatch.setattr("graphveil.privacy.source.randomness.os.urandom", zeros)
    source = SecureRandomness()
    first, second = source.uint64(1), source.uint64(1)
    assert zeros.call_count == 1
    monkeypatch.setattr("graphveil.privacy.source.randomness.os.getpid", lambda: -1)
    assert source.uint64(1) == first != second
    assert zeros.call_count == 2


@pytest.mark.parametrize("source", [SecureRandomness(), SeededRandomness(1)])
def test_numbers_are_uniform(source: Randomness) -> None:
    """Every byte and every bit equally often (chi-square, false-alarm rate 1e-6)."""
    drawn = source.uint64(200_000)
    assert drawn.dtype == np.uint64
    for shift in (0, 24, 56):
        counts = np.bincount((drawn >> np.uint64(shift)).astype(np.uint8), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-6
    skewed = np.bincount((drawn >> np.uint64(56)).astype(np.uint8) | 1, minlength=256)
    assert stats.chisquare(skewed).pvalue < 1e-6


def test_a_seed_gives_the_same_stream_however_it_is_drawn() -> None:
    whole = SeededRandomness(7).uint64(300_000)
    parts = SeededRandomness(7)
    assert np.array_equal(np.concatenate([parts.uint64(count) for count in (1, 0, 131_072, 168_927)]), whole)
    assert not np.array_equal(SeededRandomness(8).uint64(10), whole[:10])
    assert SeededRandomness(np.int64(7)).bytes(5) == whole.tobytes()[:5]
    # Whatever changes here changes every published benchmark.
    assert SeededRandomness(3).uint64(2).tolist() == [14532344821846926100, 5723818105491767451]


def test_void_says_why() -> None:
    assert SecureRandomness().void is None
    assert SeededRandomness(3).void == "noise was reproducible (seed 3)"
    assert repr(SeededRandomness(3)) == "SeededRandomness(3)"


def test_counts_and_seeds_are_checked() -> None:
    for source in (SecureRandomness(), SeededRandomness(1)):
        assert source.uint64(0).shape == (0,)
        assert len(source.bytes(13)) == 13
        with pytest.raises(InputError, match="-1 random numbers"):
            source.uint64(-1)
    for seed in (1.5, "1", None, True):
        with pytest.raises(InputError, match="seed"):
            SeededRandomness(seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", [3, None, np.random.default_rng(0), SecureRandomness])
def test_what_is_no_source_of_noise_is_refused(source: Any) -> None:
    with pytest.raises(InputError, match=r"randomness is .*; allowed: a source of graphveil.privacy: Secure"):
        require_randomness(source)
    for mine in (SecureRandomness(), SeededRandomness(1)):
        require_randomness(mine)
