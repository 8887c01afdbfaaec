"""Strided windows of a tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.integer_list import integers
from mlirt.dialects.length_requirements import LengthRequirement, at_least
from mlirt.dialects.slicing import SliceMode, slice_text
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, rank, with_dims
from mlirt.dialects.trt.shape_values import shape_operand

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_attr_definition
class SliceModeAttr(EnumAttribute[SliceMode], SpacedOpaqueSyntaxAttribute):
    name = "trt.slice_mode"


@irdl_op_definition
class SliceOp(TensorOp):
    """y[j..] = x[start + j * stride ..] for j < size, per axis; strides may be negative or 0
    (tensorrt-features.md#1.38a-1.38c).

    Start, size and stride are properties, or 1-D integer operands for what only the run knows. Positions outside the
    input: `strict_bounds` forbids them, `wrap` counts modulo the length, `clamp` takes the nearest edge, `reflect`
    mirrors at the edge without repeating it, `fill` gives the 0-D operand `fill`, or 0.

    C1: each of start, size and stride is given once, by property or operand. C2: each has one entry per axis of the
    input. C3: an operand is a 1-D integer tensor of constant length. C4: sizes are not negative. C5: strict bounds are
    kept, where they are known. C6: fill has the input's element type and rank 0.

    Example: `%y = trt.slice %x {start = #trt.dims<["0", "1"]>, size = #trt.dims<["2", "2"]>, stride = array<i64: 1,
    2>} : (tensor<2x5xf32>) -> tensor<2x2xf32>`
    """

    name = "trt.slice"

    input = operand_def(TensorType)
    dynamic_start = opt_operand_def(TensorType)
    dynamic_size = opt_operand_def(TensorType)
    dynamic_stride = opt_operand_def(TensorType)
    fill = opt_operand_def(TensorType)
    start = opt_prop_def(DimsAttr)
    size = opt_prop_def(DimsAttr)
    stride = opt_prop_def(DenseArrayBase.constr(i64))
    mode = prop_def(SliceModeAttr, default_value=SliceModeAttr(SliceMode.STRICT_BOUNDS))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(), AttrSizedOperandSegments(as_property=True))
    assembly_format = (
        "$input (`start` `(` $dynamic_start^ `:` type($dynamic_start) `)`)?"
        " (`size` `(` $dynamic_size^ `:` type($dynamic_size) `)`)?"
        " (`stride` `(` $dynamic_stride^ `:` type($dynamic_stride) `)`)? (`fill` `(` $fill^ `:` type($fill) `)`)?"
        " attr-dict `:` functional-type($input, $output)"
    )

    def starts(self) -> tuple[Dim, ...]:
        """The first position on each axis, `?` where only the run knows it."""
        return self._lengths("start", self.dynamic_start, None if self.start is None else self.start.dims())

    def sizes(self) -> tuple[Dim, ...]:
        """The length of each axis of the result."""
        return self._lengths("size", self.dynamic_size, None if self.size is None else self.size.dims())

    def strides(self) -> tuple[Dim, ...]:
        """The distance between two positions on each axis."""
        return self._lengths("stride", self.dynamic_stride, None if self.stride is None else integers(self.stride))

    def _lengths(self, label: str, operand: SSAValue | None, written: tuple[Dim, ...] | None) -> tuple[Dim, ...]:
        if operand is not None and written is None:
            found = shape_operand(self, "C3", operand, label)
        else:
            require(
                operand is None and written is not None,
                f"C1: {self.name} needs {label} either as property or as operand",
            )
            assert written is not None
            found = written
        expected = rank(self.input.type)
        require(
            len(found) == expected,
            f"C2: {label} of {self.name} has {len(found)} entries, its input has rank {expected}",
        )
        return found

    def check(self) -> None:
        for entries in (self.starts, self.sizes, self.strides):
            entries()
        if self.fill is not None:
            fits = element_of(self.fill.type) == element_of(self.input.type) and rank(self.fill.type) == 0
            require(
                fits, f"C6: fill of {self.name} is {self.fill.type}, expected a scalar of {element_of(self.input.type)}"
            )

    def length_requirements(self) -> Iterator[LengthRequirement]:
        entries = zip(dims(self.input.type), self.starts(), self.sizes(), self.strides(), strict=True)
        for axis, (length, start, size, stride) in enumerate(entries):
            yield at_least("C4", f"{self.name} has a negative size: [{{left}}] on axis {axis}", size, 0)
            mode = self.mode.data
            if mode is SliceMode.STRICT_BOUNDS:
                yield from self._inside(length, start, size, stride)
            elif mode is not SliceMode.FILL:
                yield at_least("C7", f"{self.name} has nothing to {mode} on axis {axis}", length, 1, where=size)

    def _inside(self, length: Dim, start: Dim, size: Dim, stride: Dim) -> Iterator[LengthRequirement]:
        """The first and the last position lie inside of an axis; a slice of size 0 reads nothing."""
        what = f"{self.name}: {slice_text([length], [start], [size], [stride])}"
        last = start + (size - 1) * stride
        lows, highs = {start, last}, {start, last}
        if isinstance(stride, int) and stride:
            lows, highs = ({start}, {last}) if stride > 0 else ({last}, {start})
        for low in sorted(lows, key=str):
            yield at_least("C5", f"{what} It reads at {{left}}.", low, 0, where=size)
        for high in sorted(highs, key=str):
            yield at_least("C5", f"{what} It needs a length of {{right}}, not {{left}}.", length, high + 1, where=size)

    def infer(self) -> Sequence[Tensor]:
        return [with_dims(self.input.type, self.sizes())]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from mlirt.dialects.slicing import read_slice
        from mlirt.dialects.symbol_values import resolve

        x, *given = arrays
        operands = iter(given)

        def actual(operand: SSAValue | None, written: Sequence[Dim]) -> tuple[int, ...]:
            if operand is not None:
                return tuple(int(value) for value in next(operands))
            return resolve(self, written, arrays)

        start = actual(self.dynamic_start, self.start.dims() if self.start else ())
        size = actual(self.dynamic_size, self.size.dims() if self.size else ())
        stride = actual(self.dynamic_stride, integers(self.stride) if self.stride else ())
        return [read_slice(x, start, size, stride, self.mode.data, next(operands, None))]
