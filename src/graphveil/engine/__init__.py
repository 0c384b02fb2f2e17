"""Work on blocks of rows: one contract of four verbs, the same bits from each engine.

    put           arrays that every block may read, handed over once
    map_blocks    a task on each block, results in the order of the blocks
    reduce        results added up
    gather        results written into the rows that they belong to

Blocks are fixed by the shape of the data, never by the number of workers; noise belongs to a block
(`graphveil.privacy.BlockNoise`), never to a worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.runtime.late import late_names, lazy_names

if TYPE_CHECKING:
    from graphveil.engine.contract import Block as Block
    from graphveil.engine.contract import Blocks as Blocks
    from graphveil.engine.contract import Engine as Engine
    from graphveil.engine.contract import Mapped as Mapped
    from graphveil.engine.contract import create as create
    from graphveil.engine.contract import room_beside as room_beside
    from graphveil.engine.local import LOCAL as LOCAL
    from graphveil.engine.local import LocalEngine as LocalEngine
    from graphveil.engine.on_ray import RayEngine as RayEngine

_HOMES = late_names(__name__, __file__)

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
