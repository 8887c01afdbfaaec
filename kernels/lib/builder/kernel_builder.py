"""Writes one kernel: loops, scalar ops and memory accesses, on arguments that are bound to the host program."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    f32,
    f64,
    i64,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from mlirt.dialects.fused.fused_op import IndexOp, SizeOp, copy_region
from mlirt.dialects.fused.scalar_builder import Scalars, scalar_type
from mlirt.dialects.kernel.core import LoadOp, ParallelOp, ReturnOp, StoreOp, YieldOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import element_of, is_float8, is_unsigned
from mlirt.kernels.lib.builder.kernel_arguments import KernelArguments, Stride
from mlirt.kernels.lib.builder.run_values import Value, value_of

if TYPE_CHECKING:
    from mlirt.kernels.lib.tactics.lowering import Lowering

__all__ = ["Extent", "KernelBuilder", "Stride"]

# A size of the host program, or a value inside the kernel.
Extent: TypeAlias = "Dim | SSAValue"
# Numbers that formulas consist of, and the limits of int8; others tell layers apart.
_CODE_NUMBERS = frozenset({0.0, 0.5, 1.0, -1.0, 2.0, float("inf"), float("-inf"), -128.0, 127.0, 255.0})


class KernelBuilder(KernelArguments):
    """A kernel under construction; ops are put at the end of the innermost open loop."""

    def __init__(self, lowering: Lowering, family: str) -> None:
        super().__init__(lowering, family)
        self._region_constants: dict[Operation, Value] = {}

    # Ops.

    @property
    def body(self) -> Builder:
        """Appends to the innermost open loop."""
        return Builder(InsertPoint.at_end(self.block))

    def scalars(self, element: Attribute) -> Scalars:
        """Arithmetic on numbers of one element type, at the end of the innermost open loop."""
        return Scalars(self.block, element)

    def ready(self, value: SSAValue) -> Value:
        """A number as `arith` takes it: unsigned integers as signless ones, 8-bit floats as their bits."""
        if is_unsigned(value.type) or is_float8(value.type):
            return self.value(arith.BitcastOp(value, scalar_type(value.type)))
        return value_of(value)

    def typed(self, value: SSAValue, element: Attribute) -> Value:
        """A number that is ready for `arith` as the element of a tensor."""
        return value_of(value) if value.type == element else self.value(arith.BitcastOp(value, element))

    def inline(self, region: Region, arguments: Sequence[SSAValue], indices: Sequence[SSAValue]) -> list[SSAValue]:
        """Append a scalar region at a position of the iteration space; returns what it yields."""

        def index(op: Operation) -> Value:
            assert isinstance(op, IndexOp)
            return value_of(indices[op.dim.value.data])

        def size(op: Operation) -> Value:
            assert isinstance(op, SizeOp)
            return self.size(op.dimension())

        special = {IndexOp.name: index, SizeOp.name: size, arith.ConstantOp.name: self._region_constant}
        return copy_region(region, arguments, self.insert, special)

    def _region_constant(self, op: Operation) -> Value:
        """A constant of a scalar region: a number such as a scale is an argument, so that layers share the kernel."""
        assert isinstance(op, arith.ConstantOp)
        argument = self.number_argument(op)
        return self.value(op.clone()) if argument is None else argument

    def number_argument(self, op: arith.ConstantOp) -> Value | None:
        """The argument that a constant of a scalar region is; None for one that is part of the code."""
        value = op.value
        if not isinstance(value, FloatAttr) or op.result.type not in (f32, f64):
            return None
        number = value.value.data
        if number in _CODE_NUMBERS or ((number * 4).is_integer() and _is_exponent(op.result)):
            return None
        if op not in self._region_constants:
            self._region_constants[op] = self.scalar(number, op.result.type)
        return self._region_constants[op]

    def extent(self, extent: Extent) -> Value:
        return value_of(extent) if isinstance(extent, SSAValue) else self.size(extent)

    # Loops.

    @contextmanager
    def parallel(self, extents: Sequence[Extent]) -> Generator[list[Value]]:
        """Independent iterations over a box; gives one index per extent."""
        op = ParallelOp([self.extent(extent) for extent in extents])
        with self.inside(op.body.block):
            yield [value_of(one) for one in op.body.block.args]
            self.insert(YieldOp(operands=[[]]))
        self.insert(op)

    # Memory.

    def bits(self, value: SSAValue) -> Value:
        """As `buffer`, with unsigned integers as the signless ones that `arith` and the matrix units take."""
        return self.buffer(value, element=scalar_type(element_of(value.type)))

    def load(self, value: SSAValue, indices: Sequence[SSAValue]) -> Value:
        """One element of a tensor value."""
        return self.value(LoadOp(self.buffer(value), indices, self.strides(value)))

    def store(self, stored: SSAValue, value: SSAValue, indices: Sequence[SSAValue]) -> None:
        """Write one element of a tensor value."""
        self.insert(StoreOp(stored, self.buffer(value), indices, self.strides(value)))

    # The end.

    def finish(
        self,
        layer: Operation,
        grid: Sequence[Dim] | None = None,
        block: Sequence[int] | None = None,
        shared_bytes: int = 0,
    ) -> None:
        """Add the kernel to the module, unless an equal one is there, and launch it before `layer` under that op's
        name.
        """
        self.insert(ReturnOp())
        self.forget_names()
        self.name_arguments(layer)
        function = self.function
        function.properties["function_type"] = FunctionType.from_lists(
            [arg.type for arg in function.body.block.args], []
        )
        if block is not None:
            is_flat = all(size == 1 for size in block[1:])
            shape = IntegerAttr(block[0], i64) if is_flat else DenseArrayBase.from_list(i64, list(block))
            function.attributes["block_size"] = shape
        if shared_bytes:
            function.attributes["shared_bytes"] = IntegerAttr(shared_bytes, i64)
        self.lowering.launch(function, self._buffers, self._arguments, layer, grid)


def _is_exponent(number: SSAValue) -> bool:
    """Whether powers are all that a number is for. Squares, roots and their like are code: that is much faster."""
    uses = list(number.uses)
    return bool(uses) and all(isinstance(use.operation, math.PowFOp) and use.index == 1 for use in uses)
