"""The matrix unit of x86 processors, by LLVM's functions for its registers, which are named by number."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_types import byte_width
from mlirt.builder.numba_cpu_intrinsics.memory import Memory
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, intrinsic, ir, types

_I8, _I64 = ir.IntType(8), ir.IntType(64)
_BYTES = _I8.as_pointer()
_ROW = 64


def _call(builder: Any, name: str, *operands: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [operand.type for operand in operands])
    builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.{name}"), list(operands))


def _address(builder: Any, memory: Memory, at: Any) -> Any:
    return builder.bitcast(memory.at(at), _BYTES)


def _layout(rows: int, columns: int, pixels: int, depth: int) -> bytes:
    """The configuration of the registers: sums first, then left factors, then right ones."""
    registers = [(pixels, _ROW)] * (rows * columns) + [(pixels, depth)] * rows + [(depth // 4, _ROW)] * columns
    widths = [width for _, width in registers] + [0] * (16 - len(registers))
    heights = [height for height, _ in registers] + [0] * (16 - len(registers))
    return struct.pack("<2B14x16H16B", 1, 0, *widths, *heights)


@intrinsic(prefer_literal=True)
def amx_begin(context: Any, rows: Any, columns: Any, pixels: Any, depth: Any) -> Any:
    """Lay the registers out."""
    layout = _layout(*(number.literal_value for number in (rows, columns, pixels, depth)))

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        kind = ir.ArrayType(_I8, len(layout))
        place = cgutils.alloca_once(builder, kind)
        builder.store(ir.Constant(kind, bytearray(layout)), place)
        _call(builder, "ldtilecfg", builder.bitcast(place, _BYTES))
        return context.get_dummy_value()

    return types.void(rows, columns, pixels, depth), codegen


@intrinsic(prefer_literal=True)
def amx_clear(context: Any, count: Any) -> Any:
    """Zero in the first registers."""

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        for number in range(count.literal_value):
            _call(builder, "tilezero", _I8(number))
        return context.get_dummy_value()

    return types.void(count), codegen


@intrinsic(prefer_literal=True)
def amx_dot_add(
    context: Any, x: Any, at: Any, step: Any, w: Any, w_at: Any, rows: Any, columns: Any, pixels: Any
) -> Any:
    """Load a step's factors, and add their products to all accumulators."""
    count, width, height = (number.literal_value for number in (rows, columns, pixels))

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        left, right = Memory(builder, x, operands[0]), Memory(builder, w, operands[3])
        at, step, w_at = operands[1], operands[2], operands[4]
        lefts = [count * width + i for i in range(count)]
        rights = [count * width + count + j for j in range(width)]
        for i, register in enumerate(lefts):
            place = builder.add(at, builder.mul(step, _I64(i * height)))
            _call(builder, "tileloadd64", _I8(register), _address(builder, left, place), step)
        for j, register in enumerate(rights):
            place = builder.add(w_at, _I64(j * _ROW))
            _call(builder, "tileloadd64", _I8(register), _address(builder, right, place), _I64(width * _ROW))
        for i, a in enumerate(lefts):
            for j, b in enumerate(rights):
                _call(builder, "tdpbusd", _I8(i * width + j), _I8(a), _I8(b))
        return context.get_dummy_value()

    number = types.int64
    return types.void(x, number, number, w, number, rows, columns, pixels), codegen


@intrinsic(prefer_literal=True)
def amx_store(context: Any, y: Any, rows: Any, columns: Any, pixels: Any) -> Any:
    """Write all accumulators, the columns of a pixel side by side."""
    count, width, height = (number.literal_value for number in (rows, columns, pixels))

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        memory, lanes = Memory(builder, y, operands[0]), _ROW // byte_width(y.element)
        for i in range(count):
            for j in range(width):
                place = _address(builder, memory, _I64((i * height * width + j) * lanes))
                _call(builder, "tilestored64", _I8(i * width + j), place, _I64(width * _ROW))
        return context.get_dummy_value()

    return types.void(y, rows, columns, pixels), codegen


@intrinsic
def amx_end(context: Any) -> Any:
    """Give the registers back."""

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        _call(builder, "tilerelease")
        return context.get_dummy_value()

    return types.void(), codegen
