"""A link weight on every pair of n people: single weights of some pairs, and G x G weights between groups.

    A = S + Z B Z^T - diag(B),     A x = S x + Z (B (Z^T x)) - ...          Z [n, G] says who is in which group

S holds the named pairs' weights less their groups', so that a product costs the named pairs and G^2, never n^2.
Normalised as any adjacency: D^{-1/2} A D^{-1/2} or D^{-1} A, with self-loops of weight 1 where asked for.
Shapes: x [n, c]; A[target, source], as `aggregation.adjacency`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.aggregation import SparseMatrix, from_scipy
from graphveil.aggregation.propagation import Normalisation
from graphveil.errors import InputError
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.late import sparse as sp


@dataclass(frozen=True)
class GroupedMatrix:
    """`matrix @ x` = L (S + Z B Z^T) R x, differentiable in x; float32."""

    single: SparseMatrix  # L S R [n, n] sparse, the diagonal included
    background: Tensor  # B [G, G]
    group: Tensor  # [n]
    left: Tensor  # the diagonal of L [n, 1]
    right: Tensor  # the diagonal of R [n, 1]

    @property
    def shape(self) -> tuple[int, int]:
        return self.single.shape

    def __matmul__(self, x: Tensor) -> Tensor:
        single = self.single @ x
        sums = x.new_zeros(len(self.background), x.shape[1]).index_add(0, self.group, self.right * x)
        return single + self.left * (self.background @ sums)[self.group]

    def to(self, device: torch.device | str) -> GroupedMatrix:
        parts = (self.background, self.group, self.left, self.right)
        return GroupedMatrix(self.single.to(device), *(part.to(device) for part in parts))


@dataclass(frozen=True)
class SoftLinks:
    """The weights before any normalisation, float64."""

    single: sp.csr_matrix  # S less the diagonal of B [n, n]
    background: Tensor  # B [G, G], receivers' groups first
    group: Tensor  # [n]
    sizes: Tensor  # [G]

    def degrees(self) -> tuple[Tensor, Tensor]:
        """Return the weight that everyone receives and sends [n], float64."""
        sizes = self.sizes.double()
        received = torch.from_numpy(np.asarray(self.single.sum(axis=1)).ravel()) + (self.background @ sizes)[self.group]
        sent = torch.from_numpy(np.asarray(self.single.sum(axis=0)).ravel()) + (sizes @ self.background)[self.group]
        return received, sent

    def normalised(self, normalisation: Normalisation = "gcn", *, self_loops: bool = False) -> GroupedMatrix:
        """Return the matrix of `aggregation.normalised` for these weights.

        Args:
            normalisation: "gcn" or "mean".
        """
        received, sent = (degree + float(self_loops) for degree in self.degrees())
        if normalisation == "mean":
            left, right = _inverse(received), torch.ones_like(sent)
        else:
            left, right = _inverse(received).sqrt(), _inverse(sent).sqrt()
        loops = sp.identity(len(self.group), format="csr") * float(self_loops)
        single = sp.diags_array(left.numpy()) @ (self.single + loops) @ sp.diags_array(right.numpy())
        mirrored = torch.equal(self.background, self.background.T) and (self.single != self.single.T).nnz == 0
        matrix = from_scipy(single.tocsr(), symmetric=normalisation == "gcn" and mirrored)
        return GroupedMatrix(matrix, self.background.float(), self.group, left[:, None].float(), right[:, None].float())

    def structure(self, name: str, device: torch.device | str = "cpu") -> Any:
        """Return what backbone `name` reads of the links, as `models.structure_for` does of edges. Raises InputError
        for "gat", which reads edges one by one: here every pair is an edge.

        Args:
            name: one of `BACKBONES`.
        """
        if name == "gat":
            raise InputError("model gat cannot read a weight on every pair", allowed="sage, gcn, mlp")
        if name == "sage":
            return self.normalised("mean").to(device)
        return self.normalised("gcn", self_loops=True).to(device) if name == "gcn" else None


def soft_links(
    source: Tensor, target: Tensor, weights: Tensor, background: Tensor, group: Tensor, sizes: Tensor, *, directed: bool
) -> SoftLinks:
    """Weigh the named pairs one by one, and all others by their groups.

    Args:
        source, target: int64 [S], the named pairs.
        weights: [S], of the named pairs.
        background: [G, G], of a source's and a target's group.
        group: int64 [n].
        sizes: [G].
        directed: whether (u, v) and (v, u) are two pairs.
    """
    n = len(group)
    extra = weights - background[group[source], group[target]]
    everyone = torch.arange(n)
    rows, columns = (target, source) if directed else (torch.cat([target, source]), torch.cat([source, target]))
    extra = extra if directed else extra.repeat(2)
    rows, columns = torch.cat([rows, everyone]), torch.cat([columns, everyone])
    values = torch.cat([extra, -background.diagonal()[group]])
    single = sp.csr_matrix((values.numpy(), (rows.numpy(), columns.numpy())), shape=(n, n))
    return SoftLinks(single, background.T.contiguous(), group, sizes)


def _inverse(values: Tensor) -> Tensor:
    """Return 1 / values where values are positive, else 0; rounding may make a sum of weights negative."""
    # A node without any weight has no neighbours to average: its row is 0 and not infinite.
    return torch.where(values > 0, 1 / values.clamp_min(torch.finfo(values.dtype).tiny), 0.0)
