"""Which entries of a sparse matrix may differ from 0: sums and dot products over them, in O(E) memory and time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from graphveil.errors import InputError
from graphveil.graphs.value.edges import require_nodes
from graphveil.runtime.late import quiet, sparse, torch
from graphveil.runtime.sorted_arrays import distinct

if TYPE_CHECKING:
    from torch import Tensor


#: Dot products of rows run fastest over a multiple of this many columns.
_LANES = 8
#: How many values are gathered at once on a device.
_GATHERED = 1 << 24


@dataclass(frozen=True)
class Support:
    """Which entries of an [n, n] matrix may differ from 0: E of them, in both orientations, int32. Entry e sends from
    `source[e]` to `target[e]` (it stands in row target, column source); they are sorted by target, then source.
    """

    starts: Tensor  # first entry of each row [n + 1]
    source: Tensor  # [E]
    target: Tensor  # [E]
    back_starts: Tensor  # the transpose's rows [n + 1]
    back_target: Tensor  # [E]
    turned: Tensor  # the entry that each entry of the transpose is [E]; where `symmetric`, also each entry's opposite
    symmetric: bool  # every entry's opposite is there too
    #: the support as a torch CSR matrix (its values are not used); None on another device than the CPU.
    pattern: Tensor | None

    @staticmethod
    def of(edge_index: Tensor, num_nodes: int, *, self_loops: bool = False) -> Support:
        """Return the support of edges; duplicates count once, self-loops are left out. Raises InputError where an edge
        names a node outside 0..n-1, or 2^31 entries or more.

        Args:
            edge_index: int64 [2, E], row 0 sends to row 1.
            self_loops: whether every node gets one.
        """
        source, target = edge_index.cpu().numpy().astype(np.int64)
        require_nodes(source, target, num_nodes)
        keep = source != target
        # One number a pair, so that one sort finds duplicates and orders entries by row.
        codes = target[keep] * num_nodes + source[keep]
        if self_loops:
            codes = np.concatenate([codes, np.arange(num_nodes) * (num_nodes + 1)])
        codes = distinct(codes)
        if codes.size >= 2**31:
            # Entries are numbered in 32 bits, as torch's dot products of rows number them.
            raise InputError(f"a support of {codes.size} entries", allowed="below 2^31")
        target, source = codes // max(num_nodes, 1), codes % max(num_nodes, 1)
        counts = np.bincount(target, minlength=num_nodes)
        starts, indices, rows = _int32(np.concatenate([[0], np.cumsum(counts)])), _int32(source), _int32(target)
        # With entry numbers as values the transpose holds where its entries come from; by counting, not sorting.
        entries = np.arange(codes.size, dtype=np.int32)
        back = sparse.csr_matrix((entries, indices.numpy(), starts.numpy()), shape=(num_nodes,) * 2).tocsc()
        symmetric = bool(np.array_equal(back.indptr, starts) and np.array_equal(back.indices, indices))
        with quiet():
            zeros = torch.zeros(codes.size)
            pattern = torch.sparse_csr_tensor(starts, indices, zeros, (num_nodes,) * 2, check_invariants=False)
        back_starts = starts if symmetric else _int32(back.indptr)
        back_target = indices if symmetric else _int32(back.indices)
        return Support(starts, indices, rows, back_starts, back_target, _int32(back.data), symmetric, pattern)

    @property
    def num_nodes(self) -> int:
        """n."""
        return int(self.starts.numel() - 1)

    @property
    def entries(self) -> int:
        """E."""
        return int(self.source.numel())

    @property
    def edge_index(self) -> Tensor:
        """Return the entries as edges, int64 [2, E], in the order in which weights are given."""
        return torch.stack([self.source, self.target]).long()

    def row_sums(self, values: Tensor) -> Tensor:
        """Return the sums [n] of values [E] over each row."""
        return values.new_zeros(self.num_nodes).index_add_(0, self.target, values)

    def column_sums(self, values: Tensor) -> Tensor:
        """Return the sums [n] of values [E] over each column."""
        return values.new_zeros(self.num_nodes).index_add_(0, self.source, values)

    def dots(self, left: Tensor, right: Tensor) -> Tensor:
        """Return left_i . right_j of every entry j -> i [E].

        Args:
            left, right: [n, c].
        """
        if self.entries == 0:
            return left.new_zeros(0)
        if self.pattern is None:
            # The rows of entries are gathered, some entries at a time to save memory.
            size = max(1, _GATHERED // max(1, left.shape[1]))
            row_pairs = zip(torch.split(self.target, size), torch.split(self.source, size), strict=True)
            return torch.cat([(left.index_select(0, i) * right.index_select(0, j)).sum(dim=1) for i, j in row_pairs])
        padding = -left.shape[1] % _LANES
        if padding:
            left, right = torch.nn.functional.pad(left, (0, padding)), torch.nn.functional.pad(right, (0, padding))
        pattern = self.pattern if left.dtype == self.pattern.dtype else self.pattern.to(left.dtype)
        return cast(torch.Tensor, torch.sparse.sampled_addmm(pattern, left, right.T, beta=0.0).values())

    def to(self, device: torch.device | str) -> Support:
        """Return the same support on another device."""
        parts = {name: value for name, value in vars(self).items() if name != "pattern"}
        moved: dict[str, Any] = {k: v.to(device) for k, v in parts.items() if isinstance(v, torch.Tensor)}
        # Only on the CPU are dot products computed through a CSR matrix; other devices gather rows.
        return replace(self, **moved, pattern=self.pattern if torch.device(device).type == "cpu" else None)


def _int32(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.int32))
