"""Neighbourhood aggregation: sparse products, K-hop propagation, noisy sums and features as operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.runtime.late import late_names, lazy_names

if TYPE_CHECKING:
    from graphveil.aggregation.counted import CountedSum as CountedSum
    from graphveil.aggregation.exact_sum import ReceiverRows as ReceiverRows
    from graphveil.aggregation.grid import GridRows as GridRows
    from graphveil.aggregation.grid import quantise as quantise
    from graphveil.aggregation.grid import unit_rows as unit_rows
    from graphveil.aggregation.inputs import Inputs as Inputs
    from graphveil.aggregation.inputs import build_inputs as build_inputs
    from graphveil.aggregation.inputs import dense_is_cheaper as dense_is_cheaper
    from graphveil.aggregation.inputs import standardise as standardise
    from graphveil.aggregation.names import Unit as Unit
    from graphveil.aggregation.perturbed import PerturbedSum as PerturbedSum
    from graphveil.aggregation.perturbed import propagate_privately as propagate_privately
    from graphveil.aggregation.perturbed import sensitivity_of as sensitivity_of
    from graphveil.aggregation.propagation import adjacency as adjacency
    from graphveil.aggregation.propagation import normalised as normalised
    from graphveil.aggregation.propagation import propagate as propagate
    from graphveil.aggregation.propagation import store_propagation as store_propagation
    from graphveil.aggregation.propagation import stored_propagation as stored_propagation
    from graphveil.aggregation.sparse import SparseMatrix as SparseMatrix
    from graphveil.aggregation.sparse import from_scipy as from_scipy
    from graphveil.aggregation.support import Support as Support
    from graphveil.aggregation.weighted import WeightedMatrix as WeightedMatrix
    from graphveil.aggregation.weighted import normalised_weights as normalised_weights

_HOMES = late_names(__name__, __file__)

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
