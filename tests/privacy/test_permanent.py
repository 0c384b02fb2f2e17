"""Permanent randomness: the same context gives the same words, another one others, and no secret is ever shown."""

from __future__ import annotations

import copy
import os
import pickle

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from graphveil.errors import InputError
from graphveil.privacy import PermanentRandomness, Randomness

SECRET = bytes(range(32))


def words(task: str = "survey", *context: str | int | bytes, secret: bytes = SECRET) -> bytes:
    return PermanentRandomness(secret, task).stream(*context).uint64(4).tobytes()


def test_the_same_context_gives_the_same_words_on_every_device_start() -> None:
    device = PermanentRandomness(SECRET, "survey")
    stream: Randomness = device.stream("age", 3)
    assert stream.void is None
    first = stream.uint64(1000)
    assert np.array_equal(first, PermanentRandomness(SECRET, "survey").stream("age", 3).uint64(1000))
    assert np.array_equal(first[:10], device.stream("age", 3).uint64(10))
    assert not np.array_equal(first, stream.uint64(1000))


def test_words_are_those_that_the_definition_gives() -> None:
    """For devices written in another language: HKDF-SHA256 over kind, length and text of each part; ChaCha20."""
    parts = (("s", "noise"), ("s", "survey"), ("s", "age"), ("i", "3"), ("b", "xy"))
    context = b"".join(kind.encode() + len(text).to_bytes(8, "little") + text.encode() for kind, text in parts)
    key = HKDF(hashes.SHA256(), 32, salt=None, info=b"graphveil/permanent/1" + context).derive(SECRET)
    expected = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(32))
    assert words("survey", "age", 3, b"xy") == expected
    assert expected.hex()[:16] == "a12962090a6a238d"


def test_any_other_context_task_or_secret_gives_other_words() -> None:
    """Also where the parts would read alike if they were strung together."""
    texts: list[tuple[str | int | bytes, ...]] = [(), ("a",), ("ab",), ("a", "b"), ("", "ab"), ("ab", "")]
    contexts = [*texts, ("a", b"b"), (b"ab",), (1,), ("1",), (11,), (1, 1)]
    seen = {words("survey", *context) for context in contexts}
    seen |= {words("other", "a"), words("survey", "a", secret=os.urandom(32))}
    assert len(seen) == len(contexts) + 2


def test_tags_tell_nothing_without_the_secret() -> None:
    device = PermanentRandomness(SECRET, "survey")
    assert device.tag("age", 3) == device.tag("age", 3) != device.tag("age", 4)
    assert device.tag("age", 3) != PermanentRandomness(bytes(32), "survey").tag("age", 3)
    assert len(device.tag("age", 3)) == 16
    assert bytes.fromhex(device.tag("age", 3)) != words("survey", "age", 3)[:8]


def test_no_secret_is_shown_copied_or_saved() -> None:
    device = PermanentRandomness(SECRET, "survey")
    assert repr(device) == "PermanentRandomness(task='survey')"
    assert repr(device.stream("age")) == "KeyedStream()"
    for source in (device, device.stream("age")):
        for save in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                save(source)


@pytest.mark.parametrize("secret", [b"", bytes(31), "x" * 32, 7, bytearray(32)])
def test_a_seed_is_no_secret(secret: object) -> None:
    with pytest.raises(InputError, match=r"32 bytes of os\.urandom") as refused:
        PermanentRandomness(secret, "survey")  # type: ignore[arg-type]
    assert "xxx" not in str(refused.value)


def test_a_task_has_a_name_and_a_stream_no_negative_length() -> None:
    with pytest.raises(InputError, match="task"):
        PermanentRandomness(SECRET, " ")
    with pytest.raises(InputError, match="at least 0"):
        PermanentRandomness(SECRET, "survey").stream().uint64(-1)
