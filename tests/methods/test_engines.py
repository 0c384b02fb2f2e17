"""Where blocks are worked on: engines that are named, and a GPU that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.engine import LOCAL, LocalEngine
from graphveil.errors import InputError
from graphveil.graphs import Graph, Split, social_graph
from graphveil.mechanisms.by_blocks import PEOPLE
from graphveil.methods import DPDGC, GAP, GCON, METHODS, Caribou, Eclipse, LPGNet
from graphveil.privacy import SeededRandomness
from tests.methods import curator_made as cm
from tests.methods.on_gpu import METHODS as ON_GPU
from tests.methods.on_gpu import fitted
from tests.methods.on_gpu import people as gpu_people
from tests.pretended import pretended_gpu

_EPSILON: dict[str, Any] = {"epsilon": 4.0}
_ALL = {"epsilon": 8.0, "batch": 10_000, "passes": 2}
BY_BLOCKS: dict[str, tuple[str, dict[str, Any]]] = {
    "class-sums": ("class-sums", {**_EPSILON, "epochs": 2}),
    "class-sums, normal": ("class-sums", {**_EPSILON, "epochs": 2, "noise": "normal"}),
    "gap": ("gap", {**_EPSILON, "epochs": 2}),
    "progap": ("progap", {**_EPSILON, "epochs": 2}),
    "lpgnet": ("lpgnet", {**_EPSILON, "epochs": 2}),
    "gcon": ("gcon", {**_EPSILON, "epochs": 2}),
    "eclipse": ("eclipse", {**_EPSILON, "epochs": 2}),
    "dpdgc": ("dpdgc", {**_ALL, "epochs": 2}),
    "node-sums": ("node-sums", {**_ALL, "degree_bound": 3}),
}

#: Methods on a public topology, which propagate reports by blocks, and over how many at least.
PUBLIC: dict[str, tuple[dict[str, Any], int]] = {
    "label-propagation": ({"epsilon_y": 2.0}, 30),
    "label-pool": ({"epsilon_y": 2.0}, 100),
    "lpgnn": ({"epsilon_x": 1.0, "epsilon_y": 2.0, "epochs": 1, "steps_x": 8, "steps_y": 4}, 8),
}


@dataclass(frozen=True)
class Counting(LocalEngine):
    """One thread, and how many blocks it was given."""

    given: list[int] = field(default_factory=list, compare=False)

    def map_blocks(self, task: Any, blocks: Any, *more: Any) -> Iterator[Any]:
        self.given.append(len(blocks))
        return super().map_blocks(task, blocks, *more)


@pytest.mark.parametrize("case", BY_BLOCKS)
def test_the_engine_that_is_named_sums_every_hop(case: str) -> None:
    name, settings = BY_BLOCKS[case]
    engine, graph = Counting(2), cm.graph()
    method = METHODS[name].load_class()(**settings)
    method.fit(graph, split=cm.split_of(graph), randomness=SeededRandomness(1), engine=engine)
    assert METHODS[name].load_class().by_blocks
    assert len(engine.given) == len(method.published.noise.sigmas)


@pytest.mark.parametrize(
    "name", [pytest.param(method, marks=[pytest.mark.slow] * (method == "label-pool")) for method in PUBLIC]
)
def test_the_engine_that_is_named_propagates_reports(name: str) -> None:
    """Nothing that comes out tells where it was done."""
    (settings, least), graph, engine = PUBLIC[name], social_graph(300, seed=1), Counting(2)
    fitted = [
        METHODS[name].load_class()(**settings).fit(graph, randomness=SeededRandomness(1), engine=place)
        for place in (LOCAL, engine)
    ]
    assert len(engine.given) >= least
    assert torch.equal(*(method.predict_proba() for method in fitted))


#: What people send beside their neighbour list: a method's settings, and how often people are asked by blocks.
_LOCAL = {"epsilon_x": 1.0, "epsilon_y": 1.0}
REPORTS: dict[str, tuple[dict[str, Any], int]] = {
    "lpgnn": (_LOCAL, 2),
    "label-propagation": ({"epsilon_y": 1.0}, 1),
    "answer-pool": ({**_LOCAL, "question": "0>=0.5"}, 2),
    "solitude": ({**_LOCAL, "epsilon_a": 8.0}, 3),
    "link-beliefs": ({**_LOCAL, "epsilon_a": 8.0}, 3),
}


@pytest.fixture(scope="module")
def people() -> tuple[Graph, Split]:
    """More of them than a block holds, among those who send a label and among those who do not."""
    graph = social_graph(2 * PEOPLE + 4, average_degree=2, dimension=2, apps=1, classes=3, seed=1)
    place = torch.arange(int(graph.num_nodes))
    return graph, Split(place <= PEOPLE, place == PEOPLE + 1, place > PEOPLE + 1)


@pytest.mark.parametrize("name", REPORTS)
def test_the_engine_that_is_named_asks_everybody(name: str, people: tuple[Graph, Split]) -> None:
    settings, times = REPORTS[name]
    engine, core = Counting(2), METHODS[name].load_class()(**settings)
    core.collect(people[0], split=people[1], randomness=SeededRandomness(1), engine=engine)
    assert core.by_blocks and len(engine.given) == times and min(engine.given) > 1


def test_a_method_that_answers_from_its_training_refuses_an_engine() -> None:
    graph = cm.graph()
    method: Any = METHODS["class-sums"].load_class()(**_EPSILON, epochs=1).fit(graph, randomness=SeededRandomness(1))
    with pytest.raises(InputError, match="class-sums does not predict by blocks"):
        method.predict(graph, engine=LocalEngine(2))


def test_methods_that_do_not_work_by_blocks_refuse_an_engine_before_anything_is_read() -> None:
    by_blocks = {name for name, _ in BY_BLOCKS.values()}
    cores = {name: entry.load_class() for name, entry in METHODS.items()}
    rest = [name for name, core in cores.items() if not (core.by_blocks or core.trains_by_blocks)]
    assert by_blocks | set(PUBLIC) <= set(METHODS) - set(rest) and "caribou" in rest and "dp-mlp" in rest
    for name in ("caribou", "dp-mlp"):
        method: Any = METHODS[name].load_class()(epsilon=4.0)
        with pytest.raises(InputError, match=f"{name} does not work by blocks yet"):
            method.fit(cm.Unreadable(cm.graph()), engine=LocalEngine(2))
        assert not method.ledger.spends


# ---- on a GPU that is not there: all tensors of a training on one device, one reading an epoch ----


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("name", ON_GPU)
def test_a_fit_mixes_no_devices_and_predicts_what_the_cpu_does(name: str) -> None:
    """The pretended GPU computes as the CPU does, but for products in torch's kernels in place of compiled loops."""
    with pretended_gpu() as gpu:
        probabilities = fitted(name, "cuda", epochs=2).predict_proba()
        assert not gpu.holds(probabilities)
        assert gpu.waits
    expected = fitted(name, "cpu", epochs=2).predict_proba()
    # Fits end a little apart where sums are rounded otherwise: by 2e-4 on an AMD.
    assert torch.allclose(torch.as_tensor(probabilities), torch.as_tensor(expected), atol=1e-3)


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
        answer = method.predict_proba(gpu_people(seed=2), randomness=SeededRandomness(5))
        assert not gpu.holds(answer)
