"""The networks of the parties: embeddings at each holder, their combination at the server, classes at the label holder.

    holder   h^k_v = tanh( W_k [h^{k-1}_v, mean_{u in N(v)} h^{k-1}_u] + b_k ),  k = 1..K,  rows scaled to length 1
    server   Z = concat_i h^i | mean_i h^i | sum_i omega_i * h^i (entry by entry);  z <- dropout(sigmoid(W_l z + b_l))
    labels   softmax(W_L z + b_L)

"gcn" takes the normalised sum over N(v) + {v} in place of the pair, "gat" the attention-weighted one.
Source: Chen et al., IJCAI 2022, arXiv 2005.11903, equations 3 to 9.  Shapes: h0 [n, d], h^i [n, d], z [n, d].
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.errors import InputError
from graphveil.models.networks.layers import dropout, glorot
from graphveil.models.networks.two_layers import attend

AGGREGATORS = ("sage", "gcn", "gat")
COMBINES = ("concat", "mean", "regression")
#: The root-mean-square length of embeddings at the server: at 1 its first layer sees little of how nodes differ.
EMBEDDING_LENGTH = 4.0
#: The least length of rows less their mean, as a share of their noise's: anything shorter is noise alone.
_MIN_NOISE_SHARE = 2.0**-4


def standardise(rows: Tensor, length: float, noise: float = 0.0, *, like: Tensor | None = None) -> Tensor:
    """Return rows less a mean, all scaled by one number, so that they have a given length without their noise.

    In a dense graph propagation makes all rows nearly alike: what they share is most of their length, and says nothing
    of a class. One number for all, so that a row of little signal stays short. Free, of rows that were published.

    Args:
        rows: [n, d].
        length: root-mean-square length of a row afterwards, without its noise.
        noise: root-mean-square length of the noise in a row of `like`.
        like: rows that mean and scale are computed from, [m, d], such as those a network was trained on; None: `rows`.
    """
    like = rows if like is None else like
    mean = like.mean(dim=0)
    # A constant to the gradient: rows are trained for what they say, and not for how long they are.
    squares = (like - mean).detach().square().sum(dim=1).mean() - noise**2
    return (rows - mean) * (length / squares.clamp_min((_MIN_NOISE_SHARE * noise) ** 2 + 1e-18).sqrt())


class Propagation(nn.Module):
    """K rounds of aggregation over a holder's own edges; its structure never leaves the holder."""

    def __init__(self, kind: str, width: int, hops: int, *, generator: torch.Generator) -> None:
        super().__init__()
        if kind not in AGGREGATORS:
            raise InputError(f"aggregator {kind!r} is not known", allowed=", ".join(AGGREGATORS))
        self.kind = kind
        wide = 2 * width if kind == "sage" else width
        self.weights = nn.ParameterList([glorot((wide, width), generator) for _ in range(hops)])
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(width)) for _ in range(hops)])
        self.attention = nn.ParameterList(
            [glorot((2, 1, width), generator) for _ in range(hops if kind == "gat" else 0)]
        )

    def forward(self, h: Tensor, structure: Any) -> Tensor:
        """Return h^K, rows of length 1, float32 [n, d].

        Args:
            h: h^0, float32 [n, d].
            structure: of `models.structure_for`.
        """
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if self.kind == "sage":
                h = torch.cat([h, structure @ h], dim=1) @ weight
            elif self.kind == "gcn":
                h = structure @ (h @ weight)
            else:
                h = attend(h @ weight, self.attention[k], structure)
            h = torch.tanh(h + bias)
        # Rows of length 1: one holder's rows weigh as much as another's, and clipping to C = 1 cuts nothing.
        return functional.normalize(h, dim=1)


class Combination(nn.Module):
    """The server's part: combine the holders' embeddings, then hidden layers."""

    def __init__(
        self, kind: str, holders: int, width: int, layers: int, dropout: float, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        if kind not in COMBINES:
            raise InputError(f"combination {kind!r} is not known", allowed=", ".join(COMBINES))
        self.kind, self.dropout = kind, dropout
        first = holders * width if kind == "concat" else width
        # Equation 9's weights begin as the mean: before training no holder counts more than another.
        self.omega = nn.Parameter(torch.full((holders, width), 1 / holders)) if kind == "regression" else None
        sizes = [first, *[width] * layers]
        pairs = list(itertools.pairwise(sizes))
        self.weights = nn.ParameterList([glorot(pair, generator) for pair in pairs])
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(out)) for _, out in pairs])

    def forward(self, embeddings: Sequence[Tensor]) -> Tensor:
        """Return z_L [n, d]."""
        if self.kind == "concat":
            z = torch.cat(list(embeddings), dim=1)
        elif self.omega is None:
            z = torch.stack(list(embeddings)).mean(dim=0)
        else:
            z = (torch.stack(list(embeddings)) * self.omega[:, None]).sum(dim=0)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            z = dropout(torch.sigmoid(z @ weight + bias), self.dropout, self.training)
        return z


class OutputLayer(nn.Module):
    """The label holder's part: logits [m, classes]."""

    def __init__(self, width: int, classes: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = glorot((width, classes), generator)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, z: Tensor) -> Tensor:
        return z @ self.weight + self.bias
