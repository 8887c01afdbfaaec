"""Vectors of a known width in the registers of SVE, whose instructions leave the width open.

LLVM is told how wide the registers are, and takes a vector of that width for one of them in most operations. Where it
would go through memory element by element, instructions are called here by their functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.processor import code_processor
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, ir

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_SEGMENT_BITS = 128
_ALL = 31
"""The pattern of a predicate that holds in every lane; those from 1 to 8 are so many first lanes."""


class _Register(ir.Type):
    """A vector whose length is a multiple of `count`, the same for all."""

    def __init__(self, element: Any, count: int) -> None:
        self.element, self.count = element, count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Register) and (self.element, self.count) == (other.element, other.count)

    def __hash__(self) -> int:
        return hash(_Register)

    def _to_string(self) -> str:
        return f"<vscale x {self.count} x {self.element}>"


def bits_of(kind: Any) -> int:
    """The width of a vector type of LLVM."""
    return kind.count * _element_bits(kind.element)


def fills_register(kind: Any) -> bool:
    """Whether a vector type is as wide as the registers of SVE that code may use."""
    return isinstance(kind, ir.VectorType) and bits_of(kind) == code_processor().scalable_bits


def holds_registers(kind: Any) -> bool:
    """Whether a vector type is as wide as one register of SVE or several."""
    bits = code_processor().scalable_bits
    return bits > 0 and bits_of(kind) >= bits


def _element_bits(element: Any) -> int:
    return {ir.HalfType(): 16, ir.FloatType(): 32, ir.DoubleType(): 64}.get(element) or element.width


def _suffix(kind: Any) -> str:
    letter = "i" if isinstance(kind.element, ir.IntType) else "f"
    scalable = "nx" if isinstance(kind, _Register) else ""
    return f"{scalable}v{kind.count}{letter}{_element_bits(kind.element)}"


def _called(builder: Any, name: str, result: Any, operands: Sequence[Any]) -> Any:
    kind = ir.FunctionType(result, [operand.type for operand in operands])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), operands)


def register_of(builder: Any, vector: Any) -> Any:
    """The register whose first lanes a vector has."""
    kind = _Register(vector.type.element, _SEGMENT_BITS // _element_bits(vector.type.element))
    undefined = ir.Constant(kind, ir.Undefined)
    name = f"llvm.vector.insert.{_suffix(kind)}.{_suffix(vector.type)}"
    return _called(builder, name, kind, [undefined, vector, _I64(0)])


def vector_of(builder: Any, register: Any, kind: Any) -> Any:
    """The first lanes of a register as a vector."""
    name = f"llvm.vector.extract.{_suffix(kind)}.{_suffix(register.type)}"
    return _called(builder, name, kind, [register, _I64(0)])


def _by_registers(builder: Any, name: str, vectors: Sequence[Any], *more: Any) -> Any:
    """An instruction on registers, whose first operand has the type of its result."""
    registers = [register_of(builder, vector) for vector in vectors]
    kind = registers[0].type
    found = _called(builder, f"llvm.aarch64.sve.{name}.{_suffix(kind)}", kind, [*registers, *more])
    return vector_of(builder, found, vectors[0].type)


def _predicate(builder: Any, kind: Any, pattern: int) -> Any:
    """The first lanes of a register like that of a vector type, as a pattern has them."""
    flags = _Register(ir.IntType(1), _SEGMENT_BITS // _element_bits(kind.element))
    return _called(builder, f"llvm.aarch64.sve.ptrue.{_suffix(flags)}", flags, [_I32(pattern)])


def repeated_bits(builder: Any, place: Any, bits: int, kind: Any) -> Any:
    """So many bits (64 or 128) at a place of memory, over and over in a vector of a type that fills a register."""
    if bits < _SEGMENT_BITS:
        word = builder.load(builder.bitcast(place, ir.IntType(bits).as_pointer()), align=1)
        return _spread(builder, word, kind)
    register = _Register(kind.element, _SEGMENT_BITS // _element_bits(kind.element))
    name = f"llvm.aarch64.sve.ld1rq.{_suffix(register)}"
    found = _called(builder, name, register, [_predicate(builder, kind, _ALL), place])
    return vector_of(builder, found, kind)


def spread_bits(builder: Any, vector: Any, kind: Any) -> Any:
    """A vector of 64 or 128 bits over and over, as `repeated_bits` has what it reads."""
    bits = bits_of(vector.type)
    if bits < _SEGMENT_BITS:
        return _spread(builder, builder.bitcast(vector, ir.IntType(bits)), kind)
    register = register_of(builder, vector)
    found = _called(builder, f"llvm.aarch64.sve.dupq.lane.{_suffix(register.type)}", register.type, [register, _I64(0)])
    return vector_of(builder, found, kind)


def _spread(builder: Any, word: Any, kind: Any) -> Any:
    """A whole number in all lanes of its width."""
    wide = ir.VectorType(word.type, bits_of(kind) // word.type.width)
    first = builder.insert_element(ir.Constant(wide, ir.Undefined), word, _I32(0))
    order = ir.Constant(ir.VectorType(_I32, wide.count), None)
    return builder.bitcast(builder.shuffle_vector(first, ir.Constant(wide, ir.Undefined), order), kind)


def multiply_add_by_lane(builder: Any, accumulators: Any, vector: Any, factors: Any, lane: int) -> Any:
    """`accumulators + vector * factors[lane]`, where each 128 bits of the factors are the same."""
    return _by_registers(builder, "fmla.lane", [accumulators, vector, factors], _I32(lane))


def dot_by_lane(builder: Any, name: str, accumulators: Any, weights: Any, pixels: Any, lane: int) -> Any:
    """Sums of four products of int8 in each lane: `sdot`, or `sudot` for pixels of uint8. Each 128 bits of the pixels
    are the same.
    """
    return _by_registers(builder, f"{name}.lane", [accumulators, weights, pixels], _I32(lane))


def dot(builder: Any, name: str, accumulators: Any, left: Any, right: Any) -> Any:
    """The same lane by lane: `sdot`, or `usdot` of uint8 by int8."""
    return _by_registers(builder, name, [accumulators, left, right])


def converted_to_integers(builder: Any, vector: Any, kind: Any, is_signed: bool) -> Any:
    """Floats toward zero, saturated, as integers of their width; NaN gives 0. They fill one register or several."""
    if not fills_register(kind):
        half = kind.count // 2
        parts = [_lanes(builder, vector, range(start, start + half)) for start in (0, half)]
        found = [converted_to_integers(builder, part, ir.VectorType(kind.element, half), is_signed) for part in parts]
        return builder.shuffle_vector(*found, ir.Constant(ir.VectorType(_I32, kind.count), list(range(kind.count))))
    register = register_of(builder, vector)
    before = ir.Constant(_Register(kind.element, register.type.count), ir.Undefined)
    name = f"fcvtz{'s' if is_signed else 'u'}.{_suffix(before.type)}.{_suffix(register.type)}"
    operands = [before, _predicate(builder, kind, _ALL), register]
    return vector_of(builder, _called(builder, f"llvm.aarch64.sve.{name}", before.type, operands), kind)


def narrowed_registers(builder: Any, vectors: Sequence[Any]) -> Any:
    """The lowest bytes of the lanes of four vectors of words, which fill a register each, as one vector of bytes."""
    for width in (16, 8):
        kind = ir.VectorType(ir.IntType(width), vectors[0].type.count * vectors[0].type.element.width // width)
        parts = [register_of(builder, builder.bitcast(vector, kind)) for vector in vectors]
        name = f"llvm.aarch64.sve.uzp1.{_suffix(parts[0].type)}"
        pairs = zip(parts[::2], parts[1::2], strict=True)
        vectors = [vector_of(builder, _called(builder, name, parts[0].type, pair), kind) for pair in pairs]
    return vectors[0]


def _lanes(builder: Any, vector: Any, numbers: Sequence[int]) -> Any:
    order = ir.Constant(ir.VectorType(_I32, len(numbers)), list(numbers))
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), order)


def joined_halves(builder: Any, low: Any, high: Any, kind: Any) -> Any:
    """Two vectors of half of the lanes as one."""
    first, second = (register_of(builder, vector) for vector in (low, high))
    operands = [_predicate(builder, kind, low.type.count), first, second]
    found = _called(builder, f"llvm.aarch64.sve.splice.{_suffix(first.type)}", first.type, operands)
    return vector_of(builder, found, kind)


def exchanged_halves(builder: Any, upper: Any, lower: Any) -> tuple[Any, Any]:
    """The lower halves of two vectors as one, and the upper ones."""
    kind = upper.type
    half = kind.count // 2
    first, second = (register_of(builder, vector) for vector in (upper, lower))
    predicate, suffix = _predicate(builder, kind, half), _suffix(first.type)
    lows = _called(builder, f"llvm.aarch64.sve.splice.{suffix}", first.type, [predicate, first, second])
    moved = _called(builder, f"llvm.aarch64.sve.ext.{suffix}", first.type, [first, first, _I32(half)])
    highs = _called(builder, f"llvm.aarch64.sve.sel.{suffix}", first.type, [predicate, moved, second])
    return vector_of(builder, lows, kind), vector_of(builder, highs, kind)


def picked(builder: Any, left: Any, right: Any, order: Sequence[int]) -> Any:
    """Lanes of two vectors, which are numbered one behind the other, as a shuffle of LLVM has them: from each by a
    table, whose places beyond the register give zero.
    """
    kind = left.type
    count, width = kind.count, _element_bits(kind.element)
    numbers = ir.VectorType(ir.IntType(width), count)
    found: Any = None
    for start, vector in ((0, left), (count, right)):
        places = [lane - start if start <= lane < start + count else count for lane in order]
        if all(place == count for place in places):
            continue
        part = _by_registers(builder, "tbl", [vector], register_of(builder, ir.Constant(numbers, places)))
        part = builder.bitcast(part, numbers)
        found = part if found is None else builder.or_(found, part)
    return builder.bitcast(found, kind)
