"""Reports made by blocks of people follow the law of the mechanism, and a bad value is refused before any is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy import stats
from torch import Tensor

from graphveil.engine import LocalEngine
from graphveil.errors import InputError
from graphveil.mechanisms import (
    FeatureRR,
    Laplace,
    MultiBit,
    OneBit,
    PrivUnit,
    Public,
    PublicLabels,
    RandomizedResponse,
)
from graphveil.mechanisms.by_blocks import PEOPLE, randomize_by_blocks
from graphveil.privacy import Randomness, SecureRandomness, SeededRandomness
from tests.mechanisms import conformance
from tests.mechanisms.made import Untouched

MANY = 9 * PEOPLE + 5
VECTORS: dict[str, Any] = {"epsilon": 4.0, "dimension": 3}


@dataclass(frozen=True)
class ByBlocks:
    """A mechanism whose devices report by blocks."""

    mechanism: Any

    def randomize(self, values: Any, *, randomness: Randomness) -> Any:
        return randomize_by_blocks(self.mechanism, values, randomness=randomness, engine=LocalEngine(2))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.mechanism, name)


def by_blocks(name: str) -> conformance.Case:
    return replace(conformance.AUDITED[name], wrap=ByBlocks)


@pytest.mark.parametrize("name", ["multi-bit", "one-bit", "randomized-response"])
def test_reports_follow_the_law_of_the_mechanism(name: str) -> None:
    """30,000 reports of an input, of 8 blocks; the same noise in each would count every one of them 8 times."""
    conformance.check_sampler_follows_likelihood(by_blocks(name))


def test_few_people_are_asked_as_ever() -> None:
    conformance.check_bad_values(by_blocks("multi-bit"))
    conformance.check_reports(by_blocks("multi-bit"))


def test_people_of_different_blocks_share_no_noise() -> None:
    """The pairs of reports of people one block apart are independent (chi-square, false alarms 1e-6)."""
    mechanism = RandomizedResponse(epsilon=0.5, classes=4)
    sent = randomize_by_blocks(mechanism, torch.zeros(MANY, dtype=torch.int64), randomness=SeededRandomness(5)).labels

    def fit(first: Tensor, second: Tensor) -> float:
        return float(stats.chi2_contingency(np.histogram2d(first, second, 4)[0]).pvalue)

    assert fit(sent[:-PEOPLE], sent[PEOPLE:]) > 1e-6
    repeated = sent[:PEOPLE].repeat(3)
    assert fit(repeated[:-PEOPLE], repeated[PEOPLE:]) < 1e-6


def one_wrong(value: float) -> Tensor:
    values = torch.full((MANY, 3), 0.5)
    values[8 * PEOPLE + 3, 1] = value
    return values


BAD: dict[str, tuple[Any, Any]] = {
    "multi-bit": (MultiBit(**VECTORS), one_wrong(1.5)),
    "not a number": (OneBit(**VECTORS), one_wrong(float("nan"))),
    "sparse": (MultiBit(**VECTORS), scipy.sparse.csr_matrix(one_wrong(-1.0).numpy())),
    "too long": (PrivUnit(**VECTORS, radius=0.3, codewords=4), one_wrong(1.0)),
    "a class": (RandomizedResponse(epsilon=1.0, classes=2), (one_wrong(2.0)[:, 1] > 1).long() * 5),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_of_a_late_block_is_named_before_any_noise_is_drawn(name: str) -> None:
    mechanism, values = BAD[name]
    with pytest.raises(InputError, match=f"row {8 * PEOPLE + 3}"):
        randomize_by_blocks(mechanism, values, randomness=Untouched())


@pytest.mark.parametrize("kind", [Laplace, FeatureRR])
def test_reports_that_are_too_many_for_memory_are_refused_as_a_whole(kind: Any) -> None:
    """Each block of them would be small enough."""
    mechanism = kind(epsilon=4e4, dimension=132_000)
    nothing = scipy.sparse.csr_matrix((2 * PEOPLE, 132_000))
    with pytest.raises(InputError, match="dense numbers"):
        randomize_by_blocks(mechanism, nothing, randomness=Untouched())


def test_a_codebook_belongs_to_a_person_and_public_data_are_sent_as_they_are() -> None:
    mechanism = PrivUnit(**VECTORS, codewords=4)
    sent = randomize_by_blocks(mechanism, torch.rand(2 * PEOPLE, 3), randomness=SecureRandomness())
    assert torch.equal(sent.codebooks, torch.arange(2 * PEOPLE))
    values, classes = torch.rand(MANY, 3), torch.zeros(MANY, dtype=torch.int64)
    assert randomize_by_blocks(Public(dimension=3), values, randomness=Untouched()) is values
    assert randomize_by_blocks(PublicLabels(classes=2), classes, randomness=Untouched()).labels is classes


@pytest.mark.parametrize(
    ("mechanism", "values"),
    [
        (MultiBit(epsilon=1.0, dimension=2), torch.zeros(3, 2)),
        (PrivUnit(epsilon=1.0, dimension=2), torch.full((3, 2), 0.5)),
        (RandomizedResponse(epsilon=1.0, classes=3), torch.tensor([0, 1, 2])),
    ],
)
def test_a_number_is_no_source_of_noise(mechanism: Any, values: Tensor) -> None:
    with pytest.raises(InputError, match="randomness is 3; allowed: a source"):
        mechanism.randomize(values, randomness=3)
