"""Puts layers in front of the op that they replace: arithmetic on what bytes stand for, and rounding back to int8."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.tensor_types import numpy_dtype, rank
from mlirt.dialects.trt.multiply_add import MultiplyAddOp
from mlirt.dialects.trt.quantize import QuantizeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.quantization.quantized_values import Bytes


class Int8Layers(LayerBuilder):
    """A builder of layers that compute with bytes."""

    def number_like(self, value: float, like: SSAValue, element: Attribute = f32) -> SSAValue:
        """One number that broadcasts to `like`."""
        import numpy as np

        return self.constant(np.full((1,) * rank(like.type), value, numpy_dtype(element)))

    def moved(self, operand: Bytes) -> SSAValue:
        """Bytes in the order and shape of the tensor that stands for them."""
        value = operand.value
        for move in operand.moves:
            value = self.layer(ShuffleOp, [value, None], move.properties)
        return value

    def multiply_add(self, lhs: SSAValue, rhs: SSAValue, addend: SSAValue) -> SSAValue:
        return self.layer(MultiplyAddOp, [lhs, rhs, addend])

    def rounded(self, value: SSAValue, replaced: QuantizeOp, *, with_zero: bool = False) -> SSAValue:
        """A value, rounded to the type of the quantised tensor whose place it takes.

        The zero point is added behind the rounding where `with_zero` says so, else it is in `value` already.
        """
        import numpy as np

        operands = [value, self.constant(np.array(1, np.float32)), replaced.zero_point if with_zero else None]
        return self.value(QuantizeOp.build(operands=operands, result_types=[replaced.output.type]))
