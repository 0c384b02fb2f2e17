"""What stands for data that are public or not collected: no noise, no promise, nothing drawn."""

from __future__ import annotations

import math

import pytest
import torch

from graphveil.graphs import GraphSchema
from graphveil.mechanisms import MultiBit, NotCollected, Public, PublicLabels, RandomizedResponse
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.privacy import Randomness
from graphveil.privacy.unit import USER_FEATURES, USER_LABEL
from tests.mechanisms.made import Untouched

SCHEMA = GraphSchema(
    name="made", dimension=3, low=-1.0, high=1.0, classes=("a", "b"), directed=False, private=(), source="made"
)


SOURCE: Randomness = Untouched()


def test_public_vectors_are_sent_as_they_are_and_said_not_to_be_protected() -> None:
    mechanism, values = Public(dimension=3), torch.rand(4, 3, generator=torch.Generator().manual_seed(1))
    reports = mechanism.randomize(values, randomness=SOURCE)
    assert reports is values and mechanism.centred(reports) is values
    assert (mechanism.midpoint, mechanism.worst_variance, mechanism.report_bytes) == (0.0, 0.0, 12.0)
    for mechanism, unit in ((Public(dimension=3), USER_FEATURES), (PublicLabels(classes=3), USER_LABEL)):
        guarantee = mechanism.guarantee
        assert guarantee.unit == unit and guarantee.epsilon == math.inf
        assert any("NOT protected" in str(fact) for fact in guarantee.assumes)


@pytest.mark.parametrize("labels", [torch.tensor([2, 0, 1]), torch.eye(3, dtype=torch.int64)])
def test_public_labels_are_sent_as_they_are(labels: torch.Tensor) -> None:
    mechanism = PublicLabels(classes=3)
    reports = mechanism.randomize(labels, randomness=SOURCE)
    assert reports.labels is labels and len(reports) == 3
    assert (mechanism.keep, mechanism.flip) == (1.0, 0.0)


def test_local_privacy_says_which_it_is_and_charges_for_noise_alone() -> None:
    noisy, labels, open_ = LocalPrivacy(1.0, 2.0), LocalPrivacy(None, 2.0), LocalPrivacy(math.inf, math.inf)
    assert isinstance(noisy.features(SCHEMA), MultiBit) and isinstance(noisy.labels(2), RandomizedResponse)
    assert labels.features(SCHEMA) == NotCollected() and NotCollected().report_bytes == 0.0
    assert open_.features(SCHEMA) == Public(dimension=3) and open_.labels(2) == PublicLabels(classes=2)
    assert [spend.unit for spend in noisy.spends(SCHEMA)] == ["features", "labels"]
    assert [spend.unit for spend in labels.spends(SCHEMA)] == ["labels"]
    assert open_.spends(SCHEMA) == ()
    said = [str(fact) for fact in open_.guarantee(SCHEMA).assumes if "NOT protected" in str(fact)]
    assert len(said) == 2
    assert open_.channel(2) == (1.0, 0.0)
