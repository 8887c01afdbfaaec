"""The warp's matrix units, and their operands from shared memory; layouts as in PTX's `mma.sync` and `ldmatrix`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import (
    F32,
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


_PARTS = 3
_TERMS = [(p, total - p) for total in range(_PARTS)[::-1] for p in range(total + 1)]  # the smallest products first
_UPPER_HALVES = "prmt.b32 $0, $1, $2, 0x7632;"  # of two registers, as two bfloat16


@maker
def split_mma(rows: int, columns: int) -> Any:
    """`word(accumulator, left, right)`: rows x columns tiles of float32 as bf16x6, fragments in quads."""
    accumulator = types.UniTuple(types.float32, 4 * rows * columns)
    left, right = types.UniTuple(types.float32, 8 * rows), types.UniTuple(types.float32, 4 * columns)
    text = f"mma.sync.aligned.{_SHAPES['bf16']} {{$0,$1,$2,$3}}, {{$4,$5,$6,$7}}, {{$8,$9}}, {{$10,$11,$12,$13}};"

    def emit(builder: Any, accumulators: Any, a: Any, b: Any) -> Any:
        totals = unpack(builder, accumulators, 4 * rows * columns)
        a, b = unpack(builder, a, 8 * rows), unpack(builder, b, 4 * columns)
        # Tile j has of each 32 columns the numbers 4 c + j % 4, c < 8, and tile i rows 4 g + 2 (i % 2) and the next.
        rights = [_halves(builder, b, (j // 4, j % 4)) for j in range(columns)]
        for i in range(rows):
            lefts = [_halves(builder, a, (i // 2, 2 * (i % 2) + s)) for s in range(2)]
            products = [[F32(0.0)] * 4 for _ in range(columns)]
            for p, q in _TERMS:
                for j in range(columns):
                    registers = [lefts[s][p][pair] for pair in range(2) for s in range(2)]
                    operands = [*registers, *rights[j][q], *products[j]]
                    products[j] = ptx(builder, text, [F32] * 4, operands, pure=True, convergent=True)
            for j, half, pair in itertools.product(range(columns), range(2), range(2)):
                at = (2 * i + half) * 2 * columns + 8 * (j // 4) + 4 * pair + j % 4
                totals[at] = builder.fadd(totals[at], products[j][2 * half + pair])
        return pack(builder, F32, totals)

    return word(accumulator, [accumulator, left, right], emit)


def _halves(builder: Any, fragment: Sequence[Any], place: tuple[int, int]) -> list[list[Any]]:
    """The three parts of a row, or column, of a fragment of quads: each two registers of two bfloat16."""
    block, number = place
    rest = [fragment[16 * block + 4 * e + number] for e in range(4)]
    found: list[list[Any]] = []
    for part in range(_PARTS):
        bits = [builder.bitcast(one, I32) for one in rest]
        pairs = (bits[:2], bits[2:])
        found.append([ptx(builder, _UPPER_HALVES, [I32], pair, pure=True)[0] for pair in pairs])
        if part < _PARTS - 1:
            upper = [builder.bitcast(builder.and_(one, I32(0xFFFF0000)), F32) for one in bits]
            rest = [builder.fsub(one, cut) for one, cut in zip(rest, upper, strict=True)]
    return found


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
