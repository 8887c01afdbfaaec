"""Rounding of real numbers to scaled integers or 8-bit floats, and back."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, IntegerAttr, TensorType, i8
from xdsl.ir import Attribute
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirt.dialects.float8 import rounded
from mlirt.dialects.length_requirements import LengthRequirement, equal
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import (
    Tensor,
    dims,
    element_of,
    is_bool,
    is_float,
    is_float8,
    numpy_dtype,
    rank,
    with_element,
)
from mlirt.dialects.trt.operand_checks import check_axis, element_or, shape_text

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class QuantizationOp(TensorOp, ABC):
    """Scale and zero point are 0-D for the whole tensor, or 1-D along `axis`."""

    input = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero_point = opt_operand_def(TensorType)
    axis = opt_prop_def(IntegerAttr[I64])

    def length_requirements(self) -> Iterator[LengthRequirement]:
        if rank(self.scale.type) == 1 and self.axis is not None:
            (length,) = dims(self.scale.type)
            expected = dims(self.input.type)[self.axis.value.data]
            yield equal("C3", f"length of the scale of {self.name}", expected, length)
            if self.zero_point is not None:
                yield equal("C4", f"length of the zero point of {self.name}", length, dims(self.zero_point.type)[0])

    def check_scale(self) -> None:
        """Raise unless scale and zero point fit the input (C3, C4)."""
        found = rank(self.scale.type)
        require(
            found <= 1, f"C3: the scale of {self.name} has shape {shape_text(self.scale.type)}, expected rank 0 or 1"
        )
        if found == 1:
            axis = self.axis
            require(axis is not None, f"C3: {self.name} with a 1-D scale needs axis")
            assert axis is not None
            check_axis(self, "C3", axis.value.data, self.input.type)
        if self.zero_point is not None:
            require(
                rank(self.zero_point.type) == found,
                f"C4: the zero point of {self.name} has shape {shape_text(self.zero_point.type)}, "
                f"expected that of the scale, {shape_text(self.scale.type)}",
            )

    def along_axis(self, coefficient: Array) -> Array:
        """A scale or zero point in float64, laid along its axis of the input."""
        import numpy as np

        wide = coefficient.astype(np.float64)
        if self.axis is None or not coefficient.ndim:
            return wide
        return wide.reshape(-1, *[1] * (rank(self.input.type) - self.axis.value.data - 1))


def _is_integer(element: Attribute) -> bool:
    return not is_float(element) and not is_bool(element)


@irdl_op_definition
class QuantizeOp(QuantizationOp):
    """y = saturate(round(x / scale) + zero_point), half rounded to even; a missing zero point is 0
    (tensorrt-features.md#1.27).

    The result has the zero point's element type, without one any integer type or an 8-bit float. An 8-bit float is the
    one nearest to x / scale, the largest for what is beyond it.

    C1: input and scale are floating-point. C2: the result is integer, of the zero point's type, or an 8-bit float
    without a zero point. C3: the scale is 0-D,
    or 1-D with `axis` and the length of that axis. C4: the zero point has the scale's shape.

    Example: `%q = trt.quantize %x, %s : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xi8>`
    """

    name = "trt.quantize"

    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input `,` $scale (`,` $zero_point^)? attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        for label, operand in (("input", self.input), ("scale", self.scale)):
            element = element_of(operand.type)
            require(is_float(element), f"C1: the {label} of {self.name} needs floating-point numbers, not {element}")
        target = self._target()
        require(_is_integer(target), f"C2: {self.name} gives integers, not {target}")
        none = not is_float8(target) or self.zero_point is None
        require(none, f"C2: {self.name} to {target} has no zero point")
        if self.zero_point is not None:
            found = element_of(self.zero_point.type)
            require(found == target, f"C2: the zero point of {self.name} has type {found}, its result {target}")
        self.check_scale()

    def _target(self) -> Attribute:
        return element_or(self.output.type, i8 if self.zero_point is None else element_of(self.zero_point.type))

    def infer(self) -> Sequence[Tensor]:
        return [with_element(self.input.type, self._target())]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        x, scale, *zero = arrays
        target = numpy_dtype(self._target())
        # In single precision, as every target divides: a tie must stay a tie.
        precision = np.float64 if scale.dtype == np.float64 else np.float32
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = x.astype(precision) / self.along_axis(scale).astype(precision)
        if is_float8(self._target()):
            return [rounded(ratio)]
        limits, whole = np.iinfo(target), np.rint(ratio.astype(np.float64))
        shifted = whole + (self.along_axis(zero[0]) if zero else 0)
        return [np.asarray(np.clip(np.nan_to_num(shifted), limits.min, limits.max).astype(target))]


@irdl_op_definition
class DequantizeOp(QuantizationOp):
    """y = (x - zero_point) * scale, in the scale's element type; a missing zero point is 0 (tensorrt-features.md#1.8).

    C1: the input is integer, or an 8-bit float without a zero point. C2: the scale is floating-point, the zero point of
    the input's type. C3: the scale is 0-D, or 1-D with `axis` and the length of that axis. C4: the zero point has the
    scale's shape.

    Example: `%x = trt.dequantize %q, %s {axis = 0 : i64} : (tensor<2x3xi8>, tensor<2xf32>) -> tensor<2x3xf32>`
    """

    name = "trt.dequantize"

    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input `,` $scale (`,` $zero_point^)? attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        element, scale = element_of(self.input.type), element_of(self.scale.type)
        require(_is_integer(element), f"C1: the input of {self.name} needs integers, not {element}")
        require(is_float(scale), f"C2: the scale of {self.name} needs floating-point numbers, not {scale}")
        if self.zero_point is not None:
            found = element_of(self.zero_point.type)
            require(found == element, f"C2: the zero point of {self.name} has type {found}, its input {element}")
            require(not is_float8(element), f"C1: {self.name} of {element} has no zero point")
        self.check_scale()

    def infer(self) -> Sequence[Tensor]:
        return [with_element(self.input.type, element_of(self.scale.type))]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        q, scale, *zero = arrays
        wide = q.astype(np.float64) - (self.along_axis(zero[0]) if zero else 0)
        return [np.asarray((wide * self.along_axis(scale)).astype(scale.dtype))]
