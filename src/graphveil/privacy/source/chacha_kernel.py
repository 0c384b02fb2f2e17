"""ChaCha20 in a kernel: the words of many keys at once, on the GPU where they are used.

    number 16 b + w of a stream = word w of block b = ChaCha20(key; counter b, nonce)

They are the words of `randomness.open_stream`, bit for bit, so noise does not depend on where it is made. The
generators of tensor libraries are no substitute: their output predicts what follows. Kernels are written in
Triton, which torch brings along where it is built for CUDA; its interpreter runs them on a CPU for tests.

Source: Y. Nir, A. Langley, RFC 8439 (2018), sections 2.1 to 2.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from graphveil.errors import InputError
from graphveil.privacy.source.derived import BlockKey

#: How kernels are compiled: a product and a sum that are fused round once where the CPU rounds twice.
EXACT: Final[dict[str, Any]] = {"enable_fp_fusion": False}
_BLOCKS: Final = 64


@triton.jit
def _quarter(a, b, c, d):
    """A quarter round (RFC 8439, section 2.1)."""
    a += b
    d ^= a
    d = (d << 16) | (d >> 16)
    c += d
    b ^= c
    b = (b << 12) | (b >> 20)
    a += b
    d ^= a
    d = (d << 8) | (d >> 24)
    c += d
    b ^= c
    b = (b << 7) | (b >> 25)
    return a, b, c, d


@triton.jit
def chacha(keys, key, counter, nonce, BLOCKS: tl.constexpr):
    """The numbers of blocks, in the order in which they lie in their streams, uint32 [16 m].

    Args:
        keys: int32 [n, 8].
        key: which key each block uses, int64 [m].
        counter: the number of each block in its stream, int64 [m].
        nonce: which stream of a key.
    """
    k0 = tl.load(keys + 8 * key).to(tl.uint32, bitcast=True)
    k1 = tl.load(keys + 8 * key + 1).to(tl.uint32, bitcast=True)
    k2 = tl.load(keys + 8 * key + 2).to(tl.uint32, bitcast=True)
    k3 = tl.load(keys + 8 * key + 3).to(tl.uint32, bitcast=True)
    k4 = tl.load(keys + 8 * key + 4).to(tl.uint32, bitcast=True)
    k5 = tl.load(keys + 8 * key + 5).to(tl.uint32, bitcast=True)
    k6 = tl.load(keys + 8 * key + 6).to(tl.uint32, bitcast=True)
    k7 = tl.load(keys + 8 * key + 7).to(tl.uint32, bitcast=True)
    zero = k0 ^ k0
    # "expand 32-byte k"
    c0, c1, c2, c3 = zero + 0x61707865, zero + 0x3320646E, zero + 0x79622D32, zero + 0x6B206574
    low, high = counter.to(tl.uint32), (counter >> 32).to(tl.uint32)
    own = zero + nonce
    x0, x1, x2, x3, x4, x5, x6, x7 = c0, c1, c2, c3, k0, k1, k2, k3
    x8, x9, x10, x11, x12, x13, x14, x15 = k4, k5, k6, k7, low, high, own, zero
    for _ in range(10):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    # Pairs of pairs: the last axis is the lowest bit of a word's number.
    first = _quartet(x0 + c0, x1 + c1, x2 + c2, x3 + c3)
    second = _quartet(x4 + k0, x5 + k1, x6 + k2, x7 + k3)
    third = _quartet(x8 + k4, x9 + k5, x10 + k6, x11 + k7)
    fourth = _quartet(x12 + low, x13 + high, x14 + own, x15)
    whole = tl.join(tl.join(first, third), tl.join(second, fourth))
    return tl.reshape(tl.permute(whole, (0, 3, 4, 1, 2)), [16 * BLOCKS])


@triton.jit
def _quartet(a, b, c, d):
    """Four vectors [m] in one tensor [m, 2, 2]."""
    return tl.join(tl.join(a, c), tl.join(b, d))


@triton.jit
def _numbers(keys, out, nonce, first, count, tiles, BLOCKS: tl.constexpr):
    program = tl.program_id(0)
    tile = (program % tiles).to(tl.int64)
    blocks = tile * BLOCKS + tl.arange(0, BLOCKS)
    key = tl.zeros([BLOCKS], tl.int32) + program // tiles
    words = chacha(keys, key, first + blocks, nonce, BLOCKS)
    positions = tile * (16 * BLOCKS) + tl.arange(0, 16 * BLOCKS)
    row = (program // tiles).to(tl.int64) * count
    tl.store(out + row + positions, words.to(tl.int32, bitcast=True), mask=positions < count)


@torch.library.custom_op("graphveil::cipher_numbers", mutates_args=())
def cipher_numbers(keys: Tensor, nonce: int, first: int, count: int) -> Tensor:
    """Return consecutive 32-bit numbers of every key's stream, int32 [n, count].

    Args:
        keys: int32 [n, 8].
        nonce: which stream of a key, below 2^31.
        first: the block to begin with.
        count: how many numbers.
    """
    out = torch.empty((len(keys), count), dtype=torch.int32, device=keys.device)
    tiles = max(1, -(-count // (16 * _BLOCKS)))
    if out.numel():
        _numbers[(len(keys) * tiles,)](keys, out, nonce, first, count, tiles, BLOCKS=_BLOCKS, num_warps=2, **EXACT)
    return out


def keys_on(keys: Iterable[BlockKey], device: torch.device | str) -> Tensor:
    """Return the keys of blocks as kernels read them, int32 [n, 8]. They lie on the device: the caller wipes them after
    use (`zero_`), since freed device memory is handed to the next program as it is.
    """
    numbers = np.frombuffer(b"".join(key.key for key in keys), "<i4").reshape(-1, 8)
    return torch.from_numpy(numbers.copy()).to(device)


def refuse_recording(device: torch.device) -> None:
    """Refuse with InputError to draw noise while a device records work to run it again: each run would draw the same
    noise.
    """
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        raise InputError("noise inside a CUDA graph", remedy="draw it between runs of the graph: each has its own")
