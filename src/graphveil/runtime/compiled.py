"""The one place that names the compiler of loops that numpy cannot express.

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
    from numba.core.types import Array, Type
    from numba.core.typing.templates import Signature

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(loop: Loop) -> Loop:
    """Compile a loop over typed arrays at its first call, and cache the machine code for later runs.

    The cache lies beside the source or else in the user's cache folder; without either, each process compiles anew.
    """
    try:
        # No fastmath: it reorders sums, by machine. Without the interpreter's lock, since blocks run in threads.
        return cast(Loop, njit(cache=True, nogil=True)(loop))
    except RuntimeError:
        return cast(Loop, njit(nogil=True)(loop))


def _fetched(_: BaseContext, array: Type, row: Type, column: Type) -> tuple[Signature, Callable[..., object]]:
    def write(
        context: BaseContext, builder: cgutils.ir.IRBuilder, signature: Signature, arguments: list[Type]
    ) -> object:
        kind, ir = signature.args[0], cgutils.ir
        value = context.make_array(kind)(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(context, builder, kind, value, arguments[1:])
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        call = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0i8"
        )
        # To be read, kept in all caches, as data.
        builder.call(call, [builder.bitcast(pointer, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), write


#: prefetch(array, row, column), in a compiled loop: ask for an entry that will be read soon, and wait for nothing.
prefetch = intrinsic(_fetched)


def _weighted(
    _: BaseContext,
    columns: Array,
    weights: Array,
    x: Array,
    sums: Array,
    first: Type,
    stop: Type,
    row: Type,
    column: Type,
    lanes: Type,
) -> tuple[Signature, Callable[..., object]] | None:
    kinds = columns, weights, x, sums
    # Entries of another size, or apart from each other, would be read as what they are not: refused when compiled.
    if {kind.dtype for kind in kinds[1:]} != {types.float32} or {x.layout, sums.layout} != {"C"}:
        return None
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    wide = lanes.literal_value

    def write(
        context: BaseContext, builder: cgutils.ir.IRBuilder, signature: Signature, arguments: list[Type]
    ) -> object:
        ir, (first, stop, row, column) = cgutils.ir, arguments[4:8]
        number, vector = ir.IntType(64), ir.VectorType(ir.FloatType(), wide)
        arrays = [context.make_array(kind)(context, builder, arguments[n]) for n, kind in enumerate(kinds)]

        def entry(array: int, *at: Type) -> Any:
            return cgutils.get_item_pointer(context, builder, kinds[array], arrays[array], at)

        def part_of(array: int, row: Type) -> Any:
            return builder.bitcast(entry(array, row, column), vector.as_pointer())

        multiply_add = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{wide}f32"
        )
        nothing, all_first = ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), wide), None)
        # Nothing else can point at it, so the compiler keeps it in registers.
        total = cgutils.alloca_once_value(builder, ir.Constant(vector, None))
        with cgutils.for_range_slice(builder, first, stop, number(1), intp=number) as (j, _):
            sender = builder.zext(builder.load(entry(0, j)), number)
            sent = builder.load(part_of(2, sender), align=4)
            weight = builder.insert_element(nothing, builder.load(entry(1, j)), ir.IntType(32)(0))
            weight = builder.shuffle_vector(weight, nothing, all_first)
            builder.store(builder.call(multiply_add, [weight, sent, builder.load(total)]), total)
        builder.store(builder.load(total), part_of(3, row), align=4)
        return context.get_dummy_value()

    return types.void(*kinds, *[types.intp] * 4, lanes), write


#: weighted_sum(columns, weights, x, sums, first, stop, row, column, lanes), in a compiled loop: set so many entries of
#: a row of `sums`, from a column on, to the sum of the rows columns[first:stop] of x, each times its weight; float32
#: without gaps, in the order of the entries, by fused multiply-adds. `lanes` is written out: a power of 2.
weighted_sum = intrinsic(prefer_literal=True)(_weighted)
