"""What stands for data that are public or not collected: no noise, no promise, nothing drawn."""

from __future__ import annotations

import math

import torch

from graphveil.graphs import GraphSchema
from graphveil.mechanisms import MultiBit, NotCollected, Public, PublicLabels, RandomizedResponse
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy.statement.unit import USER_FEATURES, USER_LABEL
from tests.mechanisms.made import Untouched

SCHEMA = GraphSchema(
    name="made", dimension=3, low=-1.0, high=1.0, classes=("a", "b"), directed=False, private=(), source="made"
)


def test_public_data_are_sent_as_they_are_and_said_not_to_be_protected() -> None:
    mechanism, values = Public(dimension=3), torch.rand(4, 3)
    reports = mechanism.randomize(values, randomness=Untouched())
    assert reports is values and mechanism.centred(reports) is values
    assert (mechanism.midpoint, mechanism.worst_variance, mechanism.report_bytes) == (0.0, 0.0, 12.0)
    labels = PublicLabels(classes=3)
    for sent in (torch.tensor([2, 0, 1]), torch.eye(3, dtype=torch.int64)):
        assert labels.randomize(sent, randomness=Untouched()).labels is sent
    assert (labels.keep, labels.flip) == (1.0, 0.0)
    for each, unit in ((mechanism, USER_FEATURES), (labels, USER_LABEL)):
        assert each.guarantee.unit == unit and each.guarantee.epsilon == math.inf
        assert any("NOT protected" in str(fact) for fact in each.guarantee.assumes)


def test_local_privacy_says_which_it_is_and_charges_for_noise_alone() -> None:
    noisy, labels, open_ = LocalPrivacy(1.0, 2.0), LocalPrivacy(None, 2.0), LocalPrivacy(math.inf, math.inf)
    assert isinstance(noisy.features(SCHEMA), MultiBit) and isinstance(noisy.labels(2), RandomizedResponse)
    assert labels.features(SCHEMA) == NotCollected() and NotCollected().report_bytes == 0.0
    assert open_.features(SCHEMA) == Public(dimension=3) and open_.labels(2) == PublicLabels(classes=2)
    assert [spend.unit for spend in noisy.spends(SCHEMA)] == ["features", "labels"]
    assert [spend.unit for spend in labels.spends(SCHEMA)] == ["labels"]
    assert open_.spends(SCHEMA) == ()
    sentences = [str(fact) for fact in open_.guarantee(SCHEMA).assumes if "NOT protected" in str(fact)]
    assert len(sentences) == 2
    assert open_.channel(2) == Channel(2)
