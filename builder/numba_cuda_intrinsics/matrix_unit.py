"""The warp's matrix units, and their operands from shared memory; layouts as in PTX's `mma.sync` and `ldmatrix`."""

from __future__ import annotations

from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import (
    I32,
    SCALARS,
    SIZES,
    llvm_type,
    maker,
    pack,
    ptx,
    unpack,
    word,
)
from mlirt.builder.numba_cuda_intrinsics.threads import shared_address
from mlirt.builder.numba_cuda_intrinsics.untyped import types

_SHAPES = {
    "f16": "m16n8k16.row.col.f32.f16.f16.f32",
    "bf16": "m16n8k16.row.col.f32.bf16.bf16.f32",
    "s8": "m16n8k32.row.col.s32.s8.s8.s32",
    "u8": "m16n8k32.row.col.s32.u8.s8.s32",
}


@maker
def mma(kind: str, rows: int, columns: int) -> Any:
    """`word(accumulator, left, right)`: rows x columns tiles of 16 x 8, each plus its product."""
    element = types.int32 if kind in ("s8", "u8") else types.float32
    accumulator = types.UniTuple(element, 4 * rows * columns)
    left, right = types.UniTuple(types.int32, 4 * rows), types.UniTuple(types.int32, 2 * columns)
    text = f"mma.sync.aligned.{_SHAPES[kind]} {{$0,$1,$2,$3}}, {{$4,$5,$6,$7}}, {{$8,$9}}, {{$10,$11,$12,$13}};"

    def emit(builder: Any, accumulators: Any, a: Any, b: Any) -> Any:
        accumulators = unpack(builder, accumulators, 4 * rows * columns)
        a, b = unpack(builder, a, 4 * rows), unpack(builder, b, 2 * columns)
        for i in range(rows):
            # Every other row backwards: neighbouring products share an operand.
            for j in range(columns) if i % 2 == 0 else reversed(range(columns)):
                at = slice(4 * (i * columns + j), 4 * (i * columns + j) + 4)
                operands = [*a[4 * i : 4 * i + 4], *b[2 * j : 2 * j + 2], *accumulators[at]]
                accumulators[at] = ptx(builder, text, [llvm_type(element)] * 4, operands, pure=True, convergent=True)
        return pack(builder, llvm_type(element), accumulators)

    return word(accumulator, [accumulator, left, right], emit)


@maker
def load_matrix(type_name: str, count: int, step: int, *, transpose: bool = False) -> Any:
    """`word(pointer, index)`: `count` times four 8 x 8 matrices, `step` elements apart."""
    size = SIZES[type_name]
    form = "x4.trans" if transpose else "x4"

    def emit(builder: Any, pointer: Any, index: Any) -> Any:
        address = shared_address(builder, pointer, index, size)
        values: list[Any] = []
        for k in range(count):
            text = f"ldmatrix.sync.aligned.m8n8.{form}.shared.b16 {{$0,$1,$2,$3}}, [$4+{k * step * size}];"
            values += ptx(builder, text, [I32] * 4, [address], memory=True, convergent=True)
        return pack(builder, I32, values)

    return word(types.UniTuple(types.int32, 4 * count), [types.CPointer(SCALARS[type_name]), types.int64], emit)
