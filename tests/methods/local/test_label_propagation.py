"""Label propagation and the pool of its members."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import normalised
from graphveil.methods.base.network.objectives import label_matrix
from graphveil.methods.base.people.released import Topology
from graphveil.methods.local import label_pool
from graphveil.methods.local.label_pool import FOLDS, TRACE, Pool, pool_labels
from graphveil.methods.local.label_propagation import (
    ALPHAS,
    HOPS,
    STEPS,
    all_spread,
    propagate_labels,
    shares_to_probabilities,
    spread,
    variants,
)
from graphveil.models.labels.label_prior import Channel, class_shares
from graphveil.models.labels.pool import (
    CENTRE_B,
    EVEN_SHARE,
    EXPERT_SIZES,
    LEAST_WEIGHT,
    LIKELIHOOD_SHARE,
    PRIOR_DOUBT,
    SPREAD_B,
    SPREAD_U,
    fit_weights,
)
from tests.aggregation.formulas import dense_normalised

# A path 0 - 1 - 2 - 3, a pair 4 - 5 and the isolated node 6.
EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 4, 5], [1, 0, 2, 1, 3, 2, 5, 4]])
LABELS = torch.tensor([0, 1, -1, 1, 0, -1, -1])
LABELLED = LABELS >= 0


def dense_p() -> Tensor:
    return dense_normalised(torch.zeros(7, 7).index_put((EDGES[1], EDGES[0]), torch.tensor(1.0)), "gcn", False)


def seeds() -> Tensor:
    return label_matrix(LABELS, LABELLED, 2)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_spreading_equals_the_dense_formula(alpha: float) -> None:
    """Z_t = alpha P Z + (1 - alpha) Y' unrolled: (1 - alpha) sum_k (alpha P)^k Y' + (alpha P)^t Y'."""
    p = alpha * dense_p().double()
    y = seeds().double()
    powers = [torch.linalg.matrix_power(p, k) @ y for k in range(STEPS + 1)]
    expected = (1 - alpha) * sum(powers[:-1], torch.zeros_like(y)) + powers[-1]
    assert torch.allclose(spread(normalised(EDGES, 7), seeds(), alpha).double(), expected, atol=1e-6)


def test_one_chain_of_products_gives_every_variant() -> None:
    p, nodes = normalised(EDGES, 7), torch.tensor([6, 0, 3])
    by_name = dict(all_spread(p, seeds(), nodes))
    expected = {name: run(seeds())[nodes] for name, run in variants(p).items()}
    assert by_name.keys() == expected.keys()
    assert all(torch.allclose(by_name[name], z, atol=1e-6) for name, z in expected.items())


def long_form(train: Tensor, val: Tensor) -> tuple[Tensor, str]:
    """Every candidate as a dense matrix; the first of the best on validation labels, run with all labels."""
    p, eye = dense_p().double(), torch.eye(7).double()
    candidates: dict[str, Tensor] = {}
    for alpha in ALPHAS:
        z = eye
        for _ in range(STEPS):
            z = alpha * p @ z + (1 - alpha) * eye
        candidates[f"alpha={alpha}"] = z
    candidates |= {f"hops={hops}": torch.linalg.matrix_power(p, hops) for hops in HOPS}
    y = label_matrix(LABELS, train, 2).double()
    hits = {name: int(((m @ y)[val].argmax(1) == LABELS[val]).sum()) for name, m in candidates.items()}
    best = max(hits, key=lambda name: hits[name])
    return candidates[best] @ label_matrix(LABELS, train | val, 2).double(), best


@pytest.mark.parametrize("val_nodes", [[0, 3], [1], [4], [0, 1, 3, 4]])
def test_the_variant_is_the_best_on_validation_labels_when_training_labels_are_spread(val_nodes: list[int]) -> None:
    val = torch.zeros(7, dtype=torch.bool)
    val[val_nodes] = True
    train = LABELLED & ~val
    mass, variant = long_form(train, val)
    spread, chosen = propagate_labels(normalised(EDGES, 7), LABELS, train, val, Channel(2))
    assert chosen == variant
    total = mass.sum(1, keepdim=True)
    expected = torch.where(total > 0, mass / total.clamp_min(1e-30), torch.full_like(mass, 0.5))
    assert torch.allclose(spread.double(), expected, atol=1e-5)


def test_the_channel_of_randomized_response_is_inverted() -> None:
    """Shares 0.6 : 0.3 : 0.1 behind keep 0.5 and flip 0.25 come from (1.4, 0.2, -0.6), clipped and normalised."""
    probabilities = shares_to_probabilities(torch.tensor([[6.0, 3.0, 1.0]]), Channel(3, 0.5, 0.25))
    assert torch.allclose(probabilities, torch.tensor([[1.4 / 1.6, 0.2 / 1.6, 0.0]]), atol=1e-5)
    assert bool((probabilities > 0).all())


# ---- the pool: folds, members, weights ----


N, C, KEEP = 40, 3, 0.6
LAW = Channel(C, KEEP, 0.2)
ISOLATED, SILENT = (38, 39), 39  # two nodes without edges, of which one has not reported


def topology(*, directed: bool = False) -> Topology:
    source, target = torch.randint(0, ISOLATED[0], (2, 90), generator=torch.Generator().manual_seed(0))
    pairs = torch.stack([source, target])
    return Topology(pairs if directed else torch.cat([pairs, pairs.flip(0)], dim=1), N)


def reports() -> Tensor:
    """Three quarters report."""
    labels = torch.randint(0, C, (N,), generator=torch.Generator().manual_seed(1))
    labels[1::4] = -1
    labels[ISOLATED[0]], labels[SILENT] = 1, -1
    return labels


def pooled(labels: Tensor | None = None, own: Topology | None = None, law: Channel = LAW, **options: Any) -> Pool:
    people, sent = topology() if own is None else own, reports() if labels is None else labels
    return pool_labels(people, sent, law, **{"seed": 0, **options})


def test_a_node_that_nobody_reaches_gets_the_class_shares() -> None:
    """As strongly as the pool believes in them: pi^b, normalised."""
    pool = pooled()
    counts = torch.bincount(reports()[reports() >= 0], minlength=C)
    log_prior = class_shares(reports(), LAW).lerp(counts / counts.sum(), TRACE).log()
    centred, own = (logs - logs.mean() for logs in (log_prior, pool.probabilities[SILENT].log()))
    weight = (own @ centred) / (centred @ centred)
    assert weight > 0
    assert torch.allclose(own, weight * centred, atol=1e-5)
    assert float(pool.probabilities[ISOLATED[0], 1]) > float(pool.probabilities[SILENT, 1])


def one_report() -> Tensor:
    labels = torch.full((N,), -1)
    labels[4] = 2
    return labels


@pytest.mark.parametrize(
    ("labels", "bare"),
    [
        (reports(), True),
        (reports().clamp_max(1), False),
        (torch.zeros(N, dtype=torch.int64), False),
        (one_report(), False),
        (one_report(), True),
        (torch.full((N,), -1), False),
    ],
    ids=["no edges", "a class never reported", "one class only", "one report", "one report, no edges", "no report"],
)
@pytest.mark.parametrize("law", [LAW, Channel(C), Channel(C, 0.3334, 0.3333)])
def test_poor_data_give_probabilities_all_the_same(labels: Tensor, bare: bool, law: Channel) -> None:
    people = Topology(torch.zeros(2, 0, dtype=torch.int64), N) if bare else topology()
    pool = pooled(labels, people, law=law)
    assert bool(pool.probabilities.isfinite().all() and (pool.probabilities >= 0).all())
    assert torch.allclose(pool.probabilities.sum(dim=1), torch.ones(N), atol=1e-5)
    assert all(math.isfinite(weight) and weight >= 0 for weight in pool.weights.values())


# ---- held-out reports ----


def held_out(labels: Tensor, setting: Any) -> tuple[Tensor, Tensor]:
    """Folds [n] and the members' scores [n, b, c, m] as pool_labels makes them."""
    folds = label_pool._folds(labels, 0)
    used = torch.stack([(folds >= 0) & (folds != f) for f in range(FOLDS)] + [folds >= 0], dim=1).float()
    members = dict(label_pool._scored(setting, used, costly=True))
    names = [*label_pool.CHAINED, *(name for name in members if name not in label_pool.CHAINED)]
    return folds, torch.stack([members[name] for name in names], dim=3)


def test_members_are_walks_of_what_reports_say_of_each_class_beyond_its_share() -> None:
    """What is multiplied leaves the last class out: the scores must be those of all of them."""
    labels = reports()
    setting, used = label_pool._Setting.build(topology(), labels, LAW, "cpu"), (labels >= 0).float()[:, None]
    inverse = torch.linalg.inv(LAW.matrix.double())
    beyond = (inverse[labels.clamp_min(0)] - setting.log_prior.exp().double()) * used
    p = (setting.p @ torch.eye(len(labels))).double()
    members = dict(label_pool._each_member(setting, used, costly=False))
    for hops in (1, 2, 3):
        expected = torch.linalg.matrix_power(p, hops) @ beyond
        assert torch.allclose(members[f"hops gcn {hops}"][:, 0].double(), expected, atol=1e-5)


def test_folds_share_the_reports_out_and_do_not_depend_on_them() -> None:
    labels = reports()
    folds = label_pool._folds(labels, 0)
    assert torch.equal(folds >= 0, labels >= 0)
    counts = torch.bincount(folds[folds >= 0], minlength=FOLDS)
    assert int(counts.max() - counts.min()) <= 1
    assert torch.equal(label_pool._folds(torch.where(labels >= 0, (labels + 1) % C, -1), 0), folds)
    assert not torch.equal(label_pool._folds(labels, 1), folds)


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("node", [0, 3, 14, ISOLATED[0]])
def test_no_report_takes_part_in_its_own_held_out_score(node: int) -> None:
    """One report is changed: bit for bit the block that leaves it out stays, for every node and member.

    Class shares and homophily, which all reports estimate together, are held as they were.
    """
    labels, other = reports(), reports()
    other[node] = (other[node] + 1) % C
    setting = label_pool._Setting.build(topology(), labels, LAW, "cpu")
    likelihood = LAW.matrix[:, other.clamp_min(0)].T.contiguous()
    folds, before = held_out(labels, setting)
    mute = [len(label_pool.SPREADS + label_pool.WALKS) <= m < 13 and node in ISOLATED for m in range(before.shape[3])]
    _, after = held_out(other, replace(setting, labels=other, likelihood=likelihood))
    assert torch.equal(before[:, folds[node]], after[:, folds[node]])
    for block in {*range(FOLDS + 1)} - {int(folds[node])}:
        changed = (before[:, block] != after[:, block]).any(dim=0).any(dim=0)
        assert torch.equal(changed, ~torch.tensor(mute))  # without neighbours no label is any hops away


def test_what_is_read_block_by_block_is_what_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = pooled()
    monkeypatch.setattr(label_pool, "AT_ONCE", 1)
    assert torch.allclose(pooled().probabilities, at_once.probabilities, atol=2e-3)  # half precision


# ---- weights ----


def made_scores(rows: int = 300) -> tuple[Tensor, Tensor, Tensor]:
    """Scores of four members: two that know the class, one that knows nothing, one that is always wrong."""
    generator = torch.Generator().manual_seed(3)
    truth = torch.randint(0, C, (rows,), generator=generator)
    right = torch.nn.functional.one_hot(truth, C).float() - 1 / C
    noise = torch.randn(rows, C, 4, generator=generator)
    scores = torch.stack([2 * right, right, 0 * right, -2 * right], dim=2) + noise
    reports = torch.where(torch.rand(rows, generator=generator) < KEEP, truth, (truth + 1) % C)
    return scores, LAW.matrix[:, reports].T, torch.tensor([0.4, 0.3, 0.3]).log()


Data = tuple[Tensor, Tensor, Tensor]


def loss(weights: Tensor, b: Tensor | float, data: Data) -> Tensor:
    scores, likelihood, log_prior = (part.double() for part in data)
    return -(torch.softmax(scores @ weights + b * log_prior, dim=1) * likelihood).sum(dim=1).log().sum()


def believed(data: Data) -> tuple[Tensor, float]:
    """The experts' mean, spelled out one expert at a time in double precision."""
    members = data[0].shape[2]
    even = torch.full((members,), 1 / members, dtype=torch.float64)
    corners = torch.eye(members, dtype=torch.float64)
    experts = [size * even for size in EXPERT_SIZES]
    experts += [size * (EVEN_SHARE * even + (1 - EVEN_SHARE) * corner) for corner in corners for size in EXPERT_SIZES]
    chances = [
        (1 - PRIOR_DOUBT) / len(experts) * torch.exp(-LIKELIHOOD_SHARE * loss(expert, CENTRE_B, data))
        for expert in experts
    ]
    alone = PRIOR_DOUBT * torch.exp(-LIKELIHOOD_SHARE * loss(torch.zeros_like(even), 1.0, data))
    total = alone + torch.stack(chances).sum()
    mean = torch.stack([chance * expert for chance, expert in zip(chances, experts, strict=True)]).sum(dim=0) / total
    return mean.clamp_min(LEAST_WEIGHT), float(alone / total)


def posterior(v: Tensor, b: Tensor, data: Data) -> Tensor:
    """What is minimised over log-weights v and b in double precision; the common shift is at its own minimum."""
    members = data[0].shape[2]
    first, doubt = believed(data)
    start, centre = first.log(), doubt + (1 - doubt) * CENTRE_B
    common = (v - start).sum() / (SPREAD_U**2 + members)
    penalty = ((v - common - start) / SPREAD_U).square().sum() + common.square() + ((b - centre) / SPREAD_B) ** 2
    return loss(v.exp(), b, data) + penalty / 2


def test_weights_are_where_the_posterior_has_no_slope() -> None:
    data = made_scores()
    weights = fit_weights(*data)
    v = weights.members.double().log().requires_grad_()
    at = torch.tensor(weights.prior, dtype=torch.float64, requires_grad=True)
    posterior(v, at, data).backward()  # type: ignore[no-untyped-call]
    slopes = torch.cat([v.grad, at.grad[None]])
    assert float(slopes.abs().max()) < 0.05
    elsewhere = (v.detach() + torch.tensor([0.3, 0, 0, 0])).requires_grad_()
    posterior(elsewhere, at.detach(), data).backward()  # type: ignore[no-untyped-call]
    assert elsewhere.grad is not None and float(elsewhere.grad.abs().max()) > 0.5


def test_what_everybody_shares_is_no_opinion() -> None:
    """One constant for a class, or one along the limit of endless walks: nothing is left of it, the rest stays."""
    generator = torch.Generator().manual_seed(0)
    limit = torch.rand(30, generator=generator)
    limit[:3] = 0
    scores = torch.randn(30, 2, C, generator=generator)
    bare = label_pool.apart(scores, limit)
    shifted = scores + limit[:, None, None] * torch.randn(1, 2, C, generator=generator)
    assert torch.allclose(label_pool.apart(shifted, limit), bare, atol=1e-5)
    assert torch.equal(bare[:3], scores[:3])


def test_without_reports_the_weights_are_those_of_the_prior() -> None:
    weights = fit_weights(torch.zeros(0, C, 4), torch.zeros(0, C), torch.zeros(C))
    assert weights.doubt == pytest.approx(PRIOR_DOUBT)
    assert torch.allclose(
        weights.members, torch.full((4,), (1 - PRIOR_DOUBT) * sum(EXPERT_SIZES) / len(EXPERT_SIZES) / 4)
    )
    assert weights.prior == pytest.approx(PRIOR_DOUBT + (1 - PRIOR_DOUBT) * CENTRE_B)
