"""Local response normalisation across channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, FloatAttr, IntegerAttr, TensorType
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, element_of, is_float, rank
from mlirt.dialects.trt.operand_checks import tensor_type

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class LrnOp(TensorOp):
    """y_c = x_c / (k + (alpha / window) * sum of x_j^2 over abs(j - c) <= (window - 1) / 2) ^ beta
    (tensorrt-features.md#1.21).

    The channels are axis 1, or axis 0 of a tensor of rank 3. Channels outside the tensor count as 0, and the window
    that divides alpha is always the whole one.

    C1: the element type is a floating-point type. C2: the rank is 3 or more. C3: the window is positive.

    Example: `%y = trt.lrn %x {window = 5 : i64, alpha = 1.0e-04 : f64, beta = 0.75 : f64, k = 1.0 : f64} :
    (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>`
    """

    name = "trt.lrn"

    input = operand_def(TensorType)
    window = prop_def(IntegerAttr[I64])
    alpha = prop_def(FloatAttr)
    beta = prop_def(FloatAttr)
    k = prop_def(FloatAttr)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    @property
    def channel_axis(self) -> int:
        return 0 if rank(self.input.type) == 3 else 1

    def check(self) -> None:
        element, found, window = element_of(self.input.type), rank(self.input.type), self.window.value.data
        require(is_float(element), f"C1: {self.name} needs floating-point numbers, not {element}")
        require(found >= 3, f"C2: the input of {self.name} has rank {found}, expected 3 or more")
        require(window > 0, f"C3: the window of {self.name} must be positive, but it is {window}")

    def infer(self) -> Sequence[Tensor]:
        return [tensor_type(self.input.type)]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        from mlirt.dialects.wide_arithmetic import narrow, widen

        (x,) = arrays
        axis, window = self.channel_axis, self.window.value.data
        wide = widen(x)
        edges = [(0, 0)] * x.ndim
        edges[axis] = ((window - 1) // 2, window // 2)
        squares = np.lib.stride_tricks.sliding_window_view(np.pad(wide**2, edges), window, axis).sum(-1)
        base = self.k.value.data + self.alpha.value.data / window * squares
        return [narrow(wide / base**self.beta.value.data, x.dtype)]
