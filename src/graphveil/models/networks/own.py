"""A user's own module as a backbone, on features as dense rows.

    z = module(X)      or, as its `forward` names them,      z = module(X, edge_index=..., edge_weight=...)

Shapes: X [n, d], edge_index [2, E], edge_weight [E] (1 where edges do not differ), z [n, classes].
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from graphveil.aggregation import Inputs
from graphveil.errors import InputError

#: The arguments that a module may name in addition to the rows.
EDGES = ("edge_index", "edge_weight")
#: Sparse rows of more than this many numbers (2 GB) are not made dense; a module may combine any rows, so it needs all.
MOST_DENSE = 500_000_000


@dataclass(frozen=True)
class Links:
    """What a module may read of the topology: edges [2, E] and their weights [E] (None: all 1)."""

    edge_index: Tensor
    weights: Tensor | None = None

    def to(self, device: str) -> Links:
        """Return the same on a device."""
        return Links(self.edge_index.to(device), None if self.weights is None else self.weights.to(device))


class OwnBackbone(nn.Module):
    """A copy of a user's module, rows [n, d] -> scores [n, c]; the module itself is never trained."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = copy.deepcopy(module)
        self.argument_names = edge_arguments_of(module)

    def first(self, inputs: Inputs, structure: Links) -> Tensor:
        """Return the rows [n, d]: no part of a module is known to be linear."""
        rows = inputs.matrix
        return rows if isinstance(rows, Tensor) else inputs.linear(torch.eye(inputs.dimension))

    def rest(self, first: Tensor, structure: Links) -> Tensor:
        """Return the scores [n, classes] of rows [n, d]."""
        edge_arguments = {}
        if "edge_index" in self.argument_names:
            edge_arguments["edge_index"] = structure.edge_index
        if "edge_weight" in self.argument_names:
            weights = structure.weights
            edge_arguments["edge_weight"] = (
                first.new_ones(structure.edge_index.shape[1]) if weights is None else weights
            )
        scores: Tensor = self.module(first, **edge_arguments)
        return scores


def edge_arguments_of(module: nn.Module) -> tuple[str, ...]:
    named = inspect.signature(module.forward).parameters
    return tuple(name for name in EDGES if name in named)


def as_rows(inputs: Inputs, *, most: int = MOST_DENSE) -> Inputs:
    """Return features as a dense matrix [n, d], propagated, shifted and scaled. Raises InputError where sparse features
    would have too many numbers.

    Args:
        inputs: sparse or dense features; dense ones may have any size.
        most: the most numbers that sparse features may have as dense rows.
    """
    if not isinstance(inputs.matrix, Tensor) and inputs.num_nodes * inputs.dimension > most:
        raise InputError(
            f"{inputs.num_nodes} sparse rows of {inputs.dimension} features",
            where="backbone",
            allowed=f"{most:,} numbers in all: a module of your own reads dense rows, all at once",
            remedy="use a named model, which reads sparse rows as they are",
        )
    rows = inputs.linear(torch.eye(inputs.dimension, device=inputs.row_sums.device))
    return replace(inputs, matrix=rows, p=None, hops=0, offset=None, mean=None, scale=1.0, answered=None)


def require_module(backbone: object) -> None:
    """Refuse a backbone that is no module: a class in place of an instance, a function, the name of a network."""
    if not isinstance(backbone, nn.Module):
        raise InputError(f"it is {backbone!r}", where="backbone", allowed="an instance of a torch.nn.Module")


def require_scores(module: nn.Module, dimension: int, classes: int, *, edges: bool) -> None:
    """Refuse a module that does not give one score for each class, by a test on zeros, which reads no data. Raises
    InputError where it needs edges but none are published, has no weights to train, fails on rows of that width, or
    gives other scores.

    Args:
        dimension: d, columns of the rows that it will read.
        edges: whether it may read edges.
    """
    require_module(module)
    if edge_arguments_of(module) and not edges:
        raise InputError(
            f"forward names {', '.join(edge_arguments_of(module))}",
            where="backbone",
            allowed="rows alone: no edge is published",
        )
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise InputError("it has no weights to train", where="backbone")
    own = OwnBackbone(module).eval()
    links = Links(torch.tensor([[0, 1], [1, 0]]))
    with torch.random.fork_rng(devices=[]), torch.no_grad(), reading_rows(dimension):
        scores = own.rest(torch.zeros(2, dimension), links)
    if not isinstance(scores, Tensor) or tuple(scores.shape) != (2, classes):
        shape = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise InputError(f"2 rows gave scores {shape}", where="backbone", allowed=f"(2, {classes})")


@contextmanager
def reading_rows(dimension: int, where: str = "backbone") -> Iterator[None]:
    """While the block runs, turn any error of a user's module into an InputError about rows of that width."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # code of a user's own may raise anything
        raise InputError(
            f"it cannot read rows of {dimension} numbers ({error})", where=where, allowed=f"[n, {dimension}]"
        ) from error


def require_weights(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """Refuse stored weights that are not those of a module, with an InputError that names the first wrong tensor."""
    expected = {name: (tuple(value.shape), value.dtype) for name, value in module.state_dict().items()}
    stored = {name: (tuple(value.shape), value.dtype) for name, value in weights.items()}
    for name in sorted({*stored, *expected}):
        if stored.get(name) != expected.get(name):
            raise InputError(f"{name} is {stored.get(name)}", where="backbone", allowed=str(expected.get(name)))
        if not bool(torch.isfinite(weights[name]).all()):
            raise InputError(f"{name} holds what is not a number", where="backbone")
