"""The one place that names the compiler of the loops that numpy cannot say.

Modules of compiled loops import this one, and are imported by the functions that run them and nowhere else, so that
importing a room stays light.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(loop: Loop) -> Loop:
    """Compile a loop over typed arrays at its first call, and keep the machine code for later runs if a disk takes it.

    It is kept beside the source or else in the user's cache folder; without either it is compiled in each process.
    """
    try:
        # No fastmath: it reorders sums, and a released tree would differ from machine to machine. Blocks are worked on
        # in threads, which a loop over arrays need not hold up.
        return cast(Loop, njit(cache=True, nogil=True)(loop))
    except RuntimeError:
        return cast(Loop, njit(nogil=True)(loop))
