"""Private gradient descent on a GPU that is not there: what one sample can change, and how often the CPU waits."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from graphveil.privacy import SeededRandomness
from graphveil.training import PrivateDescent, PrivateSchedule, train_privately
from graphveil.training.streamed import Streamed
from tests.pretended import pretended_gpu
from tests.training.test_dp_sgd import SCHEDULE, Fixed, flat, perceptron, samples


def moved(model: nn.Module) -> nn.Module:
    return model.to("cuda")


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
        descent = PrivateDescent(moved(perceptron(20, 16, 4)), x, y, schedule)
        whole = flat(descent.clipped_sums(everybody, Fixed()))
        assert gpu.holds(whole)
        for one in gone:
            rest = flat(descent.clipped_sums(everybody[everybody != one], Fixed())).cpu()
            alone = flat(descent.clipped_sums(torch.tensor([one]), Fixed())).cpu()
            assert torch.equal(whole.cpu() - rest, alone)
            assert float(alone.norm()) <= schedule.grid.cap
            assert bool(alone.any()) == (one != 3)
    here = flat(PrivateDescent(perceptron(20, 16, 4), x, y, schedule).clipped_sums(everybody, Fixed()))
    assert torch.allclose(whole.held, here, atol=40)  # type: ignore[attr-defined]


def trained(device: str, x: Tensor | Streamed, y: Tensor, steps: int) -> Tensor:
    """The first weights after some steps, on the CPU."""
    model = perceptron(20, 16, 4).to(device)
    schedule = PrivateSchedule(**{**SCHEDULE, "steps": steps})
    assert train_privately(model, x, y, schedule, randomness=SeededRandomness(6)) == steps
    weight: Tensor = model[0].weight.detach().cpu()
    return weight


@pytest.mark.slow  # seconds
@pytest.mark.parametrize("made", [False, True])
def test_a_training_has_the_noise_and_the_batches_of_the_cpu(made: bool) -> None:
    """Also of rows that are made when a batch has them."""
    x, y = samples(300, 20, 4)
    inputs = Streamed((300, 20), lambda places: x[places]) if made else x
    with pretended_gpu():
        there = trained("cuda", inputs, y, 4)
    assert torch.allclose(there, trained("cpu", x, y, 4), atol=1e-4)


@pytest.mark.slow  # seconds
def test_the_cpu_waits_twice_however_long_a_training_is() -> None:
    """For the noise, which is drawn some steps ahead; the choice of batches and the dither wait for nothing."""
    x, y = samples(300, 20, 4)
    waits = []
    for steps in (3, 12):
        with pretended_gpu() as gpu:
            model = moved(perceptron(20, 16, 4))
            descent = PrivateDescent(model, x, y, PrivateSchedule(**{**SCHEDULE, "steps": steps}))
            before = gpu.waits.total()
            source = SeededRandomness(1)
            for _ in range(steps):
                descent.step(source)
            waits.append(gpu.waits.total() - before)
    assert waits == [2, 2]


def test_dropout_leaves_the_callers_numbers_alone() -> None:
    x, y = samples(300, 20, 4)
    model = nn.Sequential(*perceptron(20, 16, 4), nn.Dropout(0.5))
    torch.manual_seed(0)
    first = torch.rand(1)
    with pretended_gpu():
        descent = PrivateDescent(moved(model), x, y, PrivateSchedule(**SCHEDULE))
        torch.manual_seed(0)
        descent.step(SeededRandomness(1))
        assert torch.equal(torch.rand(1), first)
