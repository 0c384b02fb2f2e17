"""Masks that add up to zero: over all holders, for any shape and label, and only once for each label."""

from __future__ import annotations

import hashlib

import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.errors import DataError, InputError
from graphveil.federation.core.messages import simulate
from graphveil.federation.crypto.commitments import Commitment
from graphveil.federation.crypto.masks import MaskKey, ZeroSum, agree_on_masks, as_message
from graphveil.federation.effects import Receive, Roster, Send
from graphveil.privacy import SecureRandomness, SeededRandomness

NAMES = ("a", "b", "c", "d", "e")


def agreed(holders: int, seed: int = 0) -> dict[str, ZeroSum]:
    """The masks of all holders after they exchanged keys, and nothing else on the wire."""
    names = NAMES[:holders]
    programs = {
        name: agree_on_masks(Roster(name, names), randomness=SeededRandomness(seed + place))
        for place, name in enumerate(names)
    }
    masks, transcript = simulate(programs)
    assert {entry.kind for entry in transcript.entries} == {"holder-key"}
    assert len(transcript.entries) == holders * (holders - 1)
    return masks


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 5), st.lists(st.integers(0, 5), max_size=3), st.text(max_size=8), st.integers(0, 999))
def test_masks_of_all_holders_add_up_to_zero(holders: int, shape: list[int], label: str, seed: int) -> None:
    masks = [zero.mask(label, tuple(shape)) for zero in agreed(holders, seed).values()]
    assert all(mask.shape == tuple(shape) and mask.dtype == torch.int64 for mask in masks)
    assert int(torch.stack(masks).sum(dim=0).abs().sum()) == 0


@pytest.mark.parametrize("point", [bytes(32), (1).to_bytes(32, "little"), (2**255 - 20).to_bytes(32, "little")])
def test_a_key_of_small_order_is_refused_by_its_senders_name(point: bytes) -> None:
    """The shared secret of such a point is 0 for everybody (RFC 7748, section 6.1): anybody could take the mask off."""
    talk = agree_on_masks(Roster("a", ("a", "b")), randomness=SecureRandomness())
    assert isinstance(next(talk), Send)
    assert next(talk) == Receive("b", "holder-key", (32,))
    with pytest.raises(DataError, match="b: sent an invalid key"):
        talk.send(torch.frombuffer(bytearray(point), dtype=torch.uint8))


def test_a_public_key_swapped_on_the_way_gives_masks_that_do_not_cancel() -> None:
    """Names and public keys are bound into the keys: who sits between two holders is noticed by their sum."""
    names = ("a", "b")
    talks = {name: agree_on_masks(Roster(name, names), randomness=SeededRandomness(ord(name))) for name in names}
    keys = {}
    for name in names:
        sent = next(talks[name])
        assert isinstance(sent, Send)
        keys[name] = sent.body
        next(talks[name])
    keys["a"] = keys["a"].clone()
    keys["a"][0] ^= 8
    masks = []
    for name, other in (("a", "b"), ("b", "a")):
        with pytest.raises(StopIteration) as ended:
            talks[name].send(keys[other])
        masks.append(ended.value.value.mask("x", (20,)))
    assert not bool((masks[0] + masks[1] == 0).any())


def test_a_mask_is_the_documented_stream() -> None:
    """AES-256 in counter mode under SHA-256 of purpose, key and label, as words of 64 bits, least byte first."""
    secret = bytes(range(32))
    key = hashlib.sha256(b"graphveil/mask/1" + secret + b"r step 3").digest()
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(8 * 12))
    words = [int.from_bytes(stream[at : at + 8], "little", signed=True) for at in range(0, 96, 8)]
    assert MaskKey(secret).expand("r step 3", (3, 4)).flatten().tolist() == words


@pytest.mark.parametrize("length", [0, 16, 33])
def test_a_mask_key_has_the_length_of_its_cipher_and_is_never_shown(length: int) -> None:
    with pytest.raises(InputError, match=f"a mask key of {length} bytes; allowed: 32 bytes"):
        MaskKey(bytes(length))
    assert repr(MaskKey(b"k" * 32)) == "MaskKey()"


def test_a_long_mask_begins_as_a_short_one() -> None:
    """Over the boundary of 2^20 bytes at which the stream is written in parts."""
    key = MaskKey.fresh(SeededRandomness(1))
    long = key.expand("x", (1 << 17, 2))
    assert torch.equal(key.expand("x", (1000,)), long.flatten()[:1000])
    assert len(torch.unique(long)) == long.numel()
    assert key.expand("x", (0, 7)).shape == (0, 7)


FIXED, SHARE = torch.arange(6), torch.arange(4)


def committed(seed: int, fixed: torch.Tensor = FIXED) -> Commitment:
    return Commitment.of([fixed], SeededRandomness(seed).bytes(32))


def test_another_salt_share_or_state_has_another_commitment_and_a_restart_the_same() -> None:
    commitments = [
        committed(1).to(SHARE),
        committed(2).to(SHARE),
        committed(1).to(SHARE + 1),
        committed(1, FIXED + 1).to(SHARE),
    ]
    assert len(set(commitments)) == 4
    salt = as_message(SeededRandomness(1).bytes(32))  # as in a checkpoint
    assert Commitment.of([FIXED], salt.numpy().tobytes()).to(SHARE) == commitments[0]
