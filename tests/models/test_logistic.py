"""Logistic regression behind a label channel, the log-linear pool, and networks that join features with clues."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn import functional

from graphveil.aggregation import build_inputs
from graphveil.graphs import social_graph
from graphveil.methods.base.network.features import unit_rows
from graphveil.models.labels.label_prior import Channel
from graphveil.models.labels.logistic import STRENGTHS, Logistic, choose_logistic, fit_logistic
from graphveil.models.labels.pool import held_out, pool_weights, surely_better
from graphveil.models.networks.perceptrons import ClassReader
from graphveil.models.networks.two_layers import Fusion
from tests.sizes import LargestTensor

N, D, C = 400, 12, 3
KEEP, FLIP = 0.6, 0.2


def people(n: int = N, seed: int = 1) -> tuple[Tensor, Tensor]:
    """(features [n, D], classes [n]) from a model of exactly this form."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(n, D, generator=generator)
    features[:, 3] /= 30  # a coordinate on another scale
    weight = 1.5 * torch.randn(D, C, generator=torch.Generator().manual_seed(0))
    classes = torch.multinomial(torch.softmax(features @ weight, dim=1), 1, generator=generator).squeeze(1)
    return features, classes


def noisy(classes: Tensor, seed: int = 2) -> Tensor:
    """Labels after randomized response that keeps 3 in 5."""
    generator = torch.Generator().manual_seed(seed)
    other = (classes + torch.randint(1, C, classes.shape, generator=generator)) % C
    return torch.where(torch.rand(len(classes), generator=generator) < KEEP, classes, other)


def slope(fitted: Logistic, features: Tensor, labels: Tensor, heard: Tensor, strength: float) -> float:
    """The largest derivative of the objective, computed anew in double precision."""
    weight, bias = (part.double().requires_grad_() for part in (fitted.weight, fitted.bias))
    classes = torch.softmax(features.double() @ weight + bias, dim=1)
    likelihoods = (classes @ heard.double().exp())[torch.arange(len(labels)), labels]
    loss = -likelihoods.log().sum() + weight.square().sum() / (2 * strength)
    return max(float(part.abs().max()) for part in torch.autograd.grad(loss, (weight, bias)))


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize(("strength", "keep"), [(STRENGTHS[0], KEEP), (1.0, 1.0), (STRENGTHS[-1], KEEP)])
def test_the_objective_is_flat_at_what_is_found(strength: float, keep: float, seed: int | None) -> None:
    """Its slope is below a ten thousandth of that at 0, also if the search begins far off, where it bends downwards."""
    features, classes = people()
    labels, heard = noisy(classes), Channel(C, keep, (1 - keep) / 2).logs
    zero = Logistic(torch.zeros(D, C), torch.zeros(C))
    far = None if seed is None else Logistic(5 * drawn(D, C, seed=seed), torch.zeros(C))
    fitted = fit_logistic(features, labels, torch.arange(N), heard, strength, far)
    assert slope(fitted, features, labels, heard, strength) < 1e-4 * slope(zero, features, labels, heard, strength)


@pytest.mark.parametrize("strength", [0.03, 1.0, 30.0])
def test_clean_labels_give_what_scikit_learn_finds(strength: float) -> None:
    """The same probabilities to 2e-3; another strength does not give them."""
    features, classes = people()
    train = torch.arange(0, N, 2)
    peer = LogisticRegression(C=strength, tol=1e-8, max_iter=2_000).fit(features[train].numpy(), classes[train].numpy())
    expected = torch.from_numpy(peer.predict_proba(features.numpy())).float()
    for c, same in ((strength, True), (strength * 4, False)):
        hidden = torch.where(torch.arange(N) % 2 == 0, classes, -1)  # labels of others are not read
        shares = fit_logistic(features, hidden, train, Channel(C).logs, c).log_probabilities(features).exp()
        assert (float((shares - expected).abs().max()) < 2e-3) == same


def test_the_strength_is_the_one_that_makes_validation_labels_likeliest() -> None:
    features, classes = people()
    labels, heard = noisy(classes), Channel(C, KEEP, FLIP).logs
    train, val = torch.arange(0, N, 2), torch.arange(1, N, 2)
    fitted, strength = choose_logistic(features, labels, train, val, heard)
    likelihoods = heard[:, labels[val]].T
    scores = {}
    for tried in STRENGTHS:
        cold = fit_logistic(features, labels, train, heard, tried).log_probabilities(features)[val]
        scores[tried] = float(torch.logsumexp(cold + likelihoods, dim=1).sum())
    assert scores[strength] > max(scores.values()) - 0.05
    mine = fit_logistic(features, labels, train, heard, strength).log_probabilities(features)
    assert torch.allclose(fitted.log_probabilities(features).exp(), mine.exp(), atol=5e-3)


def test_features_stay_sparse() -> None:
    graph = social_graph(600, 6, 8_000, 3, apps=5, seed=1)
    rows = unit_rows(graph.x, "cpu")
    with LargestTensor() as watch:
        fitted = fit_logistic(rows, graph.y, torch.arange(600), Channel(3).logs, 1.0)
    assert fitted.weight.shape == (8_000, 3)
    assert watch.numbers < 600 * 8_000 / 20


# ---- the log-linear pool ----


MANY, KINDS = 4_000, 3


def scores_and_reports() -> tuple[Tensor, Tensor]:
    """Log-scores that are right as they are, and labels drawn from them as log Pr[y' | class]."""
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(MANY, KINDS, generator=generator)
    labels = torch.multinomial(torch.softmax(scores, dim=1), 1, generator=generator)[:, 0]
    return scores, torch.where(torch.nn.functional.one_hot(labels, KINDS).bool(), 0.0, -20.0)


def noise() -> Tensor:
    return drawn(MANY, KINDS, seed=2)


def test_opinions_too_sure_are_set_right_and_those_that_say_nothing_weigh_nothing() -> None:
    """20 times too sure, as beliefs after loops are: the weight is a twentieth, to a tenth of it."""
    scores, heard = scores_and_reports()
    (weight,) = pool_weights(20 * scores[None], heard, torch.tensor([0.1]))
    assert abs(20 * float(weight) - 1) < 0.1
    right, wrong = pool_weights(torch.stack([scores, noise()]), heard, torch.tensor([0.5, 0.5]))
    assert abs(float(right) - 1) < 0.1
    assert abs(float(wrong)) < 0.15


def test_more_opinions_are_taken_for_what_they_say_alone() -> None:
    scores, heard = scores_and_reports()
    good = held_out(torch.stack([noise(), scores]), heard, torch.tensor([0.5, 0.5]))
    alone = held_out(noise()[None], heard, torch.tensor([1.0]))
    more = held_out(torch.stack([noise(), noise().roll(1, dims=0)]), heard, torch.tensor([0.5, 0.5]))
    assert surely_better(good, alone)
    assert not surely_better(alone, good)
    assert not surely_better(more, alone)
    assert not surely_better(alone, alone)


def test_no_label_is_judged_by_weights_it_chose() -> None:
    """One label in the last fold is turned round: the others' likelihoods in that fold stay what they were."""
    scores, heard = scores_and_reports()
    opinions, first = scores[None, :100], torch.tensor([0.5])
    changed = heard[:100].clone()
    changed[4] = changed[4].roll(1)
    before, after = held_out(opinions, heard[:100], first), held_out(opinions, changed, first)
    fold = torch.arange(100) % 5 == 4
    fold[4] = False
    assert torch.allclose(before[fold], after[fold], atol=1e-6)
    assert not torch.allclose(before[~fold], after[~fold], atol=1e-6)


# ---- features and noisy sums joined in one hidden layer ----


ROWS, COLUMNS, K, H, LABELS = 30, 12, 4, 8, 3


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def fusion(beside: int = K, dropout: float = 0.5, seed: int = 0) -> Fusion:
    return Fusion(COLUMNS, beside, H, LABELS, dropout, generator=torch.Generator().manual_seed(seed))


def logits(model: Fusion, x: Tensor, z: Tensor) -> Tensor:
    return model.rest(model.first(build_inputs(x, None, 0, width=H), z), z)


def test_it_is_the_formula_of_the_docstring() -> None:
    model, x, z = fusion().eval(), drawn(ROWS, COLUMNS), drawn(ROWS, K, seed=1)
    hidden = functional.selu(torch.cat([x, z], dim=1) @ torch.cat([model.weight1, model.beside]) + model.bias1)
    assert torch.allclose(logits(model, x, z), hidden @ model.weight2 + model.bias2, atol=1e-5)
    assert torch.equal(fusion().weight1, model.weight1) and not torch.equal(fusion(seed=1).weight1, model.weight1)
    alone = fusion(beside=0).eval()
    expected = functional.selu(x @ alone.weight1 + alone.bias1) @ alone.weight2 + alone.bias2
    assert torch.allclose(logits(alone, x, torch.zeros(ROWS, 0)), expected, atol=1e-5)


def test_a_large_layer_in_parts_is_the_same_layer() -> None:
    x, z = drawn(70_001, COLUMNS, seed=1), drawn(70_001, K, seed=2)
    outputs, slopes = [], []
    for whole in (1 << 24, 1 << 10):
        model = fusion()
        model.whole, model.dropout = whole, 0.0
        out = logits(model.train(), x, z)
        out.square().mean().backward()
        outputs.append(out.detach())
        slopes.append([weight.grad for weight in model.parameters()])
    torch.testing.assert_close(outputs[0], outputs[1], rtol=1e-6, atol=1e-6)
    for left, right in zip(*slopes, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-7)


def test_slopes_of_a_large_layer_are_those_of_what_dropout_left() -> None:
    """Against a small step both ways under the same seed, of the rows and of the weights."""
    model, none = fusion().double().train(), drawn(70_001, 0)
    model.whole, step = 1, 1e-6
    first, way = (drawn(70_001, H, seed=seed).double() for seed in (4, 5))
    first.requires_grad_()

    def loss(rows: Tensor) -> Tensor:
        torch.manual_seed(3)
        return model.rest(rows, none).square().mean()

    loss(first).backward()
    slope, learned = float((first.grad * way).sum()), float(model.weight2.grad.sum())
    with torch.no_grad():
        moved = float(loss(first + step * way) - loss(first - step * way)) / (2 * step)
        model.weight2 += step
        above = loss(first)
        model.weight2 -= 2 * step
        changed = float(above - loss(first)) / (2 * step)
    assert moved == pytest.approx(slope, rel=1e-4) and changed == pytest.approx(learned, rel=1e-4)
    # Every part has dropout of its own.
    dropped = model.rest(torch.ones_like(first), none)
    assert not torch.equal(dropped[:1000], dropped[1 << 16 :][:1000])


# ---- a network that reads all classes alike ----


NODES, CLASSES, OWN, COMMON = 20, 5, 4, 3
RENAMED = torch.tensor([3, 0, 4, 1, 2])


def reader(hidden: int = 8) -> ClassReader:
    """With a head that is not 0, as before any training."""
    network = ClassReader(OWN, COMMON, hidden, generator=torch.Generator().manual_seed(0))
    network.head.data = drawn(hidden, seed=1)
    return network


def test_classes_renamed_are_scores_renamed() -> None:
    own, common = drawn(NODES, CLASSES, OWN), drawn(NODES, COMMON, seed=2)
    network = reader()
    scores, first = network(own, common), torch.eye(CLASSES)[0]
    assert torch.allclose(network(own[:, RENAMED], common), scores[:, RENAMED], atol=1e-5)
    # Weights that know the place of a class are noticed: here the first has a score of its own.
    assert not torch.allclose(network(own[:, RENAMED], common) + first, (scores + first)[:, RENAMED])
    other = own.clone()
    other[:, 0] += 1  # classes hear of each other, and of the node
    assert not torch.allclose(network(other, common)[:, 1:], scores[:, 1:])
    assert not torch.allclose(network(own, common + 1), scores)


def test_any_number_of_classes_and_an_untrained_reader_scores_by_the_mean() -> None:
    network = reader()
    own, common = drawn(NODES, 2, 9, OWN), drawn(NODES, 2, COMMON)
    together = network(own, common)
    assert together.shape == (NODES, 2, 9)
    assert torch.allclose(together[:, 1], network(own[:, 1], common[:, 1]), atol=1e-6)
    own = drawn(NODES, CLASSES, OWN)
    network = ClassReader(OWN, COMMON, 8, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(network(own, drawn(NODES, COMMON)), own.mean(dim=2), atol=1e-6)
