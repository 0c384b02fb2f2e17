"""The one place that names the compiler of the loops that numpy cannot say.

Modules of compiled loops import this one, and are imported by the functions that run them and nowhere else, so that
importing a room stays light.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

if TYPE_CHECKING:
    from numba.core.base import BaseContext
    from numba.core.types import Type
    from numba.core.typing.templates import Signature

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


def _fetched(_: BaseContext, array: Type, row: Type, column: Type) -> tuple[Signature, Callable[..., object]]:
    def write(
        context: BaseContext, builder: cgutils.ir.IRBuilder, signature: Signature, arguments: list[Type]
    ) -> object:
        kind, ir = signature.args[0], cgutils.ir
        held = context.make_array(kind)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, kind, held, arguments[1:])
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        call = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0i8"
        )
        # To be read, kept in all caches, as data.
        builder.call(call, [builder.bitcast(place, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), write


#: prefetch(array, row, column), in a compiled loop: ask for an entry that will be read soon, and wait for nothing.
prefetch = intrinsic(_fetched)
