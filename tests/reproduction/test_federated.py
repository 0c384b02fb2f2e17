"""VFGNN's figures: what each row runs, what its noise costs in truth, and that the clear run is the secure one."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from graphveil.federation.simulation import vertical_partition
from graphveil.graphs import random_split, social_graph
from graphveil.privacy import SeededRandomness, gaussian_delta
from graphveil.reproduction import clear, runner
from graphveil.reproduction.catalogue import EXHIBITS
from graphveil.reproduction.clear import BestEpoch, Plan, train_twins
from graphveil.reproduction.exhibit import Entry
from graphveil.reproduction.federated import DELTA, Federated

GRAPH = social_graph(150, average_degree=8, dimension=20, classes=3, seed=3)
QUICK = {"epochs": 4, "width": 8, "hops": 2}


def entry(table: str, row: str, data: str = "cora") -> Entry:
    """The one figure of a table."""
    return next(each for each in EXHIBITS[f"vfgnn-{table}"].entries if (each.data, each.row) == (data, row))


def test_holders_have_the_parts_of_the_partition() -> None:
    rows = {name: Federated.of(entry("table2", name)) for name in ("first holder alone", "second holder alone")}
    dealt = vertical_partition(GRAPH, (1, 1), seed=5)
    for place, federated in enumerate(rows.values()):
        (part,) = federated.parts(GRAPH, 5)
        assert (part[0] != dealt[place][0]).nnz == 0 and torch.equal(part[1], dealt[place][1])
    ((features, edges),) = Federated.of(entry("table2", "everything in one place")).parts(GRAPH, 5)
    assert features.shape[1] == GRAPH.schema.dimension and edges.shape == GRAPH.edge_index.shape


@pytest.mark.parametrize(("claimed", "once", "total"), [(4, 8, 337), (64, 543, 66_471)])
def test_the_true_price_is_that_of_all_iterations_and_a_replaced_row(claimed: int, once: float, total: float) -> None:
    """By the exact curve of a Gaussian: at the price delta is met, a hundredth below it is not."""
    bare = Federated.of(entry("table2", "vfgnn mean")).price
    assert (bare.epsilon, bare.delta) == (math.inf, 0.0) and "row" in bare.unit
    federated = Federated.of(entry("table5", f"eps={claimed} gaussian"))
    sigma = federated.plan.sigma
    assert sigma == pytest.approx(math.sqrt(2 * math.log(1.25 / DELTA)) / claimed)
    price = federated.price
    assert price.epsilon == pytest.approx(total, rel=0.005) and price.delta == DELTA
    mu = 2.0 * math.sqrt(150) / sigma
    assert gaussian_delta(1 / mu, price.epsilon, 1.0) <= DELTA * (1 + 1e-6)
    assert gaussian_delta(1 / mu, 0.99 * price.epsilon, 1.0) > DELTA
    # Weakened copies: one iteration, or a row that is removed and not replaced, would pass for less.
    assert once < 0.1 * price.epsilon and gaussian_delta(2 / mu, 0.99 * price.epsilon, 1.0) <= DELTA


def test_a_row_is_run_from_end_to_end() -> None:
    published = entry("table5", "eps=4 james-stein")
    short = replace(published, data="social-150", split="5-fold", settings={**published.settings, **QUICK})
    train = runner.trainer(noise=SeededRandomness)
    runs = [train(short, GRAPH, number) for number in (0, 1, 0)]
    assert runs[0].accuracy == runs[2].accuracy and 0 <= runs[1].accuracy.low <= runs[1].accuracy.high <= 1
    assert round(runs[0].accuracy.mean * 30) == pytest.approx(runs[0].accuracy.mean * 30)  # a fold of 150 in five


@pytest.mark.parametrize("mode", ["individual", "paper", "shared-linear"])
def test_the_clear_run_predicts_what_the_secure_run_predicts(mode: str) -> None:
    """The same seeds and, for the shared first layer, the same draws: shares change rounding alone."""
    split = random_split(GRAPH, 0)
    twins = train_twins(clear.Plan(mode, **QUICK), GRAPH, split, (1, 1), 1)  # type: ignore[arg-type]
    assert abs(twins.plain.test - twins.secure) <= 2 / int(split.test.sum())
    assert twins.bytes > 4 * GRAPH.num_nodes * QUICK["width"] * QUICK["epochs"] and twins.seconds > 0


def test_a_row_on_shares_tells_what_its_parties_took() -> None:
    published = entry("table2", "on shares: secureml mean")
    quick = {**QUICK, "epochs": 2, "width": 4, "hops": 1, "shared_rate": 0.5}
    short = replace(published, data="social-150", split="5-fold", settings={**published.settings, **quick})
    run = runner.trainer(noise=SeededRandomness)(short, GRAPH, 0)
    assert run.cost is not None and run.cost.epochs == 2 and run.cost.seconds > 0
    # The means over neighbours alone, masked, from each of two holders to the other.
    assert run.cost.bytes > 2 * 8 * GRAPH.num_nodes**2
    assert run.price.epsilon == math.inf and 0 <= run.accuracy.mean <= 1


# ---- the plaintext twin of a federation: seeds, noise, James-Stein rows, and the epoch that is kept ----


CROWD = social_graph(120, average_degree=8, dimension=20, classes=3, seed=6)
SPLIT = random_split(CROWD, 1)
PLAN = Plan("paper", width=8, hops=1, epochs=6)


def outcome(plan: Plan = PLAN) -> BestEpoch:
    """A run of two holders with equal shares of the made graph."""
    return clear.run(plan, vertical_partition(CROWD, (1, 1), seed=0), CROWD.y, SPLIT, 0)


def test_the_seed_fixes_a_run_and_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again = outcome(), outcome()
    assert first == again and torch.equal(torch.get_rng_state(), before)


def test_the_epoch_that_validates_best_is_kept() -> None:
    """A longer run sees the epochs of a shorter one first, so it never validates worse."""
    vals = [outcome(replace(PLAN, epochs=epochs, validate=1)).val for epochs in (1, 3, 6)]
    assert vals == sorted(vals)


def test_noise_beyond_measure_leaves_no_more_than_the_classes_shares() -> None:
    """Test accuracy of 30 nodes under noise of 1,000 C: above 0.8 would need features (false alarms below 1e-3)."""
    assert outcome(replace(PLAN, sigma=1000.0, shrink=False)).test < 0.8
    assert outcome(replace(PLAN, sigma=1e-9, shrink=False)).best >= 1


def test_tiny_noise_changes_next_to_nothing_and_shrinking_it_neither() -> None:
    plain = outcome(replace(PLAN, epochs=1))
    for shrink in (False, True):
        noisy = outcome(replace(PLAN, epochs=1, sigma=1e-7, shrink=shrink))
        assert abs(noisy.test - plain.test) <= 1 / int(SPLIT.test.sum())
