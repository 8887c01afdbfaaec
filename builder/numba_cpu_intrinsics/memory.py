"""Pointers, and loads and stores of single elements and of vectors, converted between memory and registers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.conversions import bfloat_bits, from_bfloat_bits, from_half_bits, half_bits
from mlirt.builder.numba_cpu_intrinsics.lane_types import (
    REGISTER_TYPES,
    Pointer,
    Vector,
    byte_width,
    llvm_memory,
    llvm_vector,
)
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value
from mlirt.builder.numba_cpu_intrinsics.lanewise import as_type
from mlirt.builder.numba_cpu_intrinsics.processor import has_feature
from mlirt.builder.numba_cpu_intrinsics.scalable import fills_register, joined_halves
from mlirt.builder.numba_cpu_intrinsics.untyped import (
    cgutils,
    intrinsic,
    ir,
    lower_builtin,
    signature,
    templates,
    types,
)

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_HALVES = 8  # of a register of NEON


def _pointer_maker(element: str, constant: bool) -> Any:
    kind = Pointer(element, constant)

    def typed(context: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
            return builder.inttoptr(operands[0], llvm_memory(element).as_pointer())

        return kind(types.int64), codegen

    return intrinsic(typed)


# `float32_pointer(address)` and, for memory that the kernel does not write, `const_float32_pointer(address)`.
POINTERS: dict[str, Any] = {
    f"{'const_' if constant else ''}{element}_pointer": _pointer_maker(element, constant)
    for element in REGISTER_TYPES
    for constant in (False, True)
}


class Memory:
    """Reads and writes through a pointer of one type."""

    def __init__(self, builder: Any, pointer: Pointer, address: Any) -> None:
        self.builder = builder
        self.pointer = pointer
        self.address = address
        self.element = REGISTER_TYPES[pointer.element]

    def at(self, index: Any, lanes: int = 0) -> Any:
        """The LLVM pointer to an element, or to a vector that starts there."""
        place = self.builder.gep(self.address, [index])
        return self.builder.bitcast(place, self._stored_type(lanes).as_pointer()) if lanes else place

    def _stored_type(self, lanes: int) -> Any:
        kind = llvm_memory(self.pointer.element)
        return ir.VectorType(kind, lanes) if lanes else kind

    def read(self, index: Any, lanes: int = 0) -> Value:
        """One element, or `lanes` consecutive ones."""
        loaded = self.builder.load(self.at(index, lanes), align=byte_width(self.pointer.element))
        if self.pointer.constant:
            loaded.set_metadata("invariant.load", self.builder.module.add_metadata([]))
        return self._decoded(loaded, lanes)

    def read_halves(self, index: Any, lanes: int) -> Any:
        """Consecutive float16 as such, eight in a vector; of four the others are undefined."""
        kind, register = ir.VectorType(ir.HalfType(), lanes), ir.VectorType(ir.HalfType(), _HALVES)
        place = self.builder.bitcast(self.at(index), kind.as_pointer())
        loaded = self.builder.load(place, align=byte_width(self.pointer.element))
        if self.pointer.constant:
            loaded.set_metadata("invariant.load", self.builder.module.add_metadata([]))
        return loaded if kind == register else _lanes_from(self.builder, loaded, 0, _HALVES)

    def read_first(self, index: Any, lanes: int, count: Any) -> Value:
        """The first `count` of `lanes` elements, zeros in the others; no byte beyond them is touched."""
        return self.read_masked(index, lanes, first_lanes(self.builder, lanes, count))

    def read_masked(self, index: Any, lanes: int, mask: Any) -> Value:
        """Those of `lanes` consecutive elements that a mask names, zeros in the others; no other byte is touched."""
        kind = self._stored_type(lanes)
        suffix = f"{_memory_suffix(self.pointer.element, lanes)}.p0"
        function_type = ir.FunctionType(kind, [kind.as_pointer(), _I32, mask.type, kind])
        function = cgutils.get_or_insert_function(self.builder.module, function_type, f"llvm.masked.load.{suffix}")
        zero = ir.Constant(kind, None)
        align = _I32(byte_width(self.pointer.element))
        return self._decoded(self.builder.call(function, [self.at(index, lanes), align, mask, zero]), lanes)

    def read_at(self, places: Any, lanes: int, mask: Any) -> Value:
        """The elements at a vector of places, zeros where a mask says so; nothing is touched for those."""
        kind, pointers = self._stored_type(lanes), ir.VectorType(self.address.type, lanes)
        base = Value(self.builder, self.builder.ptrtoint(self.address, _I64), types.int64).splat(lanes)
        places = base.like(places) * byte_width(self.pointer.element) + base
        function_type = ir.FunctionType(kind, [pointers, _I32, mask.type, kind])
        name = f"llvm.masked.gather.{_memory_suffix(self.pointer.element, lanes)}.v{lanes}p0"
        function = cgutils.get_or_insert_function(self.builder.module, function_type, name)
        align, zero = _I32(byte_width(self.pointer.element)), ir.Constant(kind, None)
        addresses = self.builder.inttoptr(places.llvm, pointers)
        return self._decoded(self.builder.call(function, [addresses, align, mask, zero]), lanes)

    def _decoded(self, llvm: Any, lanes: int) -> Value:
        element = self.pointer.element
        if element in ("float16", "bfloat16"):
            bits = Value(self.builder, llvm, types.uint16, lanes)
            return (from_half_bits if element == "float16" else from_bfloat_bits)(bits)
        if element == "bool":
            return Value(self.builder, llvm, types.uint8, lanes).to(types.boolean)
        return Value(self.builder, llvm, self.element, lanes)

    def _encoded(self, value: Value) -> Any:
        value = value.to(self.element)
        if self.pointer.element == "float16":
            return half_bits(value).llvm
        if self.pointer.element == "bfloat16":
            return bfloat_bits(value).llvm
        return value.to(types.uint8).llvm if self.pointer.element == "bool" else value.llvm

    def write(self, index: Any, value: Value) -> None:
        """Store a scalar or all lanes of a vector."""
        self.builder.store(self._encoded(value), self.at(index, value.lanes), align=byte_width(self.pointer.element))

    def write_first(self, index: Any, value: Value, count: Any) -> None:
        """Store the first `count` lanes."""
        stored = self._encoded(value)
        if not (has_feature("avx512f") or fills_register(stored.type)):
            self._write_parts(index, stored, count)
            return
        mask = first_lanes(self.builder, value.lanes, count)
        suffix = f"{_memory_suffix(self.pointer.element, value.lanes)}.p0"
        function_type = ir.FunctionType(ir.VoidType(), [stored.type, stored.type.as_pointer(), _I32, mask.type])
        function = cgutils.get_or_insert_function(self.builder.module, function_type, f"llvm.masked.store.{suffix}")
        align = _I32(byte_width(self.pointer.element))
        self.builder.call(function, [stored, self.at(index, value.lanes), align, mask])

    def _write_parts(self, index: Any, stored: Any, count: Any) -> None:
        """Store the first `count` lanes: all of them, or one part for each digit of the binary number `count`.

        Some processors with AVX2 take 40 operations to store under a mask; those before have no such instruction.
        """
        builder, lanes = self.builder, stored.type.count
        with builder.if_else(builder.icmp_signed(">=", count, _I64(lanes))) as (is_whole, is_part):
            with is_whole:
                self._write_lanes(index, stored)
            with is_part:
                left = builder.select(builder.icmp_signed(">", count, _I64(0)), count, _I64(0))
                for size in (1 << power for power in reversed(range((lanes - 1).bit_length()))):
                    index, stored = self._write_part(index, stored, left, size)

    def _write_part(self, index: Any, stored: Any, count: Any, size: int) -> tuple[Any, Any]:
        """Store `size` lanes if `count` has this digit; gives the place and the lanes that come next."""
        builder, before = self.builder, self.builder.block
        first = _lanes_from(builder, stored, 0, size)
        with builder.if_then(builder.icmp_signed("!=", builder.and_(count, _I64(size)), _I64(0))):
            self._write_lanes(index, first)
            next_index = builder.add(index, _I64(size))
            rest = _lanes_from(builder, stored, size, size)
            inside = builder.block
        chosen: list[Any] = []
        for new, old in ((next_index, index), (rest, first)):
            phi = builder.phi(new.type)
            phi.add_incoming(new, inside)
            phi.add_incoming(old, before)
            chosen.append(phi)
        return chosen[0], chosen[1]

    def _write_lanes(self, index: Any, stored: Any) -> None:
        self.builder.store(stored, self.at(index, stored.type.count), align=byte_width(self.pointer.element))


def _lanes_from(builder: Any, vector: Any, first: int, count: int) -> Any:
    """`count` lanes of a vector from one on; those behind its last are undefined."""
    numbers = [min(first + lane, vector.type.count) for lane in range(count)]
    order = ir.Constant(ir.VectorType(_I32, count), numbers)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), order)


def _memory_suffix(element: str, lanes: int) -> str:
    kind = llvm_memory(element)
    scalar = {ir.FloatType(): "f32", ir.DoubleType(): "f64"}.get(kind) or f"i{kind.width}"
    return f"v{lanes}{scalar}"


def first_lanes(builder: Any, lanes: int, count: Any) -> Any:
    """The mask of the first `count` lanes."""
    numbers = ir.VectorType(_I32, lanes)
    positions = ir.Constant(numbers, list(range(lanes)))
    limit = Value(builder, builder.trunc(count, _I32), types.int32).splat(lanes)
    return builder.icmp_signed("<", positions, limit.llvm)


@templates.infer_global(operator.getitem)
class _PointerGetItem(templates.AbstractTemplate):  # pyright: ignore[reportUntypedBaseClass, reportUnusedClass]
    """`x[i]`."""

    def generic(self, args: Sequence[Any], kws: Any) -> Any:
        if len(args) == 2 and isinstance(args[0], Pointer) and isinstance(args[1], types.Integer):
            return signature(REGISTER_TYPES[args[0].element], args[0], types.int64)
        return None


@templates.infer_global(operator.setitem)
class _PointerSetItem(templates.AbstractTemplate):  # pyright: ignore[reportUntypedBaseClass, reportUnusedClass]
    """`y[i] = v`."""

    def generic(self, args: Sequence[Any], kws: Any) -> Any:
        if len(args) == 3 and isinstance(args[0], Pointer) and isinstance(args[1], types.Integer):
            return signature(types.none, args[0], types.int64, REGISTER_TYPES[args[0].element])
        return None


@lower_builtin(operator.getitem, Pointer, types.Integer)
def get_item(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
    """`x[i]`."""
    return Memory(builder, sig.args[0], operands[0]).read(operands[1]).llvm


@lower_builtin(operator.setitem, Pointer, types.Integer, types.Any)
def set_item(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
    """`y[i] = v`."""
    value = Value.of(builder, operands[2], sig.args[2])
    Memory(builder, sig.args[0], operands[0]).write(operands[1], value)
    return context.get_dummy_value()


def _returning(pointer: Pointer, lanes: Any) -> Vector:
    return Vector(REGISTER_TYPES[pointer.element], lanes.literal_value)


def _reader(read: Callable[..., Value]) -> Callable[..., Any]:
    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        memory = Memory(builder, sig.args[0], operands[0])
        return read(memory, sig.return_type.lanes, *operands[1:]).llvm

    return codegen


def _read_all(memory: Memory, lanes: int, at: Any, _: Any) -> Value:
    return memory.read(at, lanes)


def _read_first(memory: Memory, lanes: int, at: Any, _: Any, count: Any) -> Value:
    return memory.read_first(at, lanes, count)


def _gather_all(memory: Memory, lanes: int, at: Any, stride: Any, _: Any) -> Value:
    return _gathered(memory, lanes, at, stride)


def _gather_first(memory: Memory, lanes: int, at: Any, stride: Any, _: Any, count: Any) -> Value:
    return _gathered(memory, lanes, at, stride, memory.builder.sub(count, _I64(1)))


@intrinsic(prefer_literal=True)
def load(context: Any, pointer: Any, at: Any, lanes: Any) -> Any:
    """`lanes` consecutive elements as a vector."""
    result = _returning(pointer, lanes)
    return result(pointer, types.int64, lanes), _reader(_read_all)


@intrinsic(prefer_literal=True)
def load_first(context: Any, pointer: Any, at: Any, lanes: Any, count: Any) -> Any:
    """The first `count` of `lanes` consecutive elements; zeros in the other lanes."""
    result = _returning(pointer, lanes)
    return result(pointer, types.int64, lanes, types.int64), _reader(_read_first)


@intrinsic(prefer_literal=True)
def load_repeated(context: Any, pointer: Any, at: Any, lanes: Any, times: Any) -> Any:
    """`lanes` consecutive elements as a vector that has them over and over."""
    count = lanes.literal_value
    result = Vector(REGISTER_TYPES[pointer.element], count * times.literal_value)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        found = Memory(builder, pointer, operands[0]).read(operands[1], count).llvm
        order = ir.Constant(ir.VectorType(_I32, result.lanes), [lane % count for lane in range(result.lanes)])
        return builder.shuffle_vector(found, ir.Constant(found.type, ir.Undefined), order)

    return result(pointer, types.int64, lanes, times), codegen


def _gathered(memory: Memory, lanes: int, at: Any, stride: Any, last: Any = None) -> Value:
    """Elements `stride` apart, one by one; lanes after number `last` repeat that one, so that nothing else is read."""
    builder, first = memory.builder, memory.read(at)
    elements = [first]
    for lane in range(1, lanes):
        number = _I64(lane)
        if last is not None:
            number = builder.select(builder.icmp_signed("<", number, last), number, last)
        elements.append(memory.read(builder.add(at, builder.mul(stride, number))))
    kind = llvm_vector(first.element, lanes)
    if fills_register(kind):
        low, high = (_inserted(builder, elements[start : start + lanes // 2]) for start in (0, lanes // 2))
        return Value(builder, joined_halves(builder, low, high, kind), first.element, lanes)
    return Value(builder, _inserted(builder, elements), first.element, lanes)


def _inserted(builder: Any, elements: Sequence[Value]) -> Any:
    """Elements as the lanes of a vector."""
    result = ir.Constant(llvm_vector(elements[0].element, len(elements)), ir.Undefined)
    for lane, element in enumerate(elements):
        result = builder.insert_element(result, element.llvm, _I32(lane))
    return result


@intrinsic(prefer_literal=True)
def gather(context: Any, pointer: Any, at: Any, stride: Any, lanes: Any) -> Any:
    """`lanes` elements that lie `stride` apart."""
    result = _returning(pointer, lanes)
    return result(pointer, types.int64, types.int64, lanes), _reader(_gather_all)


@intrinsic(prefer_literal=True)
def gather_first(context: Any, pointer: Any, at: Any, stride: Any, lanes: Any, count: Any) -> Any:
    """The first `count` of `lanes` elements that lie `stride` apart; other lanes repeat one of them."""
    result = _returning(pointer, lanes)
    return result(pointer, types.int64, types.int64, lanes, types.int64), _reader(_gather_first)


@intrinsic
def store(context: Any, pointer: Any, at: Any, vector: Any) -> Any:
    """Write all lanes to consecutive elements."""

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        Memory(builder, sig.args[0], operands[0]).write(operands[1], Value.of(builder, operands[2], sig.args[2]))
        return context.get_dummy_value()

    return types.void(pointer, types.int64, vector), codegen


@intrinsic
def store_first(context: Any, pointer: Any, at: Any, vector: Any, count: Any) -> Any:
    """Write the first `count` lanes to consecutive elements."""

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        value = Value.of(builder, operands[2], sig.args[2])
        Memory(builder, sig.args[0], operands[0]).write_first(operands[1], value, operands[3])
        return context.get_dummy_value()

    return types.void(pointer, types.int64, vector, types.int64), codegen


@intrinsic(prefer_literal=True)
def splat(context: Any, scalar: Any, lanes: Any) -> Any:
    """A scalar in all lanes of a vector."""
    scalar = types.unliteral(scalar)
    result = Vector(scalar, lanes.literal_value)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        return as_type(Value.of(builder, operands[0], sig.args[0]), sig.return_type).llvm

    return result(scalar, lanes), codegen


@intrinsic
def keep_first(context: Any, vector: Any, count: Any, otherwise: Any) -> Any:
    """The first `count` lanes of a vector, `otherwise` in the others."""

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        kept = Value.of(builder, operands[0], sig.args[0])
        other = as_type(Value.of(builder, operands[2], sig.args[2]), sig.args[0])
        return builder.select(first_lanes(builder, kept.lanes, operands[1]), kept.llvm, other.llvm)

    return vector(vector, types.int64, vector.element), codegen


@intrinsic(prefer_literal=True)
def lane_indices(context: Any, first: Any, lanes: Any) -> Any:
    """`first, first + 1, ..` as a vector of int64."""
    result = Vector(types.int64, lanes.literal_value)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        lanes = sig.return_type.lanes
        steps = ir.Constant(ir.VectorType(_I64, lanes), list(range(lanes)))
        return builder.add(Value(builder, operands[0], types.int64).splat(lanes).llvm, steps)

    return result(types.int64, lanes), codegen


@intrinsic
def prefetch(context: Any, pointer: Any, at: Any) -> Any:
    """Ask for the memory around an element to be brought into the second-level cache."""

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        place = builder.bitcast(Memory(builder, sig.args[0], operands[0]).at(operands[1]), _I8.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [place, _I32(0), _I32(2), _I32(1)])
        return context.get_dummy_value()

    return types.void(pointer, types.int64), codegen
