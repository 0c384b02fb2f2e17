"""A user's own module on what was released: any layers, the same guarantee, and its class given again to load it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from graphveil.errors import InputError, ModelFileError
from graphveil.methods import DPMLP, LPGNN, SAGE, ClassSums, LabelPool, Solitude, load_method
from graphveil.methods.registry import plan
from graphveil.privacy import Guarantee, SeededRandomness, assume
from tests.methods import curator_made, links_made, made

GRAPH = made.graph()
D, C = GRAPH.schema.dimension, len(GRAPH.schema.classes)


class OverEdges(nn.Module):
    """A layer on rows plus the mean of the neighbours' rows, with batch normalisation: rows mix as they like."""

    def __init__(self, width: int = D) -> None:
        super().__init__()
        self.norm, self.last = nn.BatchNorm1d(width), nn.Linear(width, C)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        around = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        return self.last(self.norm(x + around))


class Weighted(OverEdges):
    """The same, with the weights of edges."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:  # type: ignore[override]
        assert edge_weight is not None
        around = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]] * edge_weight[:, None])
        return self.last(self.norm(x + around))


def rows(width: int) -> nn.Module:
    """A perceptron on rows alone, with batch normalisation and always the same weights."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(width, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.1), nn.Linear(6, C))


@dataclass(frozen=True)
class Case:
    """A method, a graph that it serves, and the module that it takes there."""

    build: Callable[..., Any]
    graph: Any
    module: Callable[[], nn.Module]


lpgnn = partial(LPGNN, epsilon_x=1.0, epsilon_y=2.0, epochs=4)
solitude = partial(Solitude, epsilon_x=1.0, epsilon_a=4.0, denoiser="blink-hybrid", epochs=4)
class_sums = partial(ClassSums, epsilon=4.0, epochs=4)


def of_seed(module: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        torch.manual_seed(0)
        return module()

    return build


CURATED = curator_made.graph()
LINKED = links_made.graph()
CASES = {
    "lpgnn rows": Case(lpgnn, GRAPH, lambda: rows(D)),
    "lpgnn edges": Case(lpgnn, GRAPH, of_seed(OverEdges)),
    "solitude rows": Case(solitude, LINKED, lambda: rows(LINKED.schema.dimension)),
    "solitude weights": Case(solitude, LINKED, of_seed(lambda: Weighted(LINKED.schema.dimension))),
    "class-sums rows": Case(class_sums, CURATED, lambda: rows(CURATED.schema.dimension + 2 * C)),
}
LOADS: dict[str, Callable[..., Any]] = {"lpgnn": LPGNN.load, "solitude": Solitude.load, "class-sums": ClassSums.load}
ALL = pytest.mark.parametrize("name", CASES)


def fitted(case: Case, module: nn.Module) -> Any:
    return case.build(backbone=module).fit(case.graph, randomness=SeededRandomness(1))


def begun(plain: Guarantee) -> Guarantee:
    """The same guarantee, which leans on where weights come from: a module may have been fitted to these people."""
    return replace(plain, assumes=(*plain.assumes, assume("start-public")))


@ALL
def test_it_is_trained_as_a_copy_at_the_same_price(name: str) -> None:
    case = CASES[name]
    module = case.module()
    method = fitted(case, module)
    assert method.predict_proba().shape == (case.graph.num_nodes, C)
    for mine, first in zip(module.state_dict().values(), case.module().state_dict().values(), strict=True):
        assert torch.equal(mine, first)
    plain = case.build().fit(case.graph, randomness=SeededRandomness(1))
    assert method.guarantee == begun(plain.guarantee) and method.ledger == plain.ledger
    weights = method.result.network.weights
    moved = [key for key, value in module.state_dict().items() if not torch.equal(weights[f"module.{key}"], value)]
    assert any("weight" in key for key in moved)


@ALL
def test_it_comes_back_with_the_module_alone(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    method = fitted(case, case.module())
    file = method.save(tmp_path)
    load = LOADS[name.split()[0]]
    again = load(file, backbone=case.module())
    assert torch.equal(again.predict_proba(), method.predict_proba()) and again.guarantee == method.guarantee
    assert again.get_params().keys() == method.get_params().keys()
    for without in (load, load_method):
        with pytest.raises(ModelFileError, match=r"holds weights of a module of yours, \w+; load it with backbone="):
            without(file)
    with pytest.raises(ModelFileError, match="backbone: "):
        load(file, backbone=nn.Linear(3, C))
    plain = case.build().fit(case.graph, randomness=SeededRandomness(1)).save(tmp_path / "plain")
    with pytest.raises(ModelFileError, match="its own network"):
        load(plain, backbone=case.module())


@ALL
def test_what_cannot_be_trained_is_refused_before_anything_is_paid(name: str) -> None:
    case = CASES[name]
    method = case.build(backbone=nn.Linear(3, C))
    with pytest.raises(InputError, match="backbone: it cannot read rows of"):
        method.fit(case.graph, randomness=SeededRandomness(1))
    assert method.ledger.spends == ()
    with pytest.raises(InputError, match=r"backbone: it is .*Linear.*; allowed: an instance of a torch.nn.Module"):
        case.build(backbone=nn.Linear).fit(case.graph, randomness=SeededRandomness(1))


def test_whoever_is_given_a_start_says_what_that_leans_on(tmp_path: Path) -> None:
    how: dict[str, Any] = {"split": made.split_of(GRAPH), "randomness": SeededRandomness(1)}
    mlp = partial(DPMLP, epsilon=4.0, passes=1, hidden=4)
    pool = partial(LabelPool, epsilon_y=2.0)
    for build, given in ((mlp, {"backbone": nn.Linear(D, C)}), (pool, {"start": "public"})):
        method, plain = build(**given).fit(GRAPH, **how), build().fit(GRAPH, **how)
        assert method.guarantee == begun(plain.guarantee) and method.guarantee.epsilon == plain.guarantee.epsilon
        backbone = {name: value for name, value in given.items() if name == "backbone"}
        assert type(method).load(method.save(tmp_path), **backbone).guarantee == method.guarantee
    assert not SAGE(backbone=rows(D), epochs=1).fit(GRAPH, **how).guarantee.assumes, "nothing is promised"
    assert plan("class-sums", GRAPH, {"epsilon": 1.0, "start": "public"}).guarantee.assumption("start-public")


def test_private_edges_are_not_handed_to_a_module() -> None:
    method = class_sums(backbone=OverEdges(CURATED.schema.dimension + 2 * C))
    with pytest.raises(InputError, match="backbone: forward names edge_index; allowed: rows alone"):
        method.fit(CURATED, randomness=SeededRandomness(1))
    assert method.ledger.spends == ()


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (rows(20), "BatchNorm1d"),
        (nn.Sequential(nn.Linear(20, 9)), "2 rows gave scores"),
        (nn.Linear(3, C), "backbone: it cannot read rows of 20 numbers"),
        (nn.Linear, r"backbone: it is .*; allowed: an instance of a torch.nn.Module"),
    ],
)
def test_a_module_that_mixes_rows_or_does_not_fit_is_refused_before_anything_is_paid(
    module: nn.Module, message: str
) -> None:
    method, graph = DPMLP(epsilon=4.0, delta=0.01, backbone=module), made.graph(20)
    with pytest.raises(InputError, match=message):
        method.fit(made.Sealed(graph), split=made.split_of(graph), randomness=SeededRandomness(1))
    assert method.ledger.spends == ()
