"""Bytes of words, and floats as bytes: on Arm by instructions that LLVM does not find by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_types import Tile, Vector, byte_width
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value, maximum, minimum
from mlirt.builder.numba_cpu_intrinsics.memory import Memory
from mlirt.builder.numba_cpu_intrinsics.processor import code_processor, is_x86
from mlirt.builder.numba_cpu_intrinsics.scalable import converted_to_integers, fills_register, narrowed_registers
from mlirt.builder.numba_cpu_intrinsics.tiles import joined, pack_vectors
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, intrinsic, ir, types

_I8, _I16, _I32 = (ir.IntType(bits) for bits in (8, 16, 32))
_QUARTER, _EIGHT = 4, 8  # lanes of 32 and of 16 bits in a register of NEON
_CODES = ir.VectorType(_I8, 2 * _EIGHT)
_WORD = 4


def _picked(builder: Any, left: Any, right: Any, order: Sequence[int]) -> Any:
    return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(_I32, len(order)), list(order)))


# --- bytes of words


def _shifted_together(parts: Sequence[Value], word: Any) -> Value:
    """`b0 | b1 << 8 | ..`."""
    total: Value | None = None
    for number, part in enumerate(parts):
        byte = part.reinterpret(types.uint8).to(word) << 8 * number
        total = byte if total is None else total | byte
    assert total is not None
    return total


def _zipped(builder: Any, even: Any, odd: Any, half: int) -> Any:
    """The lanes of two vectors by turns as numbers of 16 bits: of the first or the second eight of them."""
    order = [lane + start for lane in range(_EIGHT * half, _EIGHT * (half + 1)) for start in (0, even.type.count)]
    return builder.bitcast(_picked(builder, even, odd, order), ir.VectorType(_I16, _EIGHT))


def _four(builder: Any, name: str, vectors: Sequence[Any], place: Any) -> Any:
    """The instruction that stores four vectors by turns, or loads them so where none are given."""
    kind = vectors[0].type
    address = builder.bitcast(place, _I8.as_pointer())
    suffix = f"v{kind.count}i{kind.element.width}.p0"
    if name == "st4":
        function_type, operands = ir.FunctionType(ir.VoidType(), [kind] * 4 + [address.type]), [*vectors, address]
    else:
        function_type, operands = ir.FunctionType(ir.LiteralStructType([kind] * 4), [address.type]), [address]
    function = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.aarch64.neon.{name}.{suffix}")
    return builder.call(function, operands)


def _store_by_turns(memory: Memory, at: Any, parts: Sequence[Value]) -> None:
    """Words of four bytes by one instruction; of eight by pairs of bytes, of which there are four."""
    builder, vectors = memory.builder, [part.llvm for part in parts]
    if len(parts) == _WORD:
        _four(builder, "st4", vectors, memory.at(at))
        return
    for half in range(parts[0].lanes // _EIGHT):
        pairs = [_zipped(builder, even, odd, half) for even, odd in zip(vectors[::2], vectors[1::2], strict=True)]
        _four(builder, "st4", pairs, memory.at(builder.add(at, ir.IntType(64)(_EIGHT * half))))


def _loaded_by_turns(memory: Memory, at: Any, lanes: int, size: int) -> list[Any]:
    """The bytes of words, those of each number as a vector."""
    builder = memory.builder
    if size == _WORD:
        kind = ir.VectorType(_I8, lanes)
        found = _four(builder, "ld4", [ir.Constant(kind, None)], memory.at(at))
        return [builder.extract_value(found, number) for number in range(_WORD)]
    kind = ir.VectorType(_I16, _EIGHT)
    halves: list[list[Any]] = []
    for half in range(lanes // _EIGHT):
        place = memory.at(builder.add(at, ir.IntType(64)(_EIGHT * half)))
        found = _four(builder, "ld4", [ir.Constant(kind, None)], place)
        pairs = [builder.bitcast(builder.extract_value(found, pair), _CODES) for pair in range(_WORD)]
        halves.append(pairs)
    results: list[Any] = []
    for number in range(size):
        parts = [half[number // 2] for half in halves]
        order = [2 * lane + number % 2 for lane in range(lanes)]
        results.append(_picked(builder, parts[0], parts[-1], order))
    return results


def _storing(count: int) -> Any:
    def typed(context: Any, words: Any, at: Any, kinds: Sequence[Any]) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
            memory, at = Memory(builder, sig.args[0], operands[0]), operands[1]
            parts = [Value.of(builder, llvm, kind) for llvm, kind in zip(operands[2:], sig.args[2:], strict=True)]
            if is_x86():
                memory.write(at, _shifted_together(parts, memory.element))
            else:
                _store_by_turns(memory, at, parts)
            return context.get_dummy_value()

        return types.void(words, types.int64, *kinds), codegen

    names = ", ".join(f"b{number}" for number in range(count))
    namespace: dict[str, Any] = {"typed": typed}
    # numba reads the number of parameters off the function: it has to be spelled out.
    exec(f"def made(context, words, at, {names}):\n    return typed(context, words, at, [{names}])\n", namespace)
    return intrinsic(namespace["made"])


store_bytes_4 = _storing(4)
store_bytes_8 = _storing(8)


@intrinsic(prefer_literal=True)
def load_bytes(context: Any, words: Any, at: Any, lanes: Any) -> Any:
    """The bytes of `lanes` consecutive words as a tile: those of each number, the lowest first, are a row of it."""
    size, count = byte_width(words.element), lanes.literal_value
    tile = Tile(size, 1, count, types.int8)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        memory, at = Memory(builder, words, operands[0]), operands[1]
        if is_x86():
            found = memory.read(at, count)
            vectors = [((found >> 8 * number) if number else found).to(types.int8) for number in range(size)]
        else:
            loaded = _loaded_by_turns(memory, at, count, size)
            vectors = [Value(builder, vector, types.int8, count) for vector in loaded]
        return pack_vectors(builder, vectors)

    return tile(words, types.int64, lanes), codegen


@intrinsic(prefer_literal=True)
def byte_of(context: Any, tile: Any, number: Any) -> Any:
    """The bytes with one number of what `load_bytes` gives."""

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        return builder.extract_value(operands[0], number.literal_value)

    return tile.vector(tile, number), codegen


# --- floats as bytes


def _narrowed(builder: Any, name: str, vector: Any, element: Any) -> Any:
    """By an instruction of NEON that narrows a register to half of its bits, saturated."""
    kind = ir.VectorType(element, vector.type.count)
    width, of = element.width, vector.type
    function_type = ir.FunctionType(kind, [of])
    function = cgutils.get_or_insert_function(
        builder.module, function_type, f"llvm.aarch64.neon.{name}.v{kind.count}i{width}"
    )
    return builder.call(function, [vector])


def _by_narrowing(value: Value, element: Any) -> Value:
    """Four lanes at a time become whole numbers, then numbers of 16 bits and of eight; each step saturates."""
    builder, undefined = value.builder, ir.Undefined
    quarters = [
        _picked(builder, value.llvm, ir.Constant(value.llvm.type, undefined), range(start, start + _QUARTER))
        for start in range(0, value.lanes, _QUARTER)
    ]
    whole = [Value(builder, quarter, value.element, _QUARTER).to(types.int32).llvm for quarter in quarters]
    halves = [_narrowed(builder, "sqxtn", quarter, ir.IntType(16)) for quarter in whole]
    if len(halves) == 1:
        halves.append(ir.Constant(halves[0].type, undefined))
    pairs = [joined(builder, halves[start : start + 2]) for start in range(0, len(halves), 2)]
    name = "sqxtun" if element == types.uint8 else "sqxtn"
    codes = joined(builder, [_narrowed(builder, name, pair, _I8) for pair in pairs])
    if value.lanes < codes.type.count:
        codes = _picked(builder, codes, ir.Constant(codes.type, undefined), range(value.lanes))
    return value.like(codes, element)


def _low_bytes(value: Value) -> Any:
    """Four registers of SVE with floats in the range of a byte as one of bytes."""
    builder, lanes, kind = value.builder, value.lanes // 4, ir.VectorType(_I32, value.lanes // 4)
    undefined, words = ir.Constant(value.llvm.type, ir.Undefined), list[Any]()
    for start in range(0, value.lanes, lanes):
        quarter = _picked(builder, value.llvm, undefined, range(start, start + lanes))
        words.append(converted_to_integers(builder, quarter, kind, is_signed=True))
    return narrowed_registers(builder, words)


def _saturated(element: Any, low: float, high: float) -> Any:
    """A float32 between two limits and toward zero as a number of eight bits; NaN is 0."""

    def typed(context: Any, x: Any) -> Any:
        joint = types.unliteral(x)
        result = Vector(element, joint.lanes) if isinstance(joint, Vector) else element

        def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
            value = Value.of(builder, operands[0], sig.args[0])
            if (
                value.lanes in (_QUARTER, 2 * _QUARTER, 4 * _QUARTER)
                and not is_x86()
                and not code_processor().scalable_bits
            ):
                return _by_narrowing(value, element).llvm
            between = minimum(maximum(value, value.number(low)), value.number(high))
            if value.lanes and fills_register(ir.VectorType(_I8, value.lanes)):
                return _low_bytes(between)
            return between.to_int32_in_range().to(element).llvm

        return result(joint), codegen

    return intrinsic(typed)


saturated_int8 = _saturated(types.int8, -128.0, 127.0)
saturated_uint8 = _saturated(types.uint8, 0.0, 255.0)
