"""Methods on a GPU that is not there: all tensors of a training on one device, and one reading an epoch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.methods import DPDGC, GAP, GCON, Caribou, Eclipse, LPGNet
from graphveil.privacy import SeededRandomness
from tests.methods.on_gpu import METHODS, fitted, people
from tests.pretended import pretended_gpu

SLOW = {"label-pool", "class-sums", "gap, node", "progap, node"}


def marked(names: Iterable[str]) -> list[Any]:
    """The names as parameters of a test, slow ones marked."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in names]


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("name", marked(METHODS))
def test_a_fit_mixes_no_devices_and_predicts_what_the_cpu_does(name: str) -> None:
    """The pretended GPU computes as the CPU does, but for products in torch's kernels in place of compiled loops."""
    with pretended_gpu() as gpu:
        found = fitted(name, "cuda", epochs=2).predict_proba()
        assert not gpu.holds(found)
        assert gpu.waits
    expected = fitted(name, "cpu", epochs=2).predict_proba()
    assert torch.allclose(torch.as_tensor(found), torch.as_tensor(expected), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "readings"),
    [
        ("lpgnn", 1),
        ("lpgnn, gat", 1),
        ("solitude", 2),
        ("gap", 2),
        ("progap", 3),
        pytest.param("class-sums", 2, marks=pytest.mark.slow),
    ],
)
def test_an_epoch_of_a_network_is_read_once(name: str, readings: int) -> None:
    """Once for each network; solitude's also where it trains the edges."""
    waits = []
    for epochs in (2, 5):
        with pretended_gpu() as gpu:
            fitted(name, "cuda", epochs=epochs)
            waits.append(gpu.waits.total())
    assert waits[1] - waits[0] == 3 * readings


def test_what_was_trained_on_a_gpu_is_loaded_without_one(tmp_path: Path) -> None:
    with pretended_gpu() as gpu:
        method = fitted("gap", "cuda", epochs=2)
        assert not any(gpu.holds(part) for part in method.published.parts)
        method.save(tmp_path / "model.safetensors")
    loaded = GAP.load(tmp_path / "model.safetensors")
    assert torch.equal(torch.as_tensor(loaded.predict_proba()), torch.as_tensor(method.predict_proba()))


def test_what_the_cpu_alone_can_do_is_refused_elsewhere() -> None:
    """Methods whose sums take other roads."""
    with pretended_gpu():
        for build in (GCON, DPDGC, Caribou, Eclipse, LPGNet):
            with pytest.raises(InputError, match="by the CPU; allowed: cpu; leave the device out"):
                build(epsilon=4.0, device="cuda")
    with pytest.raises(InputError, match="where torch finds a GPU"):
        GAP(epsilon=4.0, device="cuda")


def test_no_row_of_a_query_is_read_by_the_wrong_device() -> None:
    """A graph that was not trained on: its features and edges go to the network, its answer comes back."""
    with pretended_gpu() as gpu:
        method = fitted("gap, asked", "cuda", epochs=2)
        answer = method.predict_proba(people(seed=2), randomness=SeededRandomness(5))
        assert not gpu.holds(answer)
