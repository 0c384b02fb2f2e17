"""AES-256 in tensor arithmetic: published vectors, and the words of `KeyedStream` at every place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.privacy import BlockKey, BlockNoise, SeededRandomness
from graphveil.privacy.source.aes_words import KeyStreams, encrypt

#: NIST SP 800-38A, section F.1.5 and F.5.5: the key, four blocks of text, and what becomes of them.
KEY = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
TEXT, BY_ITSELF, COUNTED = (
    [text[at : at + 32] for at in range(0, 128, 32)]
    for text in (
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
        "f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870"
        "b6ed21b99ca6f4f9f153e7b1beafed1d23304b7a39f9f3ff067d8d8f9e24ecc7",
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
        "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6",
    )
)
FIRST = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"


def blocks(texts: Sequence[str]) -> Tensor:
    """Blocks as the cipher takes them, uint8 [16, blocks]."""
    return torch.tensor([list(bytes.fromhex(text)) for text in texts], dtype=torch.uint8).T


def under(key: str, state: Tensor) -> Tensor:
    streams = KeyStreams.of([BlockKey(bytes.fromhex(key))], "cpu")
    return encrypt(streams.round_keys, streams.substitutes, state)


def test_blocks_by_themselves() -> None:
    """FIPS 197, appendix C.3, and the blocks above."""
    encrypted = under(bytes(range(32)).hex(), blocks(("00112233445566778899aabbccddeeff",)))
    assert torch.equal(encrypted, blocks(("8ea2b7ca516745bfeafc49904b496089",)))
    assert torch.equal(under(KEY, blocks(TEXT)), blocks(BY_ITSELF))


def test_counted_blocks() -> None:
    """The first counter ends in ff, and the one after it carries into all bytes that are printed here as fe."""
    carried = (FIRST, *(f"f0f1f2f3f4f5f6f7f8f9fafbfcfdff{last:02x}" for last in range(3)))
    assert torch.equal(under(KEY, blocks(carried)) ^ blocks(TEXT), blocks(COUNTED))


@pytest.fixture
def keys() -> list[BlockKey]:
    return list(BlockNoise(SeededRandomness(1)).keys(3))


def stream(key: BlockKey, words: int) -> np.ndarray:
    return key.stream().uint64(words).view(np.int32)


@pytest.mark.parametrize(("first", "count"), [(0, 1), (4, 2), (600, 3), (0, 5), (4, 4096)])
def test_numbers_are_those_of_the_stream(keys: list[BlockKey], first: int, count: int) -> None:
    computed = KeyStreams.of(keys, "cpu").numbers(first, count)
    for key, numbers in zip(keys, computed, strict=True):
        assert (numbers.numpy() == stream(key, 3000)[first:][:count]).all()


def test_single_words_are_those_of_the_stream(keys: list[BlockKey]) -> None:
    key, word = torch.tensor([2, 0, 2, 1]), torch.tensor([0, 1, 999, 500])
    expected = [stream(keys[k], 1000)[2 * w + 1] for k, w in zip(key.tolist(), word.tolist(), strict=True)]
    assert KeyStreams.of(keys, "cpu").upper_halves(key, word).tolist() == expected
    none = torch.zeros(0, dtype=torch.int64)
    assert KeyStreams.of(keys, "cpu").upper_halves(none, none).shape == (0,)


def test_numbers_far_from_the_first(keys: list[BlockKey]) -> None:
    """Counters of more than 32 bits: the block's number as the standard writes it, encrypted by itself."""
    place = 2**33 + 5
    state = torch.tensor(list(place.to_bytes(16, "big")), dtype=torch.uint8)[:, None]
    streams = KeyStreams.of(keys[:1], "cpu")
    expected = bytes(encrypt(streams.round_keys, streams.substitutes, state).ravel().tolist())
    assert streams.numbers(4 * place, 4).numpy().tobytes() == expected


def test_a_cipher_with_a_wrong_round_key_or_table_is_noticed(keys: list[BlockKey]) -> None:
    right = KeyStreams.of(keys, "cpu")
    for weakened in (
        replace(right, round_keys=right.round_keys.index_fill(0, torch.tensor([14]), 0)),
        replace(right, substitutes=torch.arange(256).to(torch.uint8)),
    ):
        weak = weakened.numbers(0, 8)
        assert not any((numbers.numpy() == stream(key, 4)).all() for key, numbers in zip(keys, weak, strict=True))


def test_keys_are_not_shown(keys: list[BlockKey]) -> None:
    assert repr(KeyStreams.of(keys, "cpu")) == "KeyStreams()"
