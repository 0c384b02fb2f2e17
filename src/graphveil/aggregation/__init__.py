"""Neighbourhood aggregation: sparse products, K-hop propagation, noisy sums and features as operators."""

from graphveil.aggregation.exact_sum import ReceiverRows
from graphveil.aggregation.grid import GridRows, quantise, unit_rows
from graphveil.aggregation.inputs import Inputs, build_inputs, dense_is_cheaper, standardise
from graphveil.aggregation.perturbed import PerturbedSum, Unit, propagate_privately, sensitivity_of
from graphveil.aggregation.propagation import adjacency, normalised, propagate
from graphveil.aggregation.sparse import SparseMatrix, from_scipy
from graphveil.aggregation.weighted import Support, WeightedMatrix, normalised_weights

__all__ = [
    "GridRows",
    "Inputs",
    "PerturbedSum",
    "ReceiverRows",
    "SparseMatrix",
    "Support",
    "Unit",
    "WeightedMatrix",
    "adjacency",
    "build_inputs",
    "dense_is_cheaper",
    "from_scipy",
    "normalised",
    "normalised_weights",
    "propagate",
    "propagate_privately",
    "quantise",
    "sensitivity_of",
    "standardise",
    "unit_rows",
]
