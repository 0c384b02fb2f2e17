"""Features as they are published: unbiased estimates, with the range that public facts alone give them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.graphs.value.schema import FeatureNumbers, GraphSchema
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


#: Deviations of noise beside half the declared range, where a mechanism's own numbers have no small bound.
DEVIATIONS = 16.0
#: Numbers of a dense table of estimates.
LARGEST = 200_000_000


@dataclass(frozen=True)
class PublishedFeatures:
    """Features x [n, d], dense or sparse CSR, and what a reader must know of them."""

    x: Tensor
    note: str


def published_schema(schema: GraphSchema, mechanism: Any, nodes: int) -> GraphSchema:
    """Return the declaration of what will be published; nobody's data is read.

    Args:
        schema: of the private graph.
        mechanism: of the features; None: they are published as they are.
        nodes: n.

    Raises:
        InputError: a dense table of estimates that would be too large.
    """
    numbers = None if mechanism is None else _numbers(mechanism, nodes)
    # Notes are left out: they count what loading met in private values.
    return schema.derived(private=(), notes=(), numbers=numbers)


def _numbers(mechanism: Any, nodes: int) -> FeatureNumbers:
    if not hasattr(mechanism, "coordinates") and nodes * mechanism.dimension > LARGEST:
        raise InputError(
            f"{nodes:,} x {mechanism.dimension:,} noisy numbers are too many",
            where="features",
            allowed=f"{LARGEST:,}",
            remedy="take a mechanism that samples coordinates: multi-bit, duchi, piecewise, hybrid",
        )
    bound = bound_of(mechanism)
    return FeatureNumbers(mechanism.dimension, -bound, bound, "the mechanism that made the features")


def published_features(mechanism: Any, reports: Any) -> PublishedFeatures:
    """Return what is published of reports: post-processing, in the range of `published_schema`.

    Sparse estimates are stored less the middle of the declared range, so that what nobody reported stays 0; dense ones
    likewise, so that both mean the same.
    """
    bound = bound_of(mechanism)
    # Centred, so that a coordinate that nobody reported is a zero that need not be stored.
    centred = mechanism.centred(reports)
    x = (
        _tensor(centred)
        if sp.issparse(centred)
        else torch.from_numpy(np.clip(centred, -bound, bound).astype(np.float32))
    )
    middle, deviation = mechanism.midpoint, math.sqrt(mechanism.worst_variance)
    note = (
        f"features are unbiased estimates less the middle {middle:g} of the declared range, with standard deviation "
        f"up to {deviation:.3g}: add {middle:g} to compare with the original"
    )
    return PublishedFeatures(x, note)


def bound_of(mechanism: Any) -> float:
    """Return the largest size that a published number may have, from public facts, as a 32-bit number.

    Exact where a mechanism has few possible numbers (its `largest`); else half the range and DEVIATIONS deviations of
    noise, to which the rare number beyond is clipped.
    """
    largest = getattr(mechanism, "largest", None)
    if largest is None:
        largest = (mechanism.high - mechanism.low) / 2 + DEVIATIONS * math.sqrt(mechanism.worst_variance)
    # Rounded outwards: a bound that float32 rounds down would refuse the mechanism's own largest number.
    return float(np.nextafter(np.float32(largest), np.float32(np.inf)))


def _tensor(rows: sp.csr_matrix) -> Tensor:
    from graphveil.graphs.value.features import features_from_rows

    return features_from_rows(rows)
