"""The noise of steps: a key each from one secret, the same bits on every device, and never twice."""

from __future__ import annotations

import os

import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import BlockNoise, SecureRandomness, SeededRandomness
from graphveil.training.step_noise import StepNoise
from tests.pretended import pretended_gpu

LAW = RoundedNormal(300.0, 3600)


def noises(device: str, steps: int, source: object, size: int = 500) -> list[Tensor]:
    """The noise of some steps, each added to zeros."""
    noise, found = StepNoise(LAW), []
    for step in range(steps):
        totals = torch.zeros(size, dtype=torch.float64, device=device)
        noise.add_to(totals, source, steps=steps - step)  # type: ignore[arg-type]
        found.append(totals.cpu())
    return found


def test_a_step_has_the_noise_of_its_own_key() -> None:
    secret = BlockNoise(SeededRandomness(1))
    for step, found in enumerate(noises("cpu", 4, SeededRandomness(1))):
        assert found.tolist() == LAW.draw(500, secret.key("step", step).stream()).tolist()


# The second takes 3 CPU s: two steps at once are 2^22 draws.
@pytest.mark.parametrize(
    ("size", "waits"), [(500, 2), (1 << 21, 4), pytest.param((1 << 22) + 4, 6, marks=pytest.mark.slow)]
)
def test_a_gpu_draws_the_same_bits_some_steps_at_a_time(size: int, waits: int) -> None:
    """So many steps at once as make 2^22 draws; two readings each time, beside those of the test."""
    expected = noises("cpu", 3, SeededRandomness(2), size)
    with pretended_gpu() as gpu:
        found = noises("cuda", 3, SeededRandomness(2), size)
        assert gpu.waits.total() == waits + 3
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    assert not torch.equal(found[0], found[1])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_another_source_gives_noise_of_its_own(device: str) -> None:
    """Also on a GPU, where noise of the first source was drawn ahead."""
    noise = StepNoise(LAW)
    with pretended_gpu():
        found = []
        for seed in (1, 2):
            totals = torch.zeros(500, device=device)
            noise.add_to(totals, SeededRandomness(seed), steps=3)
            found.append(totals.cpu())
    for seed, own in zip((1, 2), found, strict=True):
        assert torch.equal(own, noises("cpu", 1, SeededRandomness(seed))[0].float())


def test_a_forked_process_gets_no_noise_of_its_parents() -> None:
    """Both would add the same to sums of other data."""
    noise, source = StepNoise(LAW), SecureRandomness()
    noise.add_to(torch.zeros(5), source, steps=2)
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        try:
            noise.add_to(torch.zeros(5), source, steps=1)
        except InputError:
            os.write(tell, b"refused")
        finally:
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    assert os.read(told, 7) == b"refused"
