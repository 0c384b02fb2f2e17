"""Noise of blocks: independent streams from one secret that is given to nobody, each handed out once."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from multiprocessing.connection import Connection

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from graphveil.errors import InputError
from graphveil.privacy import BlockNoise, SecureRandomness, SeededRandomness


def words(noise: BlockNoise, *context: str | int) -> bytes:
    return noise.key(*context).stream().uint64(4).tobytes()


def test_a_block_has_the_same_noise_whenever_it_is_asked_for() -> None:
    """Order and number of other blocks do not matter."""
    first, second = (BlockNoise(SeededRandomness(1)) for _ in range(2))
    bits = {block: words(first, block) for block in range(5)}
    assert bits == {block: words(second, block) for block in (4, 2, 0, 1, 3)}
    assert (
        len({*bits.values(), words(BlockNoise(SecureRandomness()), 0), words(BlockNoise(SecureRandomness()), 0)}) == 7
    )


def test_words_are_those_that_the_definition_gives() -> None:
    secret = SeededRandomness(3).bytes(32)
    context = b"".join(kind + len(text).to_bytes(8, "little") + text for kind, text in ((b"s", b"hop"), (b"i", b"12")))
    key = HKDF(hashes.SHA256(), 32, salt=None, info=b"graphveil/block-noise/1" + context).derive(secret)
    expected = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(32))
    assert words(BlockNoise(SeededRandomness(3)), "hop", 12) == expected
    # Reproducible noise stays void.
    assert BlockNoise(SeededRandomness(1)).key(0).stream().void == SeededRandomness(1).void is not None
    assert BlockNoise(SecureRandomness()).key(0).stream().void is None


def test_no_block_is_given_out_twice() -> None:
    """The difference of two outputs under the same noise would be exact."""
    noise = BlockNoise(SecureRandomness())
    for context in ((1, 2), ("1", 2), (12,)):
        noise.key(*context)
        with pytest.raises(InputError, match="asked for twice"):
            noise.key(*context)


def draw_again(noise: BlockNoise, pipe: Connection) -> None:
    try:
        noise.key(0)
    except InputError:
        pipe.send("refused")
    else:
        pipe.send("drawn")


def test_a_forked_process_cannot_repeat_the_noise() -> None:
    noise, fork = BlockNoise(SecureRandomness()), multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    child = fork.Process(target=draw_again, args=(noise, sender))
    child.start()
    assert receiver.recv() == "refused"
    child.join()
    noise.key(0)


def test_the_secret_is_never_shown_or_copied() -> None:
    secret = SeededRandomness(5).bytes(32)
    noise = BlockNoise(SeededRandomness(5))
    key = noise.key(0)
    assert repr(noise) == "BlockNoise()" and key.key.hex() not in repr(key) and repr(key.key) not in repr(key)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            attempt(noise)
        with pytest.raises(TypeError):
            attempt(key.stream())
    # Workers are handed this, and it leads to one block alone.
    assert secret not in pickle.dumps(key)
