"""Affine scaling with an optional power, per channel, per tensor or per element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import auto
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, IntegerAttr, TensorType, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.length_requirements import LengthRequirement, equal
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, rank
from mlirt.dialects.trt.operand_checks import check_axis, numbers, same_elements, tensor_type

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class ScaleMode(StrEnum):
    UNIFORM = auto()
    CHANNEL = auto()
    ELEMENTWISE = auto()


@irdl_attr_definition
class ScaleModeAttr(EnumAttribute[ScaleMode], SpacedOpaqueSyntaxAttribute):
    name = "trt.scale_mode"


@irdl_op_definition
class ScaleOp(TensorOp):
    """y = (x * scale + shift) ** power; an absent shift is 0, scale and power are 1 (tensorrt-features.md#1.33).

    In mode `uniform` the coefficients are 0-D; `channel`: 1-D along `channel_axis`; `elementwise`: they have the
    input's dimensions from `channel_axis` on.

    C1: all operands have one element type, not boolean. C2: channel_axis is an axis of the input. C3: the coefficients
    have the shape that the mode asks for.

    Example: `%y = trt.scale %x shift(%b : tensor<3xf32>) scale(%a : tensor<3xf32>) : (tensor<1x3x4x4xf32>) ->
    tensor<1x3x4x4xf32>`
    """

    name = "trt.scale"

    input = operand_def(TensorType)
    shift = opt_operand_def(TensorType)
    scale = opt_operand_def(TensorType)
    power = opt_operand_def(TensorType)
    mode = prop_def(ScaleModeAttr, default_value=ScaleModeAttr(ScaleMode.CHANNEL))
    channel_axis = prop_def(IntegerAttr[I64], default_value=IntegerAttr(1, i64))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(), AttrSizedOperandSegments(as_property=True))
    assembly_format = (
        "$input (`shift` `(` $shift^ `:` type($shift) `)`)? (`scale` `(` $scale^ `:` type($scale) `)`)?"
        " (`power` `(` $power^ `:` type($power) `)`)? attr-dict `:` functional-type($input, $output)"
    )

    def coefficient_dims(self) -> tuple[Dim, ...]:
        """The dimensions that shift, scale and power have in this mode."""
        if self.mode.data is ScaleMode.UNIFORM:
            return ()
        tail = dims(self.input.type)[self.channel_axis.value.data :]
        return tail[:1] if self.mode.data is ScaleMode.CHANNEL else tail

    def check(self) -> None:
        same_elements(self, "C1")
        numbers(self, "C1", self.input.type)
        if self.mode.data is not ScaleMode.UNIFORM:
            check_axis(self, "C2", self.channel_axis.value.data, self.input.type, "channel_axis")
        expected = self.coefficient_dims()
        for label, operand in (("shift", self.shift), ("scale", self.scale), ("power", self.power)):
            if operand is None:
                continue
            found = dims(operand.type)
            require(
                len(found) == len(expected),
                f"C3: {label} of {self.name} is {operand.type}, mode {self.mode.data} needs rank {len(expected)}",
            )

    def length_requirements(self) -> Iterator[LengthRequirement]:
        for label, operand in (("shift", self.shift), ("scale", self.scale), ("power", self.power)):
            if operand is not None:
                for expected, found in zip(self.coefficient_dims(), dims(operand.type), strict=True):
                    yield equal("C3", f"{label} of {self.name}", expected, found)

    def infer(self) -> Sequence[Tensor]:
        return [tensor_type(self.input.type)]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        from mlirt.dialects.wide_arithmetic import narrow, widen

        x, *given = arrays
        coefficients = iter(given)
        y = widen(x)
        after = rank(self.input.type) - self.channel_axis.value.data - 1 if self.mode.data is ScaleMode.CHANNEL else 0
        shift, scale, power = (
            None if operand is None else widen(next(coefficients)) for operand in (self.shift, self.scale, self.power)
        )
        for combine, coefficient in ((np.multiply, scale), (np.add, shift), (np.power, power)):
            if coefficient is not None:
                y = combine(y, coefficient.reshape((*coefficient.shape, *[1] * after)))
        return [narrow(y, x.dtype)]
