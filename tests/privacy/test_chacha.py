"""ChaCha20: published vectors, on the CPU and in the kernel, and keys of blocks that no two outputs share."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.privacy import BlockKey, BlockNoise, SeededRandomness
from graphveil.privacy.source.randomness import open_stream
from tests import pretended  # noqa: F401 (kernels run by the interpreter where there is no GPU)

kernel = pytest.importorskip(
    "graphveil.privacy.source.chacha_kernel", reason="Triton is not installed", exc_type=ImportError
)

#: RFC 8439, appendix A.1, vectors 1 to 4, whose nonces are all zero: key, counter, and the block.
VECTORS = [
    (
        "00" * 32,
        0,
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    (
        "00" * 32,
        1,
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
    (
        "00" * 31 + "01",
        1,
        "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
        "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
    ),
    (
        "00ff" + "00" * 30,
        2,
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
]


def there(keys: list[BlockKey], nonce: int, first: int, count: int) -> np.ndarray:
    """Numbers of streams by the kernel."""
    numbers: np.ndarray = kernel.cipher_numbers(kernel.keys_on(keys, "cpu"), nonce, first, count).numpy()
    return numbers


@pytest.mark.parametrize(("key", "counter", "block"), VECTORS)
def test_published_vectors(key: str, counter: int, block: str) -> None:
    assert open_stream(bytes.fromhex(key), block=counter).update(bytes(64)).hex() == block
    assert there([BlockKey(bytes.fromhex(key))], 0, counter, 16).tobytes().hex() == block


@pytest.mark.parametrize(("nonce", "first", "count"), [(0, 0, 1), (1, 3, 4000), (7, 2**33 + 5, 100), (0, 0, 0)])
def test_numbers_of_the_kernel_are_those_of_the_stream(nonce: int, first: int, count: int) -> None:
    """Counters of more than 32 bits, too; what differs in one bit of key, nonce or counter is told apart."""
    keys = list(BlockNoise(SeededRandomness(1)).keys(3))
    for key, numbers in zip(keys, there(keys, nonce, first, count), strict=True):
        assert numbers.tobytes() == open_stream(key.key, nonce, block=first).update(bytes(4 * count))
        for other in (open_stream(key.key, nonce + 1, block=first), open_stream(key.key, nonce, block=first + 1)):
            assert count == 0 or numbers.tobytes() != other.update(bytes(4 * count))


def test_blocks_have_keys_of_their_own_each_once() -> None:
    """32 bytes each of the words of their context's key, which makes no noise itself."""
    noise = BlockNoise(SeededRandomness(1))
    first, second = (list(noise.keys(3, context)) for context in ("a", "b"))
    whole = BlockNoise(SeededRandomness(1)).key("a").stream().bytes(96)
    assert b"".join(key.key for key in first) == whole
    assert len({key.key for key in first + second}) == 6
    for again in (lambda: list(noise.keys(1, "a")), lambda: noise.key("a")):
        with pytest.raises(InputError, match="asked for twice"):
            again()


def test_no_noise_is_recorded_to_be_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CUDA graph repeats its work with the same keys, on other data."""
    gpu = SimpleNamespace(type="cuda")
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(InputError, match="noise inside a CUDA graph"):
        kernel.refuse_recording(gpu)
    kernel.refuse_recording(torch.device("cpu"))
