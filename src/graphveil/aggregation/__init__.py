"""Neighbourhood aggregation: sparse products, K-hop propagation and features as operators."""

from graphveil.aggregation.inputs import Inputs, build_inputs, dense_is_cheaper, standardise
from graphveil.aggregation.propagation import adjacency, normalised, propagate
from graphveil.aggregation.sparse import SparseMatrix, from_scipy
from graphveil.aggregation.weighted import Support, WeightedMatrix, normalised_weights

__all__ = [
    "Inputs",
    "SparseMatrix",
    "Support",
    "WeightedMatrix",
    "adjacency",
    "build_inputs",
    "dense_is_cheaper",
    "from_scipy",
    "normalised",
    "normalised_weights",
    "propagate",
    "standardise",
]
