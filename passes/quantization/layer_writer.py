"""Writes layers in front of the op that they replace, with its name and location."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.context import weights_of
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import numpy_dtype, rank
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseKindAttr, ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.multiply_add import MultiplyAddOp
from mlirt.dialects.trt.quantize import QuantizeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.quantization.quantized_values import Bytes

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class LayerWriter:
    """Layers in front of `at`; they bear the location of `named`."""

    def __init__(self, ctx: Context, at: Operation, named: Operation) -> None:
        self.ctx, self.at, self.named = ctx, at, named

    def insert(self, op: Operation) -> SSAValue:
        block = self.at.parent
        assert block is not None
        op.location = self.named.location
        block.insert_op_before(op, self.at)
        return op.results[0]

    def layer(
        self,
        kind: type[TensorOp],
        operands: Sequence[SSAValue | None],
        properties: Mapping[str, Attribute] | None = None,
    ) -> SSAValue:
        return self.insert(kind.build_inferred(operands, properties))

    def constant(self, array: Array) -> SSAValue:
        return self.insert(ConstantOp.from_array(array, weights_of(self.ctx), name_of(self.named)))

    def number(self, value: float, like: SSAValue, element: Attribute = f32) -> SSAValue:
        """One number that broadcasts to `like`."""
        import numpy as np

        return self.constant(np.full((1,) * rank(like.type), value, numpy_dtype(element)))

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        return self.insert(IdentityOp.cast(value, element))

    def moved(self, operand: Bytes) -> SSAValue:
        """Bytes in the order and shape of the tensor that stands for them."""
        value = operand.value
        for move in operand.moves:
            value = self.layer(ShuffleOp, [value, None], move.properties)
        return value

    def binary(self, kind: ElementwiseKind, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self.layer(ElementwiseOp, [lhs, rhs], {"kind": ElementwiseKindAttr(kind)})

    def multiply_add(self, lhs: SSAValue, rhs: SSAValue, addend: SSAValue) -> SSAValue:
        return self.layer(MultiplyAddOp, [lhs, rhs, addend])

    def rounded(self, value: SSAValue, replaced: QuantizeOp, *, with_zero: bool = False) -> None:
        """Put `value`, rounded to the type of a quantised tensor, in the place of that.

        The zero point is added behind the rounding where `with_zero` says so, else it is in `value` already.
        """
        import numpy as np

        operands = [value, self.constant(np.array(1, np.float32)), replaced.zero_point if with_zero else None]
        new = QuantizeOp.build(operands=operands, result_types=[replaced.output.type])
        self.insert(new).name_hint = replaced.output.name_hint
        replaced.output.replace_all_uses_with(new.output)
        replaced.detach()
        replaced.erase()
