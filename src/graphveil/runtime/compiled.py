"""The compiler of loops that numpy cannot express; no other module names it.

Modules of compiled loops import this module, and only functions that run these loops import them, so that importing a
room stays fast.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from numba import njit, types
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

if TYPE_CHECKING:
    from numba.core.base import BaseContext
    from numba.core.types import Array, Type
    from numba.core.typing.templates import Signature

Loop = TypeVar("Loop", bound=Callable[..., Any])

#: Whether the processor has 32 vector registers of 64 bytes; otherwise mostly 16 of 32 bytes.
LONG_VECTORS: Final = "+avx512f" in get_host_cpu_features().split(",")


def compiled(loop: Loop) -> Loop:
    """Compile a loop over typed arrays at its first call, and cache the machine code for later runs.

    The cache lies beside the source or else in the user's cache folder; without either, or where what lies there is
    damaged or the disk takes nothing, each process compiles anew.
    """
    # No fastmath, which reorders sums by machine. Without the interpreter's lock, since blocks run in threads.
    dispatcher = njit(nogil=True)(loop)
    with suppress(RuntimeError):
        dispatcher._cache = _Cache(loop)
    return cast(Loop, dispatcher)


class _Cache(FunctionCache):  # type: ignore[misc]
    """A cache whose errors cost only the time to compile; numba would raise errors of the disk or of a damaged file."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # of the disk; of a file that a power cut left empty, pickle raises nearly anything
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def _write_prefetch(builder: cgutils.ir.IRBuilder, pointer: Any) -> None:
    """Write the prefetch of a cache line for reading, as data, into all caches."""
    ir = cgutils.ir
    number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
    call = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0i8"
    )
    builder.call(call, [builder.bitcast(pointer, byte), number(0), number(3), number(1)])


def _prefetch(_: BaseContext, array: Type, row: Type, column: Type) -> tuple[Signature, Callable[..., object]]:
    def write(
        context: BaseContext, builder: cgutils.ir.IRBuilder, signature: Signature, arguments: list[Type]
    ) -> object:
        value = context.make_array(array)(context, builder, arguments[0])
        _write_prefetch(builder, cgutils.get_item_pointer(context, builder, array, value, arguments[1:]))
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), write


#: prefetch(array, row, column), in a compiled loop: prefetch an entry that will be read soon, without waiting.
prefetch = intrinsic(_prefetch)

_LINE: Final = 64


def _weighted_sum(
    _: BaseContext,
    columns: Array,
    weights: Array,
    x: Array,
    sums: Array,
    first: Type,
    stop: Type,
    row: Type,
    column: Type,
    ahead: Type,
    lanes: Type,
) -> tuple[Signature, Callable[..., object]] | None:
    kinds = columns, weights, x, sums
    weighted, whole = not isinstance(weights, types.NoneType), x.dtype == types.int16
    # Entries of another size or layout would be misread: refused at compile time.
    floats = [sums.dtype, *([weights.dtype] if weighted else []), *([] if whole else [x.dtype])]
    if set(floats) != {types.float32} or {x.layout, sums.layout} != {"C"} or not (weighted or whole):
        return None
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    wide, size = lanes.literal_value, 2 if whole else 4

    def write(
        context: BaseContext, builder: cgutils.ir.IRBuilder, signature: Signature, arguments: list[Type]
    ) -> object:
        ir, (first, stop, row, column, ahead) = cgutils.ir, arguments[4:9]
        number, vector = ir.IntType(64), ir.VectorType(ir.FloatType(), wide)
        stored = ir.VectorType(ir.IntType(16), wide) if whole else vector
        # Whole numbers without weights are added up as such, which saves a conversion of each.
        summand = vector if weighted else ir.VectorType(ir.IntType(32), wide)
        arrays: list[Any] = [
            context.make_array(kind)(context, builder, arguments[n]) if kind != types.none else None
            for n, kind in enumerate(kinds)
        ]

        def entry(array: int, *at: Type) -> Any:
            return cgutils.get_item_pointer(context, builder, kinds[array], arrays[array], at)

        def sender(j: Type) -> Any:
            return builder.zext(builder.load(entry(0, j)), number)

        def ask(j: Type) -> None:
            soon = builder.add(j, ahead)
            soon = sender(builder.select(builder.icmp_signed("<", soon, last), soon, last))
            for place in range(0, wide, _LINE // size):
                _write_prefetch(builder, entry(2, soon, builder.add(column, number(place))))

        def added(total: Any, j: Type) -> Any:
            sent = builder.load(builder.bitcast(entry(2, sender(j), column), stored.as_pointer()), align=size)
            if not weighted:
                return builder.add(total, builder.sext(sent, summand))
            weight = builder.insert_element(nothing, builder.load(entry(1, j)), ir.IntType(32)(0))
            weight = builder.shuffle_vector(weight, nothing, all_first)
            return builder.call(multiply_add, [weight, builder.sitofp(sent, summand) if whole else sent, total])

        multiply_add = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{wide}f32"
        )
        nothing, all_first = ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), wide), None)
        last = builder.sub(arrays[0].nitems, number(1))
        # Nothing else can point to it, so the compiler keeps it in registers.
        total = cgutils.alloca_once_value(builder, ir.Constant(summand, None))
        with cgutils.for_range_slice(builder, first, stop, number(1), intp=number) as (j, _):
            with builder.if_then(builder.icmp_signed("!=", ahead, number(0))):
                ask(j)
            builder.store(added(builder.load(total), j), total)
        result = builder.load(total) if weighted else builder.sitofp(builder.load(total), vector)
        builder.store(result, builder.bitcast(entry(3, row, column), vector.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(*kinds, *[types.intp] * 5, lanes), write


#: weighted_sum(columns, weights, x, sums, first, stop, row, column, ahead, lanes), in a compiled loop: set so many
#: entries of a row of `sums`, from a column on, to the sum of the rows columns[first:stop] of x, each times its weight;
#: float32 without gaps, in the order of the entries, by fused multiply-adds. Rows are asked for `ahead` entries before
#: they are read; 0: never. `lanes` is written out: a power of 2. With x of int16 sums are exact where none exceeds 2^24
#: on its way, and weights, whole numbers too, may be None: 1 each.
weighted_sum = intrinsic(prefer_literal=True)(_weighted_sum)


def _squared_sum(_: BaseContext, rows: Array, row: Type, lanes: Type) -> tuple[Signature, Callable[..., object]] | None:
    if rows.dtype != types.float32 or rows.layout != "C" or not isinstance(lanes, types.IntegerLiteral):
        return None
    wide = lanes.literal_value

    def write(
        context: BaseContext, builder: cgutils.ir.IRBuilder, signature: Signature, arguments: list[Type]
    ) -> object:
        ir, array = cgutils.ir, context.make_array(rows)(context, builder, arguments[0])
        first = cgutils.get_item_pointer(context, builder, rows, array, [arguments[1], ir.IntType(64)(0)])
        entries = builder.load(builder.bitcast(first, ir.VectorType(ir.FloatType(), wide).as_pointer()), align=4)
        total = builder.fpext(entries, ir.VectorType(ir.DoubleType(), wide))
        total, left = builder.fmul(total, total), wide
        while left > 1:
            left //= 2
            halves = [
                builder.shuffle_vector(
                    total, total, ir.Constant(ir.VectorType(ir.IntType(32), left), list(range(start, start + left)))
                )
                for start in (0, left)
            ]
            total = builder.fadd(*halves)
        return builder.extract_element(total, ir.IntType(32)(0))

    return types.float64(rows, types.intp, lanes), write


#: squared_sum(rows, row, lanes), in a compiled loop: the sum of the squares of a row of so many float32, in float64 and
#: added up by halves. `lanes`, how many columns there are, is written out: a power of 2.
squared_sum = intrinsic(prefer_literal=True)(_squared_sum)


def _add_looked_up(
    _: BaseContext,
    words: Array,
    table: Array,
    totals: Array,
    first: Type,
    after: Type,
    width: Type,
    decided: Type,
    lanes: Type,
) -> tuple[Signature, Callable[..., object]] | None:
    kinds = words, table, totals
    real = {types.float32: cgutils.ir.FloatType(), types.float64: cgutils.ir.DoubleType()}.get(totals.dtype)
    if [kind.dtype for kind in kinds[:2]] != [types.uint32, types.int16] or {kind.layout for kind in kinds} != {"C"}:
        return None
    if (real is None and totals.dtype != types.int64) or not isinstance(lanes, types.IntegerLiteral):
        return None
    wide = lanes.literal_value

    def write(
        context: BaseContext, builder: cgutils.ir.IRBuilder, signature: Signature, arguments: list[Type]
    ) -> object:
        ir, (first, after, width, decided) = cgutils.ir, arguments[3:7]
        whole, index = ir.IntType(32), ir.IntType(64)
        cell, sums = (ir.VectorType(kind, wide) for kind in (whole, real or index))
        arrays = [context.make_array(kind)(context, builder, arguments[n]) for n, kind in enumerate(kinds)]

        def entry(array: int, at: Type) -> Any:
            return cgutils.get_item_pointer(context, builder, kinds[array], arrays[array], [at])

        def spread(number: Type) -> Any:
            lane = builder.insert_element(ir.Constant(cell, ir.Undefined), builder.trunc(number, whole), whole(0))
            return builder.shuffle_vector(lane, lane, ir.Constant(cell, None))

        strips: Any = ir.Constant(ir.VectorType(ir.IntType(16), wide), ir.Undefined)
        for lane in range(wide):
            # Read again, one by one: extracting words from a vector register is slower.
            word = builder.zext(builder.load(entry(0, builder.add(first, index(lane)))), index)
            strips = builder.insert_element(strips, builder.load(entry(1, builder.lshr(word, after))), whole(lane))
        drawn = builder.load(builder.bitcast(entry(0, first), cell.as_pointer()), align=4)
        mask = builder.sub(builder.shl(index(1), width), index(1))
        inside = builder.and_(builder.lshr(drawn, spread(builder.sub(after, width))), spread(mask))
        cells = builder.or_(builder.shl(builder.sext(strips, cell), spread(width)), inside)
        left = builder.icmp_signed(">=", builder.lshr(drawn, spread(after)), spread(decided))
        cells = builder.select(left, ir.Constant(cell, None), cells)
        place = builder.bitcast(entry(2, first), sums.as_pointer())
        before = builder.load(place, align=4)
        added = (
            builder.fadd(before, builder.sitofp(cells, sums))
            if real
            else builder.add(before, builder.sext(cells, sums))
        )
        builder.store(added, place, align=4)
        return builder.zext(builder.bitcast(left, ir.IntType(wide)), index)

    return types.int64(*kinds, *[types.intp] * 4, lanes), write


#: add_looked_up(words, table, totals, first, after, width, decided, lanes), in a compiled loop: to each of so many
#: entries of `totals` (float32, float64 or int64), from `first` on, add the number whose low `width` bits are those of
#: its word behind the entry, and whose others are what `table`, int16, has for the entry: the word's bits from `after`
#: on. Gives back one bit for each, the lowest for the first: set where the entry is `decided` or more, and 0 was added.
#: `lanes` is written out: a power of 2.
add_looked_up = intrinsic(prefer_literal=True)(_add_looked_up)


def _lowest_bit(_: BaseContext, number: Type) -> tuple[Signature, Callable[..., object]]:
    def write(_: BaseContext, builder: cgutils.ir.IRBuilder, __: Signature, arguments: list[Type]) -> object:
        return builder.cttz(arguments[0], cgutils.ir.IntType(1)(1))

    return number(number), write


#: lowest_bit(number), in a compiled loop: which bit of a whole number other than 0 is its lowest that is set.
lowest_bit = intrinsic(_lowest_bit)


def _add_pairs(
    _: BaseContext,
    left: Array,
    right: Array,
    out: Array,
    row: Type,
    column: Type,
    at_row: Type,
    at_column: Type,
    rows: Type,
    lanes: Type,
) -> tuple[Signature, Callable[..., object]] | None:
    kinds = left, right, out
    real = {types.float32: cgutils.ir.FloatType(), types.float64: cgutils.ir.DoubleType()}.get(out.dtype)
    if real is None or {left.dtype, right.dtype} != {types.int32} or {kind.layout for kind in kinds} != {"C"}:
        return None
    if not (isinstance(rows, types.IntegerLiteral) and isinstance(lanes, types.IntegerLiteral)):
        return None
    high, wide = rows.literal_value, lanes.literal_value

    def write(
        context: BaseContext, builder: cgutils.ir.IRBuilder, signature: Signature, arguments: list[Type]
    ) -> object:
        ir, (row, column, at_row, at_column) = cgutils.ir, arguments[3:7]
        number, whole = ir.IntType(64), ir.IntType(32)
        sums, halves, products = (
            ir.VectorType(kind, count) for kind, count in ((whole, wide), (ir.IntType(16), 2 * wide), (whole, 2 * wide))
        )
        arrays = [context.make_array(kind)(context, builder, arguments[n]) for n, kind in enumerate(kinds)]
        first, second = (ir.Constant(sums, list(range(half, 2 * wide, 2))) for half in (0, 1))

        def entry(array: int, *at: Type) -> Any:
            return cgutils.get_item_pointer(context, builder, kinds[array], arrays[array], at)

        def apart(pairs: Any) -> Any:
            return builder.sext(builder.bitcast(pairs, halves), products)

        # Nothing else can point to them, so the compiler keeps them in registers.
        totals = [cgutils.alloca_once_value(builder, ir.Constant(sums, None)) for _ in range(high)]
        pairs = builder.extract_value(arrays[0].shape, 0)
        with cgutils.for_range_slice(builder, number(0), pairs, number(1), intp=number) as (pair, _):
            ours = apart(builder.load(builder.bitcast(entry(1, pair, column), sums.as_pointer()), align=4))
            for place, total in enumerate(totals):
                theirs = builder.load(entry(0, pair, builder.add(row, number(place))))
                theirs = builder.insert_element(ir.Constant(sums, ir.Undefined), theirs, whole(0))
                theirs = builder.shuffle_vector(theirs, theirs, ir.Constant(sums, None))
                # Compilers emit one instruction for this: 16-bit products, added in pairs.
                both = builder.mul(ours, apart(theirs))
                both = builder.add(*(builder.shuffle_vector(both, both, half) for half in (first, second)))
                builder.store(builder.add(builder.load(total), both), total)
        for place, total in enumerate(totals):
            numbers = builder.sitofp(builder.load(total), ir.VectorType(real, wide))
            there = entry(2, builder.add(at_row, number(place)), at_column)
            builder.store(numbers, builder.bitcast(there, numbers.type.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(*kinds, *[types.intp] * 4, rows, lanes), write


#: add_pairs(left, right, out, row, column, at_row, at_column, rows, lanes), in a compiled loop: set so many rows and
#: columns of `out` (float32 or float64), from at_row and at_column on, to what so many columns of `left` from `row` on
#: and of `right` from `column` on give, both int32 [pairs, ...] of two whole numbers of 16 bits each: the sum over all
#: pairs and both of their numbers of left times right, which must stay below 2^31. `rows` and `lanes` are written out,
#: `lanes` a power of 2.
add_pairs = intrinsic(prefer_literal=True)(_add_pairs)
