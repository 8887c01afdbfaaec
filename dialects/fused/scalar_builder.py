"""Writes the scalar regions of fused ops: arithmetic on one element of each operand.

Half-precision numbers are computed in float32. Unsigned integers are reinterpreted as signless ones of their width,
because `arith` knows no others, and the builder picks the unsigned form of each op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    f32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirt.dialects.fused import scalar_float8 as float8
from mlirt.dialects.fused.fused_op import IndexOp, SizeOp, YieldOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import is_bool, is_float, is_float8, is_unsigned


def compute_type(element: Attribute) -> Attribute:
    """The element type in which arithmetic on `element` is carried out: float32 for shorter floats, else itself."""
    return f32 if isinstance(element, Float16Type | BFloat16Type) or is_float8(element) else element


def accumulator_type(element: Attribute) -> Attribute:
    """The type in which many elements are summed: float32, float64, or integers of 32 bits (for 8-bit ones) or 64."""
    if is_float(element) or is_float8(element):
        return compute_type(element)
    return IntegerType(32 if integer_type(element).width.data <= 8 else 64)


def extreme_type(element: Attribute) -> Attribute:
    """The type in which elements are compared: short unsigned integers fit into a wider signed one."""
    if is_unsigned(element):
        width = integer_type(element).width.data
        return element if width == 64 else IntegerType(64 if width == 32 else 32)
    return compute_type(element)


def scalar_type(element: Attribute) -> Attribute:
    """The type of one element inside a region once it is ready for `arith`: signless for integers.

    An 8-bit float is its bits there.
    """
    if is_float(element):
        return element
    if is_float8(element):
        return IntegerType(8)
    return IntegerType(integer_type(element).width.data)


def integer_type(element: Attribute) -> IntegerType:
    """An element type that is known to be an integer, as such."""
    assert isinstance(element, IntegerType)
    return cast("IntegerType", element)


@dataclass(frozen=True)
class Scalars:
    """Appends scalar ops on numbers of one element type to a block; methods take and give SSA values of `self.type`."""

    block: Block
    element: Attribute

    @property
    def type(self) -> Attribute:
        return scalar_type(self.element)

    @property
    def integer(self) -> IntegerType:
        """`type` where it is known to be an integer."""
        return integer_type(self.type)

    @property
    def floating(self) -> bool:
        return is_float(self.element)

    @property
    def unsigned(self) -> bool:
        return is_unsigned(self.element)

    def on(self, element: Attribute) -> Scalars:
        """The same block, for arithmetic on another element type."""
        return Scalars(self.block, element)

    def add_op(self, op: Operation) -> SSAValue:
        """Append an op and return its result."""
        self.block.add_op(op)
        return op.results[0]

    def constant(self, value: float | bool) -> SSAValue:
        """A number of this type; integers outside of the range are clamped to it."""
        if is_float8(self.element):
            return self.on(self.type).constant(float8.code_of(value))
        if self.floating:
            return self.add_op(arith.ConstantOp(FloatAttr(float(value), self.type)))  # pyright: ignore[reportCallIssue, reportArgumentType]
        width = self.integer.width.data
        low, high = (0, 2**width - 1) if self.unsigned or width == 1 else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
        whole = int(min(max(value, low), high))
        return self.add_op(arith.ConstantOp(IntegerAttr(whole, self.integer, truncate_bits=True)))

    def index(self, axis: int) -> SSAValue:
        """The position along an iteration dimension, as a number of this type."""
        position = self.add_op(IndexOp(axis))
        return self.from_index(position)

    def size(self, length: Dim) -> SSAValue:
        """A length, which may be determined only by the shapes of a run, as a number of this type."""
        return self.constant(length) if isinstance(length, int) else self.from_index(self.add_op(SizeOp(length)))

    def from_index(self, position: SSAValue) -> SSAValue:
        """An `index` value as a number of this type."""
        whole = self.add_op(arith.IndexCastOp(position, IntegerType(64)))
        return self.cast(whole, IntegerType(64))

    def _binary(self, a: SSAValue, b: SSAValue, *choices: type[Operation]) -> SSAValue:
        """Append the op for (floating, signed, unsigned) numbers; the last choice stands for those not given."""
        position = 0 if self.floating else 2 if self.unsigned else 1
        made = choices[min(position, len(choices) - 1)]
        return self.add_op(made(a, b))  # pyright: ignore[reportCallIssue]

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._binary(a, b, arith.AddfOp, arith.AddiOp)

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._binary(a, b, arith.SubfOp, arith.SubiOp)

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._binary(a, b, arith.MulfOp, arith.MuliOp)

    def max(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The larger number; not-a-number wins."""
        return self._binary(a, b, arith.MaximumfOp, arith.MaxSIOp, arith.MaxUIOp)

    def min(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The smaller number; not-a-number wins."""
        return self._binary(a, b, arith.MinimumfOp, arith.MinSIOp, arith.MinUIOp)

    def div(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The quotient, truncated for integers; 0 where an integer divisor is 0."""
        if self.floating:
            return self.add_op(arith.DivfOp(a, b))
        return self.guarded(b, lambda safe: self._binary(a, safe, arith.DivSIOp, arith.DivSIOp, arith.DivUIOp))

    def guarded(self, divisor: SSAValue, quotient: Callable[[SSAValue], SSAValue]) -> SSAValue:
        """An integer division that cannot trap: 0 where the divisor is 0."""
        zero = self.constant(0)
        is_zero = self.compare("eq", divisor, zero)
        return self.select(is_zero, zero, quotient(self.select(is_zero, self.constant(1), divisor)))

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """`eq`, `ne`, `lt`, `le`, `gt` or `ge` as an i1; comparisons with not-a-number are false, except `ne`."""
        if self.floating:
            return self.add_op(arith.CmpfOp(a, b, ("u" if predicate == "ne" else "o") + predicate))
        sign = "" if predicate in ("eq", "ne") else "u" if self.unsigned or is_bool(self.element) else "s"
        return self.add_op(arith.CmpiOp(a, b, sign + predicate))

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add_op(arith.SelectOp(condition, a, b))

    def invert(self, a: SSAValue) -> SSAValue:
        """All bits flipped: `not` of a boolean."""
        all_ones = 1 if is_bool(self.element) else 2**64 if self.unsigned else -1
        return self.add_op(arith.XOrIOp(a, self.constant(all_ones)))

    def neg(self, a: SSAValue) -> SSAValue:
        return self.add_op(arith.NegfOp(a)) if self.floating else self.sub(self.constant(0), a)

    def abs(self, a: SSAValue) -> SSAValue:
        if self.floating:
            return self.add_op(math.AbsFOp(a))
        return a if self.unsigned else self.max(a, self.neg(a))

    def function(self, made: type[Operation], *arguments: SSAValue) -> SSAValue:
        """Apply an op of the `math` or `arith` dialect to floating-point numbers."""
        return self.add_op(made(*arguments))  # pyright: ignore[reportCallIssue]

    def cast(self, value: SSAValue, source: Attribute) -> SSAValue:
        """A number of element type `source` as one of this type: integers wrap, floats truncate toward zero."""
        return _cast(self, value, source)


def _cast(to: Scalars, value: SSAValue, source: Attribute) -> SSAValue:
    target = to.element
    if source == target:
        return value
    if is_float8(source):
        return to.cast(float8.decoded(to.on(f32), value), f32)
    if is_float8(target):
        return float8.encoded(to.on(f32), to.on(f32).cast(value, source))
    if scalar_type(source) == to.type:
        return value
    if is_bool(target):
        origin = to.on(source)
        return origin.compare("ne", value, origin.constant(0))
    if is_float(source) and is_float(target):
        return _cast_float(to, value, source)
    if is_float(source):
        return _cast_to_integer(to, to.on(compute_type(source)).cast(value, source))
    if is_float(target):
        made = arith.UIToFPOp if is_unsigned(source) or is_bool(source) else arith.SIToFPOp
        middle = compute_type(target)
        return to.cast(to.add_op(made(value, middle)), middle)  # pyright: ignore[reportArgumentType]
    return _cast_integer(to, value, source)


def _cast_float(to: Scalars, value: SSAValue, source: Attribute) -> SSAValue:
    target = to.element
    if _width(source) == _width(target):
        return to.cast(to.on(f32).cast(value, source), f32)
    return to.add_op((arith.ExtFOp if _width(target) > _width(source) else arith.TruncFOp)(value, target))


def _cast_to_integer(to: Scalars, value: SSAValue) -> SSAValue:
    """Truncate toward zero; short integers and uint32 go through a wider type, so that they wrap, not saturate."""
    width = _width(to.element)
    if width == 64 and to.unsigned:
        return to.add_op(arith.FPToUIOp(value, IntegerType(64)))
    middle = IntegerType(64 if width == 64 or (width == 32 and to.unsigned) else 32)
    return to.cast(to.add_op(arith.FPToSIOp(value, middle)), middle)


def _cast_integer(to: Scalars, value: SSAValue, source: Attribute) -> SSAValue:
    if _width(to.element) < _width(source):
        return to.add_op(arith.TruncIOp(value, to.integer))
    widen = arith.ExtUIOp if is_unsigned(source) or is_bool(source) else arith.ExtSIOp
    return to.add_op(widen(value, to.integer))


def _width(element: Attribute) -> int:
    bits = getattr(element, "bitwidth")
    assert isinstance(bits, int)
    return bits


Formula = Callable[[Scalars, Sequence[SSAValue]], SSAValue]


def arguments_of(block: Block, elements: Sequence[Attribute]) -> list[SSAValue]:
    """Give a block one argument per element type; returns them ready for `arith`, unsigned ones reinterpreted."""
    ready: list[SSAValue] = []
    for element in elements:
        argument = block.insert_arg(element, len(block.args))
        ready.append(_signless(Scalars(block, element), argument))
    return ready


def _signless(scalars: Scalars, value: SSAValue) -> SSAValue:
    if value.type == scalars.type:
        return value
    return scalars.add_op(arith.BitcastOp(value, scalars.type))


def yield_as(scalars: Scalars, value: SSAValue, result: Attribute) -> None:
    """End the block with a number of `scalars`' type, converted to the element type `result`."""
    end_with(scalars.block, [(scalars.on(result).cast(value, scalars.element), result)])


def end_with(block: Block, values: Sequence[tuple[SSAValue, Attribute]]) -> None:
    """End the block with signless values, each given back as its element type."""
    given = [
        value if value.type == element else Scalars(block, element).add_op(arith.BitcastOp(value, element))
        for value, element in values
    ]
    block.add_op(YieldOp(operands=[given]))


def region_of(operands: Sequence[Attribute], result: Attribute, compute: Attribute, formula: Formula) -> Region:
    """A region that converts each operand to the type `compute`, applies the formula there, and yields a `result`."""
    block = Block()
    scalars = Scalars(block, compute)
    ready = arguments_of(block, operands)
    converted = [scalars.cast(value, element) for value, element in zip(ready, operands, strict=True)]
    yield_as(scalars, formula(scalars, converted), result)
    return Region(block)


def conversion_region(source: Attribute, target: Attribute) -> Region:
    """A region that converts its only argument from one element type to another."""
    block = Block()
    (value,) = arguments_of(block, [source])
    yield_as(Scalars(block, source), value, target)
    return Region(block)
