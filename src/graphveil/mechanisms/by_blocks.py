"""Reports of many people, computed block by block: the same bits whichever worker does which block, and when.

A mechanism randomizes the people of a block as usual, with a noise key for that block alone. Memory holds the reports,
and the blocks in progress.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.engine import LOCAL, Block, Blocks, Engine
from graphveil.mechanisms.base.category import CategoryMechanism, Labels, open_labels
from graphveil.mechanisms.base.mechanism import FeatureMechanism
from graphveil.mechanisms.base.values import Values
from graphveil.mechanisms.features.privunit import PrivUnit
from graphveil.mechanisms.public import Public, PublicLabels
from graphveil.privacy import BlockKey, BlockNoise, Randomness
from graphveil.runtime.late import sparse, torch

Reporter: TypeAlias = FeatureMechanism[Any] | CategoryMechanism[Any]
Array: TypeAlias = npt.NDArray[Any]

#: People of a block: enough to amortise its key and its calls, few enough to keep several workers busy.
PEOPLE: Final = 1 << 12


def randomize_by_blocks(
    mechanism: Reporter | Public | PublicLabels,
    values: Values | Labels,
    *,
    randomness: Randomness,
    engine: Engine = LOCAL,
) -> Any:
    """Return what the devices send, as `mechanism.randomize` does. Raises InputError as that does, before anything is
    drawn.

    Formal guarantees: those of the mechanism. Every row is reported once, by its own law; rows of different blocks take
    noise from independent streams.

    Args:
        mechanism: of features or of one class a person; or what stands for data that are declared public.
        values: feature vectors [n, d], dense or sparse rows; or integer classes [n].

    >>> import torch
    >>> from graphveil.mechanisms import MultiBit
    >>> from graphveil.privacy import SecureRandomness
    >>> mechanism = MultiBit(epsilon=4.0, dimension=8)
    >>> len(randomize_by_blocks(mechanism, torch.rand(10_000, 8), randomness=SecureRandomness()))
    10000
    """
    blocks = Blocks(values.shape[0], PEOPLE)
    # A single block needs no key of its own, and public data need no noise.
    if isinstance(mechanism, Public | PublicLabels) or len(blocks) <= 1:
        return mechanism.randomize(values, randomness=randomness)  # type: ignore[arg-type]
    # All values are checked before the first draw: a refusal then reveals nothing of the rows before it.
    if isinstance(mechanism, CategoryMechanism):
        arrays: tuple[Array, ...] = (open_labels(values, mechanism.classes),)
    else:
        arrays = mechanism.open(values).arrays
    keys = BlockNoise(randomness).keys(len(blocks))
    reports = engine.map_blocks(_ReportsOfBlock(mechanism), blocks, engine.put(*arrays), keys)
    # Each block is written into its rows when it arrives: there is never a second copy of the reports.
    report_types, whole = set[Any](), dict[str, Array]()
    for block, (report_type, parts) in zip(blocks, reports, strict=True):
        report_types.add(report_type)
        for name, part in parts.items():
            if name not in whole:
                whole[name] = np.empty((blocks.rows, *part.shape[1:]), part.dtype)
            whole[name][block.rows] = part
    (report_type,) = report_types
    return report_type.from_tensors({name: torch.from_numpy(array) for name, array in whole.items()})


@dataclass(frozen=True)
class _ReportsOfBlock:
    """The reports of a block of people: what an engine does, from the block's own key."""

    mechanism: Reporter

    def __call__(self, block: Block, key: BlockKey, *arrays: Array) -> tuple[Any, dict[str, Array]]:
        """Return the class of the reports, and their arrays by name, from the arrays of all people."""
        values: Any = arrays[0][block.rows] if len(arrays) == 1 else self._sparse(block, *arrays)
        if isinstance(self.mechanism, PrivUnit):
            # A codebook belongs to a person, whatever block that person is in.
            reports = self.mechanism.randomize(values, randomness=key.stream(), first=block.start)
        else:
            reports = self.mechanism.randomize(values, randomness=key.stream())
        return type(reports), {name: part.numpy() for name, part in reports.to_tensors().items()}

    def _sparse(self, block: Block, starts: Array, columns: Array, entries: Array) -> sparse.csr_matrix:
        own = starts[block.start : block.stop + 1]
        stored = slice(int(own[0]), int(own[-1]))
        shape = (block.stop - block.start, self.mechanism.dimension)  # type: ignore[union-attr]
        return sparse.csr_matrix((entries[stored], columns[stored], own - own[0]), shape=shape)
