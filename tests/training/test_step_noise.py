"""The noise of steps: a key each from one secret, the same bits on every device, and never twice."""

from __future__ import annotations

import os

import pytest
import torch
from torch import Tensor, nn

from graphveil.errors import InputError
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import BlockNoise, SecureRandomness, SeededRandomness
from graphveil.training import PrivateDescent, PrivateSchedule, train_privately
from graphveil.training.dp_sgd import Streamed
from graphveil.training.noisy_updates import StepNoise
from tests.pretended import pretended_gpu
from tests.training.test_dp_sgd import SCHEDULE, Fixed, perceptron, samples

LAW = RoundedNormal(300.0, 3600)


def noises(device: str, steps: int, source: object, at_once: int = 1000) -> list[Tensor]:
    """The noise of some steps, each added to zeros."""
    noise, drawn = StepNoise(LAW, at_once=at_once), []
    for step in range(steps):
        totals = torch.zeros(500, dtype=torch.float64, device=device)
        noise.add_to(totals, source, steps=steps - step)  # type: ignore[arg-type]
        drawn.append(totals.cpu())
    return drawn


def test_a_step_has_the_noise_of_its_own_key() -> None:
    secret = BlockNoise(SeededRandomness(1))
    for step, drawn in enumerate(noises("cpu", 4, SeededRandomness(1))):
        assert drawn.tolist() == LAW.draw(500, secret.key("step", step).stream()).tolist()


@pytest.mark.parametrize(("at_once", "waits"), [(1 << 22, 1), (1000, 2), (1, 3)])
def test_a_gpu_draws_the_same_bits_some_steps_at_a_time(at_once: int, waits: int) -> None:
    """One reading each time, beside those of the test."""
    expected = noises("cpu", 3, SeededRandomness(2))
    with pretended_gpu() as gpu:
        drawn = noises("cuda", 3, SeededRandomness(2), at_once)
        assert gpu.waits.total() == waits + 3
    assert all(torch.equal(left, right) for left, right in zip(drawn, expected, strict=True))
    assert not torch.equal(drawn[0], drawn[1])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_another_source_gives_noise_of_its_own(device: str) -> None:
    """Also on a GPU, where noise of the first source was drawn ahead."""
    noise = StepNoise(LAW)
    with pretended_gpu():
        drawn = []
        for seed in (1, 2):
            totals = torch.zeros(500, device=device)
            noise.add_to(totals, SeededRandomness(seed), steps=3)
            drawn.append(totals.cpu())
    for seed, own in zip((1, 2), drawn, strict=True):
        assert torch.equal(own, noises("cpu", 1, SeededRandomness(seed))[0].float())


def test_a_forked_process_gets_no_noise_of_its_parents() -> None:
    """Both would add the same to sums of other data, also where it was drawn ahead."""
    noise, source = StepNoise(LAW), SecureRandomness()
    noise.add_to(torch.zeros(5), source, steps=2)
    receiver, sender = os.pipe()
    child = os.fork()
    if not child:
        try:
            noise.add_to(torch.zeros(5), source, steps=1)
        except InputError:
            os.write(sender, b"refused")
        finally:
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    os.close(sender)
    assert os.read(receiver, 7) == b"refused"


# ---- private gradient descent on a GPU that is not there ----


@pytest.mark.slow  # seconds
@pytest.mark.parametrize(("count", "rate", "gone"), [(200, 0.5, (0, 3, 77, 199)), (9000, 0.01, (3, 8195, 8999))])
def test_removing_one_sample_moves_the_sum_by_its_own_part_only(count: int, rate: float, gone: tuple[int, ...]) -> None:
    """Same dither, one sample less: the change is that sample, exactly. Of 9,000 samples some share a place."""
    x, y = samples(count, 20, 4)
    x[3] = torch.nan
    schedule = PrivateSchedule(**{**SCHEDULE, "rate": rate})
    behind = torch.arange(min(count, 8192), min(count, 8262))
    everybody = torch.cat([torch.arange(150), behind, torch.tensor(gone)]).unique()
    with pretended_gpu() as gpu:
        descent = PrivateDescent(perceptron(20, 16, 4).to("cuda"), x, y, schedule)
        whole = descent.clipped_sums(everybody, Fixed())
        assert gpu.holds(whole)
        for sample in gone:
            rest = descent.clipped_sums(everybody[everybody != sample], Fixed()).cpu()
            alone = descent.clipped_sums(torch.tensor([sample]), Fixed()).cpu()
            assert torch.equal(whole.cpu() - rest, alone)
            assert float(alone.norm()) <= schedule.grid.cap
            assert bool(alone.any()) == (sample != 3)
    here = PrivateDescent(perceptron(20, 16, 4), x, y, schedule).clipped_sums(everybody, Fixed())
    assert torch.allclose(whole.on_cpu, here.double(), atol=40)  # type: ignore[attr-defined]


def trained(device: str, x: Tensor | Streamed, y: Tensor, steps: int) -> Tensor:
    """The first weights after some steps, on the CPU."""
    model = perceptron(20, 16, 4).to(device)
    schedule = PrivateSchedule(**{**SCHEDULE, "steps": steps})
    assert train_privately(model, x, y, schedule, randomness=SeededRandomness(6)) == steps
    return model[0].weight.detach().cpu()


@pytest.mark.slow  # seconds
@pytest.mark.parametrize("streamed", [False, True])
def test_a_training_has_the_noise_and_the_batches_of_the_cpu(streamed: bool) -> None:
    """Also of rows that are made when a batch has them."""
    x, y = samples(300, 20, 4)
    inputs = Streamed((300, 20), lambda places: x[places]) if streamed else x
    with pretended_gpu():
        there = trained("cuda", inputs, y, 4)
    assert torch.allclose(there, trained("cpu", x, y, 4), atol=1e-4)


@pytest.mark.slow  # seconds
def test_the_cpu_waits_once_however_long_a_training_is() -> None:
    """For the noise, which is drawn some steps ahead; the choice of batches and the dither wait for nothing."""
    x, y = samples(300, 20, 4)
    waits = []
    for steps in (3, 12):
        with pretended_gpu() as gpu:
            model = perceptron(20, 16, 4).to("cuda")
            descent = PrivateDescent(model, x, y, PrivateSchedule(**{**SCHEDULE, "steps": steps}))
            before = gpu.waits.total()
            source = SeededRandomness(1)
            for _ in range(steps):
                descent.step(source)
            waits.append(gpu.waits.total() - before)
    assert waits == [1, 1]


def test_dropout_leaves_the_callers_numbers_alone() -> None:
    x, y = samples(300, 20, 4)
    model = nn.Sequential(*perceptron(20, 16, 4), nn.Dropout(0.5))
    torch.manual_seed(0)
    first = torch.rand(1)
    with pretended_gpu():
        descent = PrivateDescent(model.to("cuda"), x, y, PrivateSchedule(**SCHEDULE))
        torch.manual_seed(0)
        descent.step(SeededRandomness(1))
        assert torch.equal(torch.rand(1), first)
