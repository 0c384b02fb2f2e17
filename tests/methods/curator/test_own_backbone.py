"""A module of a user's own in private training: rows stay apart, or it is refused before anything is paid."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from graphveil.errors import InputError, ModelFileError
from graphveil.methods import DPMLP, GAP, ProGAP, load_method
from graphveil.privacy import SeededRandomness
from tests.methods import made

D, C = 20, len(made.graph(20).schema.classes)


def own() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(D, 6), nn.ReLU(), nn.Linear(6, C))


class Mixing(nn.Module):
    """Subtracts the mean of the batch from every row."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(D, C)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.last(x - x.mean(dim=0))
        return scores


def fit(module: nn.Module) -> Any:
    return DPMLP(epsilon=4.0, delta=0.01, passes=2, epochs=3, batch=20, backbone=module).fit(
        made.graph(20), randomness=SeededRandomness(1)
    )


def test_it_is_trained_as_a_copy_and_comes_back_with_the_module_alone(tmp_path: Path) -> None:
    module, graph = own(), made.graph(20)
    method = fit(module)
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), own().parameters(), strict=True))
    assert method.predict_proba().shape == (graph.num_nodes, C)
    before = torch.softmax(own()(graph.x), dim=1)
    assert not torch.allclose(method.predict_proba(), before)
    file = method.save(tmp_path)
    again = DPMLP.load(file, backbone=own())
    assert torch.equal(again.predict_proba(graph), method.predict_proba(graph))
    for load in (DPMLP.load, load_method):
        with pytest.raises(ModelFileError, match="holds weights of a module of yours, Sequential"):
            load(file)
    with pytest.raises(ModelFileError):
        DPMLP.load(file, backbone=nn.Sequential(nn.Linear(D, C)))


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (Mixing(), "changing one input row moves the outputs of others"),
        (nn.Sequential(nn.Linear(D, 4), nn.BatchNorm1d(4), nn.Linear(4, C)), "BatchNorm1d"),
        (nn.Sequential(nn.Linear(D, 4), nn.LayerNorm(4), nn.Linear(4, C)), "cannot be trained privately"),
        (nn.Sequential(nn.Linear(D, C + 1)), "2 rows gave scores"),
    ],
)
def test_a_module_that_mixes_rows_is_refused_before_anything_is_paid(module: nn.Module, said: str) -> None:
    method, graph = DPMLP(epsilon=4.0, delta=0.01, backbone=module), made.graph(20)
    with pytest.raises(InputError, match=said):
        method.fit(made.Sealed(graph), split=made.split_of(graph), randomness=SeededRandomness(1))
    assert method.ledger.spends == ()


def test_nothing_is_gained_by_one_without_noise() -> None:
    with pytest.raises(InputError, match="train it in torch"):
        DPMLP(epsilon=math.inf, backbone=own())


def test_other_methods_say_why_they_take_none() -> None:
    for build in (lambda **own: ProGAP(epsilon=1.0, **own), lambda **own: GAP(epsilon=1.0, **own)):
        with pytest.raises(InputError, match="allowed: with lpgnn, solitude, class-sums and dp-mlp"):
            build(backbone=own())
