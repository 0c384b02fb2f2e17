"""What an auditor asks of the curator's methods, by item of the reviewer's checklist; a failed audit raises.

The same questions are asked of the methods as they are and of mutants, which must fail them
(test_training_checklist.py). Numbers that judge are computed here: from what was released, and from textbooks.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import dp_accounting
import numpy as np
import pytest
import torch
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats
from torch import Tensor

from graphveil.aggregation.grid import quantise
from graphveil.graphs import social_graph
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.methods import DPMLP, GAP, ClassSums, NodeSums, ProGAP
from graphveil.methods.curator import privacy as curator_privacy
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.methods.curator.stages import training as curator
from graphveil.models.networks.perceptrons import Encoder
from graphveil.privacy import Descent, SecureRandomness, SeededRandomness, calibrate_pipeline, pipeline_epsilon
from graphveil.privacy.accounting import budget_split
from graphveil.training.full_batch import Rows
from graphveil.training.noisy_updates import StepNoise
from tests.methods import curator_made as cm

#: Sums under the normal law; counts, which class-sums makes by default, are asked in test_class_sums.py.
EDGE_METHODS: dict[str, Any] = {"gap": GAP, "progap": ProGAP, "class-sums": partial(ClassSums, noise="normal")}
METHODS: dict[str, Any] = {**EDGE_METHODS, "node-sums": NodeSums, "dp-mlp": DPMLP}
#: Unit node with batches of everybody, whose noise is found at once.
NODE: dict[str, Any] = {"unit": "node", "epsilon": 8.0, "batch": 10_000, "passes": 3}
DELTA = 1e-5


@cache
def crowd() -> Any:
    """2,000 people: enough noisy numbers to measure their spread to a hundredth."""
    return social_graph(2000, 8, 30, 3, apps=4, seed=1)


def fit(name: str, start: Any, *, noise: Any = None, **settings: Any) -> Any:
    """A method fitted in little time."""
    small: dict[str, Any] = {"epochs": 2, "hidden": 4, "epsilon": 2.0, "delta": DELTA}
    if settings.get("unit") == "node" and name != "dp-mlp":
        small |= {"degree_bound": 3, "hops": 1}
    method = METHODS[name](**{**small, **settings})
    return method.fit(start, split=cm.split_of(start), randomness=noise or SeededRandomness(1))


def delta_of(mu: float, epsilon: float) -> float:
    """Delta of normal noise whose unit moves the mean by mu deviations (Balle, Wang, ICML 2018, Theorem 8)."""
    law = stats.norm()
    return float(law.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + law.logcdf(-mu / 2 - epsilon / mu)))


def whole(rows: Any, x: Tensor, bits: int) -> np.ndarray:
    """Exact sums in steps of the grid."""
    quantised = rows.sums(quantise(x, bits=bits))
    values: np.ndarray = quantised.values.numpy().astype(np.int64)
    values[quantised.long.numpy()] = quantised.totals.numpy()
    return values


def edges_between_training_nodes(start: Any, count: int) -> list[int]:
    """Numbers of some undirected edges whose ends both have a public label."""
    train = cm.split_of(start).train
    pairs = start.edge_index[:, start.edge_index[0] < start.edge_index[1]]
    return (train[pairs[0]] & train[pairs[1]]).nonzero()[:count, 0].tolist()


# ---- items 2, 3, 4, 18 ----


def one_edge_costs_what_was_said(name: str, unit: str, **settings: Any) -> None:
    """Items 2 and 4: the largest measured move over the measured spread of the noise keeps (epsilon, delta)."""
    epsilon, start = 2.0, crowd()
    with pytest.MonkeyPatch.context() as patch:
        replay = cm.Replay(patch)
        method = fit(name, start, unit=unit, epsilon=epsilon, **settings)
        answers, moves = list(replay.answers), np.zeros(len(replay.answers))
        first = replay.again()
        spread = [float((y - exact(call)).std()) for y, call in zip(answers, first, strict=True)]
        for edge in edges_between_training_nodes(start, 4):
            other = cm.without_edge(start, edge)
            fit(name, other, unit=unit, epsilon=epsilon, **settings)
            moves = np.maximum(moves, [moved(a, b, unit) for a, b in zip(first, replay.calls, strict=True)])
            replay.calls.clear()
    assert moves.min() > 0.0
    mu = math.sqrt(sum((move / s) ** 2 for move, s in zip(moves, spread, strict=True)))
    assert delta_of(mu, 1.05 * epsilon) <= DELTA, f"an edge shows by {mu:.3f} deviations"
    assert method.guarantee.epsilon == epsilon and method.guarantee.delta == DELTA


def exact(call: Any) -> Tensor:
    """What a noisy sum would be without noise."""
    sums, rows, x, _ = call
    bits = sums.row_bits(rows.weight_bits)
    return torch.from_numpy(whole(rows, x, bits) * 2.0 ** -(bits + rows.weight_bits))


def moved(first: Any, second: Any, unit: str) -> float:
    """How far the exact sums moved: both rows for an undirected edge, the larger of them for one entry."""
    change = np.linalg.norm((exact(first) - exact(second)).numpy(), axis=1)
    return float(np.linalg.norm(change) if unit == "edge" else change.max())


def nothing_else_reads_edges(name: str) -> None:
    """Items 3 and 8: with the noisy sums frozen a neighbour gives the same calls, noise, model, history and ledger."""
    start = cm.graph()
    with pytest.MonkeyPatch.context() as patch:
        replay = cm.Replay(patch)
        first = fit(name, start)
        before = replay.again()
        second = fit(name, cm.without_edge(start, 7))
        calls = list(replay.calls)
    assert torch.equal(first.predict_proba(), second.predict_proba())
    assert (first.history, first.ledger, first.guarantee) == (second.history, second.ledger, second.guarantee)
    assert len(before) == len(calls)
    for (sums, _, x, hop), (sums2, _, x2, hop2) in zip(before, calls, strict=True):
        assert (sums, hop) == (sums2, hop2)
        assert torch.equal(x, x2)


# ---- items 5, 9, 12, 16: what private data may not decide ----


def edges_decide_no_public_number(name: str) -> None:
    """Item 5: ten times the edges change neither noise, delta, epochs, sizes, ledger nor guarantee."""
    start = cm.graph()
    pairs = torch.triu_indices(60, 60, 1)
    still = {"patience": 0} if name != "class-sums" else {}
    first, other = (fit(name, cm.with_edges(start, pairs[:, :count]), **still) for count in (90, 900))
    assert first.ledger == other.ledger and first.guarantee == other.guarantee
    assert first.published.noise == other.published.noise
    assert len(first.history) == len(other.history)
    assert first.predict_proba().shape == other.predict_proba().shape


def validation_labels_decide_nothing(name: str) -> None:
    """Item 12, where labels are private: other validation labels, the same model; and no epoch is reported."""
    start, other = cm.graph(), cm.graph()
    val = cm.split_of(start).val
    other.y[val] = (other.y[val] + 1) % 3
    first, two = fit(name, start, **NODE), fit(name, other, **NODE)
    assert torch.equal(first.predict_proba(), two.predict_proba())
    assert first.history == ()


# ---- items 14 and 15: what is charged is what runs ----


def trained(x: Tensor, *, batch: int, passes: int, multiplier: float = 1.0) -> Encoder:
    """An encoder trained with noise on rows with classes 0, 1, 2."""
    torch.manual_seed(0)
    network, settings = Encoder(x.shape[1], 4, 3, batch_norm=False), CuratorSettings(batch=batch, passes=passes)
    rows = Rows(x, torch.arange(len(x)) % 3)
    curator.train_with_noise(network, rows, settings, multiplier, randomness=SeededRandomness(3))
    return network


def every_step_is_charged_and_noised(name: str) -> None:
    """Item 15: one draw of noise for each step that was charged, empty batches included, and no other."""
    charged: list[Any] = []
    draws: list[float] = []
    real_add, real_step = RoundedNormal.add_to, StepNoise.add_to

    def searched(epsilon: float, delta: float, parts: Any, **rest: Any) -> Any:
        charged.extend(parts)
        return calibrate_pipeline(epsilon, delta, parts, **rest)

    def added(me: RoundedNormal, totals: np.ndarray, randomness: Any) -> None:
        draws.append(me.sigma)
        real_add(me, totals, randomness)

    def noised(me: StepNoise, totals: torch.Tensor, randomness: Any, *, steps: int) -> None:
        """Whatever is drawn ahead, a step has the noise that is added to its own sum."""
        before, drawn = totals.clone(), len(draws)
        real_step(me, totals, randomness, steps=steps)
        draws[drawn:] = [] if torch.equal(before, totals) else [0.0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curator_privacy, "calibrate_pipeline", searched)
        patch.setattr(RoundedNormal, "add_to", added)
        patch.setattr(StepNoise, "add_to", noised)
        # Renyi accounting is quicker; how many steps there are does not depend on it.
        patch.setattr(
            budget_split, "pipeline_epsilon", lambda *a, **k: pipeline_epsilon(*a, **{**k, "accountant": "rdp"})
        )
        budget_split._search.cache_clear()
        fit(name, cm.graph(), **{**NODE, "batch": 1, "passes": 1})
        budget_split._search.cache_clear()
    steps = sum(part.steps if isinstance(part, Descent) else part.count for part in charged)
    assert len(draws) == steps > 29


def noise_of_training_is_enough() -> None:
    """Item 14: the noise that is planned keeps epsilon by a lower bound on what it costs (PLD rounded down)."""
    epsilon = 0.7
    budget_split._search.cache_clear()
    method = DPMLP(epsilon=epsilon, delta=DELTA, batch=100, passes=1)
    noise = method.planned_noise(cm.graph().schema, 10_000)
    budget_split._search.cache_clear()
    (multiplier,) = noise.multipliers.values()
    law = pld.from_gaussian_mechanism(
        multiplier,
        sampling_prob=0.01,
        pessimistic_estimate=False,
        value_discretization_interval=1e-4,
        use_connect_dots=False,
    )
    low = float(law.self_compose(100).get_epsilon_for_delta(DELTA))
    assert low <= epsilon, f"at least {low:.3f} is spent"
    assert low >= 0.95 * epsilon


def central_limit(parts: Any, noise: Any, delta: float, **_: Any) -> float:
    """What accounting by the central limit theorem makes of one private training: too little (a mutant's price)."""
    (part,) = parts
    (sigma,) = noise[part.name]
    mu = part.rate * math.sqrt(part.steps * math.expm1(sigma**-2))
    event = dp_accounting.GaussianDpEvent(1 / mu)
    return float(dp_accounting.pld.PLDAccountant().compose(event).get_epsilon(delta))


def noise_is_fresh(name: str) -> None:
    """Item 17: one user seed, two trainings, two noises."""
    settings = NODE if name == "dp-mlp" else {}
    first, two = (fit(name, cm.graph(), noise=SecureRandomness(), seed=5, **settings) for _ in range(2))
    assert not torch.equal(first.predict_proba(), two.predict_proba())
    assert first.guarantee.void is None
