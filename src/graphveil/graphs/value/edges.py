"""Edge lists: brought to one documented, sorted form, with every change counted.

Arguments in common: source, target [E]: node numbers in 0..nodes-1; directed: whether (a, b) and (b, a) are two edges,
so that an edge is listed in one direction only.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from graphveil.engine import Blocks
from graphveil.errors import DataError
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.sorted_arrays import HALF, packed, swapped
from graphveil.runtime.words import count_of


def normalise_edges(
    source: np.ndarray, target: np.ndarray, nodes: int, *, directed: bool
) -> tuple[Tensor, tuple[str, ...]]:
    """Return `merge_edges` as a tensor; DataError where an edge names a node that does not exist.

    Args:
        source, target, nodes, directed: as the module says.
    """
    edge_index, notes = merge_edges(source, target, nodes, directed=directed)
    return torch.from_numpy(edge_index), notes


def merge_edges(
    source: np.ndarray, target: np.ndarray, nodes: int, *, directed: bool
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Remove self-loops, merge duplicates and, for an undirected graph, store both directions.

    Args:
        source, target, nodes, directed: as the module says.

    Returns:
        edge_index int64 [2, E'], sorted by source and then target, and one note for each change.

    Raises:
        DataError: an edge names a node that does not exist.
    """
    if nodes > 2**32:
        raise DataError(f"{nodes:,} nodes", where="edges", allowed=f"at most {2**32:,}")
    if source.shape != target.shape or source.ndim != 1:
        what = f"edges have ends of shapes {source.shape} and {target.shape}"
        raise DataError(what, allowed="two lists, equally long")
    # Checked before packing, which keeps 32 bits: a larger number would become another node's.
    for ends in (source, target):
        if ends.size and not (ends.dtype.kind in "iu" and 0 <= int(ends.min()) <= int(ends.max()) < nodes):
            what = "an edge names a node that does not exist"
            raise DataError(what, where="edges", allowed=f"whole numbers, 0 to {nodes - 1}")
    # One array for all steps: the pairs, then the reversed pairs, then the two rows of the result.
    words = np.empty((2 if directed else 4) * len(source), np.uint64)
    listed = _pack(source, target, words)
    single = size = _distinct(words[:listed])
    if not directed:
        for block in Blocks(single, _CACHE_BLOCK):
            words[single:][block.rows] = swapped(words[block.rows])
        size = _distinct(words[: 2 * single])
    stored = size if directed else size // 2
    mirrored = 0 if directed else single - stored
    notes = _notes(len(source) - listed, listed - single, mirrored, stored, directed)
    np.bitwise_and(words[:size], _LOW, out=words[size : 2 * size])
    words[:size] >>= HALF
    # Returns the unused tail to the system without a copy; no view of the array is alive.
    words.resize(2 * size, refcheck=False)
    return words.view(np.int64).reshape(2, size), notes


_LOW: Final = np.uint64(2**32 - 1)
# Of splitmix64: both are odd, so that no word is lost.
_MIX: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
# Words of a block that fits the processor's cache.
_CACHE_BLOCK: Final = 1 << 18
# Edges of a block that is read from disk.
_READ_BLOCK: Final = 1 << 20


def _pack(source: np.ndarray, target: np.ndarray, words: npt.NDArray[np.uint64]) -> int:
    """Write the pairs to the front of `words`, without self-loops; return how many there are."""
    end = 0
    for block in Blocks(len(source), _CACHE_BLOCK):
        left, right = source[block.rows], target[block.rows]
        pairs = packed(left, right)[left != right]
        words[end : end + len(pairs)] = pairs
        end += len(pairs)
    return end


def _distinct(words: npt.NDArray[np.uint64]) -> int:
    """Sort words in place, the distinct ones to the front; return how many there are."""
    words.sort()
    end = 0
    for block in Blocks(len(words), _CACHE_BLOCK):
        part = words[block.rows]
        new = np.concatenate([[end == 0 or part[0] != words[end - 1]], part[1:] != part[:-1]])
        if not (end == block.start and new.all()):
            part = part[new]
            words[end : end + len(part)] = part
        end += len(part)
    return end


def _notes(loops: int, duplicates: int, mirrored: int, stored: int, directed: bool) -> tuple[str, ...]:
    notes = []
    if loops:
        notes.append(f"removed {count_of(loops, 'self-loop')}")
    if duplicates:
        notes.append(f"merged {count_of(duplicates, 'duplicate edge')}")
    if mirrored:
        notes.append(f"merged {count_of(mirrored, 'edge')} listed in both directions")
    if directed:
        notes.append(f"kept {count_of(stored, 'directed edge')}")
    else:
        notes.append(f"made undirected: {count_of(stored, 'edge')}, each stored in both directions")
    return tuple(notes)


def edge_keys(source: np.ndarray, target: np.ndarray, nodes: int, *, directed: bool) -> np.ndarray:
    """Return one number for each edge, whichever way it is listed where edges have no direction: int64 [E].

    Args:
        source, target, nodes, directed: as the module says.
    """
    source, target = source.astype(np.int64), target.astype(np.int64)
    if not directed:
        source, target = np.minimum(source, target), np.maximum(source, target)
    keys: np.ndarray = source * nodes + target
    return keys


def is_normalised(edge_index: np.ndarray, *, directed: bool) -> bool:
    """Return whether edges int64 [2, E] are in the form that `merge_edges` gives them."""
    source, target = edge_index
    keys = packed(source, target)
    if bool((source == target).any()) or bool((keys[1:] <= keys[:-1]).any()):
        return False
    return directed or np.array_equal(np.sort(swapped(keys)), keys)


def require_nodes(source: np.ndarray, target: np.ndarray, nodes: int) -> None:
    """Refuse edges that name a node outside 0..nodes - 1 by DataError."""
    if source.size and (min(source.min(), target.min()) < 0 or max(source.max(), target.max()) >= nodes):
        raise DataError("an edge names a node that does not exist", allowed=f"node numbers 0..{nodes - 1}")


def require_ascending(source: np.ndarray, target: np.ndarray, nodes: int, *, directed: bool) -> None:
    """Refuse edges that are not in the form of `merge_edges` by DataError, reading a part of them at a time.

    Args:
        source, target, nodes, directed: as the module says.
    """
    mirrored = 0
    for block in Blocks(len(source), _READ_BLOCK):
        # With the last edge of the block before, for the comparison of neighbours.
        window = slice(max(block.start - 1, 0), block.stop)
        sources, targets = source[window], target[window]
        require_nodes(sources, targets, nodes)
        words = packed(sources, targets)
        if (words[1:] <= words[:-1]).any() or (sources == targets).any():
            raise DataError("edges are in another order", allowed="ascending, without loops or duplicates")
        new = slice(block.start - window.start, None)
        mirrored += _hash_sum(words[new]) - _hash_sum(packed(targets[new], sources[new]))
    # Sums of hashes: a search for the mirror image of each edge would read the file at random.
    if not directed and mirrored % 2**64:
        raise DataError("an edge stands in one direction only", allowed="both directions of each edge")


def _hash_sum(words: npt.NDArray[np.uint64]) -> int:
    """Return the sum of hashes of words, modulo 2^64, which does not depend on their order."""
    for shift, factor in zip((30, 27), _MIX, strict=True):
        words = (words ^ (words >> np.uint64(shift))) * factor
    return int((words ^ (words >> np.uint64(31))).sum(dtype=np.uint64))
