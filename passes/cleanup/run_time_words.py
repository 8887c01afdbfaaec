"""Scalars of shape arithmetic in a run: 0-D int64 tensors, and what is known of them when the engine is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from xdsl.context import Context
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.shape_arithmetic import ShapeArithmetic
from mlirt.dialects.symbolic import Dim, sym, symbols
from mlirt.dialects.tensor_types import dims, is_tensor
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.dialects.trt.elementwise import ElementwiseKind as Kind
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.require import RequireOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.passes.layer_builder import LayerBuilder


@dataclass(frozen=True)
class Word:
    """An element of a shape: its value in a run, and the dimension that it is, where that is known."""

    value: SSAValue
    dim: Dim | None


class Words:
    """Appends layers that compute with elements of shapes before the layer that reads the shape."""

    def __init__(self, function: FuncOp, arithmetic: ShapeArithmetic, ctx: Context) -> None:
        self.arithmetic, self.ctx, self.block = arithmetic, ctx, function.body.block
        self.layers = LayerBuilder(ctx, self.block, function)
        self._taken = _symbols_in(function)
        self._numbers = count()

    def stand_before(self, layer: Operation) -> None:
        """From now on layers come before this one, under its name."""
        self.layers = LayerBuilder.in_front_of(layer, self.ctx)

    def of(self, shape: SSAValue) -> list[Word]:
        """The elements of a vector of known length."""
        owner = shape.owner
        if isinstance(owner, IdentityOp):
            return self.of(owner.input)
        if isinstance(owner, ConcatenationOp) and all(isinstance(dims(part.type)[0], int) for part in owner.inputs):
            return [word for part in owner.inputs for word in self.of(part)]
        (length,) = dims(shape.type)
        assert isinstance(length, int)
        known = self.arithmetic.elements(shape) or [None] * length
        whole = self.layers.whole(shape)
        places = [self.layers.number(k) for k in range(length)]
        return [Word(self.layers.slice_at(whole, place, 0), dim) for place, dim in zip(places, known, strict=True)]

    def of_either(self, operand: SSAValue | None, written: DimsAttr | None) -> list[Word] | None:
        """The elements of an operand or of a property, which must be numbers."""
        if operand is not None:
            return self.of(operand)
        lengths = () if written is None else written.dims()
        numbers = [length for length in lengths if isinstance(length, int)]
        if written is None or len(numbers) < len(lengths):
            return None
        return [Word(self.layers.number(number), number) for number in numbers]

    def lengths(self, shape: SSAValue) -> DimsAttr:
        """A shape as dimensions, a new symbol for each that is not known."""
        return DimsAttr.of([self.dim_of(word) for word in self.of(shape)])

    def dim_of(self, word: Word) -> Dim:
        return self.size(word.value) if word.dim is None else word.dim

    def size(self, value: SSAValue) -> Dim:
        """A new symbol for a number of the run."""
        name = next(name for k in self._numbers if (name := f"size{k}") not in self._taken)
        self.layers.insert(DefineSizeOp(name, value))
        return sym(name)

    def require(self, condition: SSAValue, message: str) -> None:
        self.layers.insert(RequireOp(condition, message))

    def binary(self, kind: Kind, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self.layers.binary(kind, lhs, rhs)

    def not_below_zero(self, value: SSAValue) -> SSAValue:
        return self.binary(Kind.GREATER, value, self.layers.number(-1))

    def product(self, values: Sequence[SSAValue]) -> SSAValue:
        total = self.layers.number(1)
        for value in values:
            total = self.binary(Kind.PROD, total, value)
        return total

    def without_placeholders(
        self, values: Sequence[SSAValue], own: Sequence[SSAValue], *, copies: bool
    ) -> list[SSAValue]:
        """The lengths that a shape asks for: 0 is a length of the tensor before, if it `copies`, -1 what is left.

        Where nothing is left to tell what a -1 is, it stays, and is no size.
        """
        zero, one, minus_one = (self.layers.number(number) for number in (0, 1, -1))
        asked = list(values)
        for k, length in enumerate(own if copies else ()):
            if k < len(asked):
                is_zero = self.binary(Kind.EQUAL, asked[k], zero)
                asked[k] = self.layers.layer(SelectOp, [is_zero, length, asked[k]])
        missing = [self.binary(Kind.EQUAL, value, minus_one) for value in asked]
        rest = self.product(
            [self.layers.layer(SelectOp, [gone, one, value]) for gone, value in zip(missing, asked, strict=True)]
        )
        left = self.binary(Kind.DIV, self.product(own), self.binary(Kind.MAX, rest, one))
        left = self.layers.layer(SelectOp, [self.binary(Kind.EQUAL, rest, zero), minus_one, left])
        return [self.layers.layer(SelectOp, [gone, left, value]) for gone, value in zip(missing, asked, strict=True)]


def _symbols_in(function: FuncOp) -> set[str]:
    """The symbols in the types of all values of a function, and those that it defines."""
    taken = {op.symbol.data for op in function.walk() if isinstance(op, DefineSizeOp)}
    values = [*function.body.block.args, *(result for op in function.walk() for result in op.results)]
    for value in values:
        if is_tensor(value.type):
            taken.update(name for dim in dims(value.type) for name in symbols(dim))
    return taken
