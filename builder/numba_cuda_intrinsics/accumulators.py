"""Rows of the accumulators that the matrix units leave in the registers of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import F32, I32, ir, maker, pack, ptx, unpack, word
from mlirt.builder.numba_cuda_intrinsics.untyped import types

_PACK = {"f16": "cvt.rn.f16x2.f32 $0, $1, $2;", "bf16": "cvt.rn.bf16x2.f32 $0, $1, $2;"}


@maker
def reduce_rows(kind: str, count: int, rows: Sequence[int]) -> Any:
    """`word(accumulators)`: the sum or the largest of the accumulators in each row; `rows` tells whose each is."""
    number = max(rows) + 1

    def emit(builder: Any, accumulators: Any) -> Any:
        values = unpack(builder, accumulators, count)
        of_row = [[value for value, own in zip(values, rows, strict=True) if own == row] for row in range(number)]
        return pack(builder, F32, [_tree(builder, kind, some) for some in of_row])

    return word(types.UniTuple(types.float32, number), [types.UniTuple(types.float32, count)], emit)


def _tree(builder: Any, kind: str, values: Sequence[Any]) -> Any:
    """Neighbours combined until one value is left: short chains."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        rest = values[-1:] if len(values) % 2 else []
        values = [*(_combined(builder, kind, a, b) for a, b in pairs), *rest]
    return values[0]


def _combined(builder: Any, kind: str, a: Any, b: Any) -> Any:
    if kind == "add":
        return builder.fadd(a, b)
    return ptx(builder, "max.f32 $0, $1, $2;", [F32], [a, b], pure=True)[0]


@maker
def scale_rows(count: int, rows: Sequence[int]) -> Any:
    """`word(accumulators, factors)`: each accumulator times its row's factor."""

    def emit(builder: Any, accumulators: Any, factors: Any) -> Any:
        values, factors = unpack(builder, accumulators, count), unpack(builder, factors, max(rows) + 1)
        scaled = [builder.fmul(value, factors[row]) for value, row in zip(values, rows, strict=True)]
        return pack(builder, F32, scaled)

    accumulators = types.UniTuple(types.float32, count)
    return word(accumulators, [accumulators, types.UniTuple(types.float32, max(rows) + 1)], emit)


@maker
def exponential_rows(count: int, rows: Sequence[int]) -> Any:
    """`word(accumulators, shifts, scale)`: 2 ** (scale * (accumulator - its row's shift))."""
    number = max(rows) + 1

    def emit(builder: Any, accumulators: Any, shifts: Any, scale: Any) -> Any:
        values, shifts = unpack(builder, accumulators, count), unpack(builder, shifts, number)
        moved = [builder.fsub(ir.Constant(F32, -0.0), builder.fmul(shift, scale)) for shift in shifts]
        name = "llvm.fma.f32"
        fma = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(F32, [F32, F32, F32]), name
        )
        exponents = [builder.call(fma, [value, scale, moved[row]]) for value, row in zip(values, rows, strict=True)]
        powers = [ptx(builder, "ex2.approx.ftz.f32 $0, $1;", [F32], [one], pure=True)[0] for one in exponents]
        return pack(builder, F32, powers)

    accumulators = types.UniTuple(types.float32, count)
    return word(accumulators, [accumulators, types.UniTuple(types.float32, number), types.float32], emit)


@maker
def limit_columns(count: int, rows: Sequence[int], columns: Sequence[int]) -> Any:
    """`word(accumulators, first, limits)`: -inf where `first` plus the accumulator's column is not below its row's
    limit.
    """
    number = max(rows) + 1

    def emit(builder: Any, accumulators: Any, first: Any, limits: Any) -> Any:
        values, limits = unpack(builder, accumulators, count), unpack(builder, limits, number)
        left = [builder.trunc(builder.sub(limit, first), I32) for limit in limits]
        outside = ir.Constant(F32, float("-inf"))
        kept = [
            builder.select(builder.icmp_signed("<", I32(column), left[row]), value, outside)
            for value, row, column in zip(values, rows, columns, strict=True)
        ]
        return pack(builder, F32, kept)

    accumulators = types.UniTuple(types.float32, count)
    return word(accumulators, [accumulators, types.int64, types.UniTuple(types.int64, number)], emit)


@maker
def pack_accumulators(kind: str, count: int, positions: Sequence[int]) -> Any:
    """`word(accumulators)`: the accumulators at `positions`, rounded, two in each register."""

    def emit(builder: Any, accumulators: Any) -> Any:
        values = unpack(builder, accumulators, count)
        pairs = zip(positions[::2], positions[1::2], strict=True)
        # The instruction puts its first source into the upper half.
        packed = [ptx(builder, _PACK[kind], [I32], [values[high], values[low]], pure=True)[0] for low, high in pairs]
        return pack(builder, I32, packed)

    result = types.UniTuple(types.int32, len(positions) // 2)
    return word(result, [types.UniTuple(types.float32, count)], emit)
