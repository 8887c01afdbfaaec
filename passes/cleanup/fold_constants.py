"""Constant folding: computes at build time what only depends on weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.traits import Pure

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.context import weights_of
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import byte_width, element_count, element_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.packed_weights import DequantizeBlocksOp
from mlirt.dialects.trt.plugin import PluginOp
from mlirt.dialects.trt.quantize import DequantizeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.errors import MlirtError
from mlirt.passes.cleanup.rewriting import blocks, insert_before, replace
from mlirt.passes.options import option

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class FoldConstantsPass(ModulePass):
    """Replace layers whose operands are constants by constants, through the layers' own `reference`.

    A result of more than `max-bytes` that is also more than `max-growth` times as large as its operands stays a layer,
    so that a plan does not swell by tensors that are quickly made. Dequantised constants stay, as layers that compute
    with integers take both the integers and the scale; with `scales` they become constants too, but with `packed` not
    those of blocks that only matrix products read, by way of casts and shuffles: a run makes them. Plugins are not
    called.

    Before:

        %c = trt.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
        %y = trt.unary neg %c : (tensor<2xf32>) -> tensor<2xf32>

    After:

        %y = trt.constant {value = dense<[-1.0, -2.0]> : tensor<2xf32>} : tensor<2xf32>
    """

    name = "fold-constants"

    max_bytes: int = option(1 << 22, at_least=0)
    max_growth: int = option(4, at_least=0)
    scales: bool = False
    packed: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in blocks(op):
            for layer in list(block.ops):
                if isinstance(layer, TensorOp) and not self._stays(layer) and _is_known(layer):
                    self._fold(layer, ctx)

    def _stays(self, layer: TensorOp) -> bool:
        if isinstance(layer, ConstantOp | PluginOp):
            return True
        if isinstance(layer, DequantizeBlocksOp):
            return not self.scales or (self.packed and _is_for_products(layer))
        return isinstance(layer, DequantizeOp) and not self.scales

    def _fold(self, layer: TensorOp, ctx: Context) -> None:
        if not self._pays(layer):
            return
        arrays = [array_of(operand, ctx) for operand in layer.operands]
        try:
            results = layer.reference(*(array for array in arrays if array is not None))
        except (MlirtError, ArithmeticError, ValueError):  # the run reports what is wrong with the layer
            return
        constants = [_constant(array, ctx, layer) for array in results]
        replace(layer, *(insert_before(layer, constant) for constant in constants))

    def _pays(self, layer: TensorOp) -> bool:
        if isinstance(layer, DequantizeBlocksOp):
            return True  # the numbers of weights, which no run shall make again
        before = sum(_bytes(operand.type) for operand in layer.operands)
        after = sum(_bytes(result.type) for result in layer.results)
        return after <= max(self.max_bytes, self.max_growth * before)


def _is_known(layer: TensorOp) -> bool:
    is_layer = layer.dialect_name() == "trt"  # the inputs of a check are to be computed with
    return is_layer and layer.has_trait(Pure) and all(isinstance(value.owner, ConstantOp) for value in layer.operands)


def _is_for_products(layer: Operation) -> bool:
    uses = [use.operation for result in layer.results for use in result.uses]
    return all(
        isinstance(user, MatrixMultiplyOp) or (isinstance(user, IdentityOp | ShuffleOp) and _is_for_products(user))
        for user in uses
    )


def _bytes(of: Attribute) -> int:
    """Bytes of a tensor; 0 where only the run knows."""
    count = element_count(of)
    return count * byte_width(element_of(of)) if isinstance(count, int) else 0


def _constant(array: Array, ctx: Context, layer: TensorOp) -> ConstantOp:
    import numpy as np

    contiguous = np.ascontiguousarray(array).reshape(array.shape)  # which alone would add a dimension to a number
    return ConstantOp.from_array(contiguous, weights_of(ctx), name_of(layer))
