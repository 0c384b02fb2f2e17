"""A constant sparse matrix that multiplies dense ones, forwards and backwards.

    y = A x,        dL/dx = A^T dL/dy

Both products run as weighted sums over rows, on CPU in a compiled loop that holds a row in registers (`loops`), else
by `torch.nn.functional.embedding_bag`, which adds up in the same order with the same roundings (benchmarks/kernels.py).
The transpose is stored, so a gradient costs what the product costs.  An engine works on blocks of rows: a row is added
up in the order of its entries wherever that is done, so all engines give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import numpy.typing as npt

from graphveil.aggregation.shared import as_tensor, room, widened
from graphveil.engine import LOCAL, Block, Blocks, Engine, LocalEngine
from graphveil.engine.contract import VALUES, Shared
from graphveil.errors import InputError
from graphveil.runtime.late import sparse as sp
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


#: From so many successive products on, preparing the matrix once pays off.
_MANY_PRODUCTS: Final = 8
#: Rows are renumbered for dense matrices of at least so many numbers, about half of a core's cache, and for fewer than
#: so many entries: with more, renumbering takes longer than it saves.
_FAR_NUMBERS: Final = 1 << 18
_FEW_ENTRIES: Final = 1 << 20


@dataclass(frozen=True)
class Rows:
    """Compressed sparse rows: row i is `indices[starts[i]:starts[i+1]]` weighted by `values`. `starts` are int32, or
    int64 where there are 2^31 entries and more; `engine` is where products are worked on.
    """

    starts: Tensor
    indices: Tensor
    values: Tensor
    engine: Engine = LOCAL

    def times(self, x: Tensor) -> Tensor:
        """Return the product with a dense `x` [columns, c] -> [rows, c]."""
        return self.power(x, 1)

    def power(self, x: Tensor, hops: int) -> Tensor:
        """Return the product `hops` times, with a dense `x` [columns, c] first -> [rows, c]; above 1 of square rows."""
        return self.walk(x, hops, 1.0)

    def walk(self, x: Tensor, hops: int, alpha: float) -> Tensor:
        """Return what z = x becomes by z <- (1 - alpha) x + alpha A z, done `hops` times [rows, c]; alpha 1: A^hops x.

        Args:
            x: dense [columns, c].
            hops: above 1 of square rows.
            alpha: the weight of one more hop.
        """
        if hops == 0:
            return x

        def walk_from(x: Tensor, _: Tensor | None, multiply: Callable[[Tensor], Tensor]) -> list[Tensor]:
            z, seeds = x, None if alpha == 1.0 else x * (1 - alpha)
            for _hop in range(hops):
                product = multiply(z)
                z = product if seeds is None else torch.add(seeds, product, alpha=alpha, out=product)
            return [z]

        return self._by_products(x, hops, walk_from)[0]

    def polynomials(
        self, x: Tensor, coefficients: Sequence[Sequence[float]], nodes: Tensor | None = None
    ) -> list[Tensor]:
        """Return sum_k a_k A^k x for several rows of coefficients a_0..a_K, from one chain of K products.

        Args:
            x: dense [columns, c]; rows are square.
            coefficients: K + 1 each.
            nodes: int64 [m], whose rows are wanted; None: all [rows, c].
        """

        def added_up(x: Tensor, nodes: Tensor | None, multiply: Callable[[Tensor], Tensor]) -> list[Tensor]:
            wanted = x if nodes is None else x[nodes]
            totals, z = [row[0] * wanted for row in coefficients], x
            for column in zip(*(row[1:] for row in coefficients), strict=True):
                z = multiply(z)
                wanted = z if nodes is None else z[nodes]
                for total, coefficient in zip(totals, column, strict=True):
                    if coefficient:
                        total.add_(wanted, alpha=coefficient)
            return totals

        return self._by_products(x, len(coefficients[0]) - 1, added_up, nodes)

    def _by_products(
        self,
        x: Tensor,
        hops: int,
        work: Callable[[Tensor, Tensor | None, Callable[[Tensor], Tensor]], list[Tensor]],
        nodes: Tensor | None = None,
    ) -> list[Tensor]:
        """Return `work` of x, some nodes and the product with A, prepared for so many products."""
        # The compiled loop has weights of float32 alone, and no engine changes a bit with others either.
        if self.values.dtype != torch.float32 or (x.device.type != "cpu" and self.engine == LOCAL):
            return work(x, nodes, self._bags)
        wide = torch.from_numpy(widened(x.cpu().numpy(), many_products=hops >= _MANY_PRODUCTS))
        far = wide.numel() >= _FAR_NUMBERS and self.indices.numel() < _FEW_ENTRIES
        if hops >= _MANY_PRODUCTS and far and self.engine == LOCAL:
            order, places, reordered = self._reordered
            wanted = None if nodes is None else places[nodes]
            results = work(wide.index_select(0, order), wanted, reordered._multiplier(wide.shape[1]))
            if nodes is None:
                results = [result.index_select(0, places) for result in results]
        else:
            results = work(wide, None if nodes is None else nodes.cpu(), self._multiplier(wide.shape[1]))
        cut = wide.shape[1] != x.shape[1]
        return [(result[:, : x.shape[1]].contiguous() if cut else result).to(x.device) for result in results]

    def _multiplier(self, columns: int) -> Callable[[Tensor], Tensor]:
        """Return a function that multiplies matrices of so many columns into two arrays in turn: new memory is slow."""
        rooms: list[npt.NDArray[np.float32]] = []

        def multiply(z: Tensor) -> Tensor:
            if len(rooms) < 2:
                rooms.append(room(self.starts.numel() - 1, columns))
            rooms.reverse()
            return torch.from_numpy(self._sums(z.numpy(), rooms[0]))

        return multiply

    @cached_property
    def _reordered(self) -> tuple[Tensor, Tensor, Rows]:
        """Square rows renumbered so that linked rows are close in memory: their order, its inverse, and the rows. Every
        row has its entries in the same order as before, and so every sum the same bits.
        """
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        starts, entries = self.starts.long(), self.indices.numel()
        matrix = sp.csr_matrix((self.values.numpy(), self.indices.numpy(), self.starts.numpy()), (len(starts) - 1,) * 2)
        order = torch.from_numpy(reverse_cuthill_mckee(matrix).astype(np.int64))
        places = torch.empty_like(order)
        places[order] = torch.arange(len(order))
        counts = torch.diff(starts)[order]
        first = counts.cumsum(0) - counts
        sources = torch.repeat_interleave(starts[order] - first, counts) + torch.arange(entries)
        ends = torch.cat([first, first.new_tensor([entries])]).to(self.starts.dtype)
        return order, places, Rows(ends, places[self.indices[sources].long()].int(), self.values[sources])

    def _bags(self, x: Tensor) -> Tensor:
        if self.indices.numel() == 0:
            return x.new_zeros(self.starts.numel() - 1, x.shape[1])
        if self.starts.dtype == torch.int64:
            product = x.new_empty(self.starts.numel() - 1, x.shape[1])
            for block in Blocks.of(*product.shape):
                product[block.rows] = self.part(block.rows)._bags(x)
            return product
        return torch.nn.functional.embedding_bag(
            self.indices, x, self.starts, mode="sum", per_sample_weights=self.values, include_last_offset=True
        )

    def _sums(self, x: npt.NDArray[np.float32], out: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        from graphveil.aggregation.loops import add_rows

        if self.engine != LOCAL:
            return self.into(x, out)
        starts, indices, values = self._arrays
        threads = 1 if out.size <= VALUES else torch.get_num_threads()
        if threads == 1:
            add_rows(starts, indices, values, x, out)
            return out
        blocks = Blocks.of(*out.shape)

        def add(block: Block) -> None:
            add_rows(starts[block.start : block.stop + 1], indices, values, x, out[block.rows])

        for _ in LocalEngine(threads).map_blocks(add, blocks):
            pass
        return out

    def into(self, x: Shared, out: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Write the product with a dense matrix block by block, and return it.

        Args:
            x: [columns, c]; may be on disk.
            out: [rows, c], set; may be on disk.
        """
        blocks = Blocks.of(*out.shape)
        shared = (*self._arrays, *self.engine.put(x))
        return self.engine.gather(self.engine.map_blocks(_product, blocks, shared), blocks, out)

    @cached_property
    def _arrays(self) -> tuple[Any, ...]:
        """The rows as the engine holds them: handed over once, for all products."""
        return self.engine.put(*(part.cpu().numpy() for part in (self.starts, self.indices, self.values)))

    def on(self, engine: Engine) -> Rows:
        return self if engine == self.engine else replace(self, engine=engine)

    def part(self, rows: slice) -> Rows:
        """Return consecutive rows alone, without a copy of their entries."""
        starts = self.starts[rows.start : rows.stop + 1]
        first, stop = int(starts[0]), int(starts[-1])
        # Relative to the first of these rows, starts fit into 32 bits, however many entries there are in all.
        return Rows((starts - first).int(), self.indices[first:stop], self.values[first:stop])

    def to(self, device: torch.device | str) -> Rows:
        return Rows(self.starts.to(device), self.indices.to(device), self.values.to(device), self.engine)


@dataclass(frozen=True)
class SparseMatrix:
    """A constant sparse matrix [rows, columns] and its transpose, float32; `matrix @ x` is differentiable in `x`."""

    forward: Rows
    backward: Rows
    shape: tuple[int, int]

    @property
    def entries(self) -> int:
        """Number of stored entries."""
        return int(self.forward.indices.numel())

    @property
    def nbytes(self) -> int:
        """Bytes held by both orientations."""
        rows = (self.forward,) if self.backward is self.forward else (self.forward, self.backward)
        return sum(t.numel() * t.element_size() for r in rows for t in (r.starts, r.indices, r.values))

    @property
    def T(self) -> SparseMatrix:
        """Return the transpose [columns, rows], in the same memory."""
        return SparseMatrix(self.backward, self.forward, (self.shape[1], self.shape[0]))

    def __matmul__(self, x: Tensor) -> Tensor:
        self._require_fitting(x)
        # Without a gradient nothing needs to be stored: predictions skip the bookkeeping of autograd.
        return self._differentiable(x, 1) if x.requires_grad else self.forward.times(x)

    def __getitem__(self, chosen: Tensor) -> SparseMatrix:
        """Return the rows [m, columns] of these int64 numbers [m], in this order."""
        rows = self.forward.to("cpu")
        matrix = sp.csr_matrix((rows.values.numpy(), rows.indices.numpy(), rows.starts.numpy()), shape=self.shape)
        return from_scipy(matrix[chosen.cpu().numpy()]).to(self.forward.values.device)

    def power(self, x: Tensor, hops: int) -> Tensor:
        """Return A^hops x [n, c] for a square matrix and a dense `x` [n, c]. Raises InputError when the shapes do not
        fit.
        """
        if x.requires_grad and hops and x.shape[0] == self.shape[0] == self.shape[1]:
            return self._differentiable(x, hops)
        if hops:
            self._require_fitting(x)
        return self.forward.power(x, hops)

    def _require_fitting(self, x: Tensor) -> None:
        if x.dim() != 2 or x.shape[0] != self.shape[1]:
            raise InputError(f"cannot multiply a {self.shape} matrix with a tensor {tuple(x.shape)}")

    def _differentiable(self, x: Tensor, hops: int) -> Tensor:
        from graphveil.aggregation.sparse_slopes import Linear

        product, transposed = partial(self.forward.power, hops=hops), partial(self.backward.power, hops=hops)
        return cast(torch.Tensor, Linear.apply(x, product, transposed))  # type: ignore[no-untyped-call]

    def to(self, device: torch.device | str) -> SparseMatrix:
        """Return the same matrix on another device."""
        return self._of_rows(lambda rows: rows.to(device))

    def on(self, engine: Engine) -> SparseMatrix:
        """Return the same matrix, whose products an engine works on, block by block."""
        return self._of_rows(lambda rows: rows.on(engine))

    def _of_rows(self, convert: Callable[[Rows], Rows]) -> SparseMatrix:
        forward = convert(self.forward)
        # A symmetric matrix stays stored once.
        return SparseMatrix(forward, forward if self.backward is self.forward else convert(self.backward), self.shape)


def walk_coefficients(hops: int, alpha: float, degree: int) -> list[float]:
    """Return the coefficients of 1, A .. A^degree in the result of `Rows.walk`, for at most `degree` hops."""
    return [*((1 - alpha) * alpha**k for k in range(hops)), alpha**hops, *(0.0 for _ in range(degree - hops))]


def starts_type(entries: int) -> type[np.int32] | type[np.int64]:
    """Return the integer type of row starts among so many entries."""
    return np.int32 if entries < 2**31 else np.int64


def from_scipy(matrix: sp.csr_matrix, *, symmetric: bool = False) -> SparseMatrix:
    """Return a scipy sparse matrix, of fewer than 2^31 rows and columns, as one that shares what it can of its memory.
    Raises InputError for 2^31 or more rows or columns.

    Args:
        symmetric: promises that A = A^T, so that it is stored once.
    """
    csr = matrix.tocsr()
    # 32-bit indices halve the memory that a product reads and so its time.
    if max(csr.shape) >= 2**31:
        raise InputError(f"a sparse matrix {csr.shape}", allowed="below 2^31 rows and columns")
    forward = _rows(csr)
    backward = forward if symmetric else _rows(csr.T.tocsr())
    return SparseMatrix(forward, backward, (int(csr.shape[0]), int(csr.shape[1])))


def _product(
    block: Block,
    starts: npt.NDArray[Any],
    indices: npt.NDArray[np.int32],
    values: npt.NDArray[np.float32],
    x: npt.NDArray[np.float32],
) -> npt.NDArray[np.float32]:
    """The task that an engine runs on a block: return its rows of the product [rows of the block, c]."""
    from graphveil.aggregation.loops import add_rows

    product = room(block.stop - block.start, x.shape[1])
    # Through tensors: for read-only arrays the loop would be compiled a second time.
    first, second, third, fourth = map(as_tensor, (starts[block.start : block.stop + 1], indices, values, x))
    add_rows(first.numpy(), second.numpy(), third.numpy(), fourth.numpy(), product)
    return product


def _rows(csr: sp.csr_matrix) -> Rows:
    return Rows(
        torch.from_numpy(csr.indptr.astype(starts_type(csr.nnz), copy=False)),
        torch.from_numpy(csr.indices.astype(np.int32, copy=False)),
        torch.from_numpy(np.ascontiguousarray(csr.data, dtype=np.float32)),
    )
