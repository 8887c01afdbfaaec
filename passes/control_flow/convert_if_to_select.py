"""If-conversion: branches that cost less than deciding between them are both computed, and the result is selected."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.regions import Terminator, source_of_condition
from mlirt.dialects.tensor_types import element_count, rank
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.passes.control_flow.region_rewriting import control_ops, copy_before, replace
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.options import option

_CHEAP = (ActivationOp, ConstantOp, ElementwiseOp, IdentityOp, SelectOp, ShuffleOp, UnaryOp)
# A machine may stop at these.
_MAY_STOP = frozenset(
    {ElementwiseKind.DIV, ElementwiseKind.FLOOR_DIV, ElementwiseKind.MOD, ElementwiseKind.FMOD, ElementwiseKind.POW}
)


@dataclass(frozen=True)
class ConvertIfToSelectPass(ModulePass):
    """Compute both sides of a branch and select, where each has at most `max-ops` pointwise layers on few elements.

    What is left fuses into one launch, and no machine has to wait for the condition.

    Before:

        %y = scf.if %h -> (tensor<4xf32>) {
          %t = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
          scf.yield %t : tensor<4xf32>
        } else {
          scf.yield %x : tensor<4xf32>
        }

    After:

        %t = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
        %d = trt.shuffle %c {reshape_dims = #trt.dims<["1"]>} : (tensor<i1>) -> tensor<1xi1>
        %y = trt.select %d, %t, %x : (tensor<1xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "convert-if-to-select"

    max_ops: int = option(4, at_least=0)
    max_elements: int = option(4096, at_least=0)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in control_ops(op):
            if isinstance(inner, scf.IfOp) and self._is_cheap(inner):
                _select(inner, ctx)

    def _is_cheap(self, op: scf.IfOp) -> bool:
        return all(region.blocks and self._costs_little(region.block) for region in op.regions)

    def _costs_little(self, block: Block) -> bool:
        ops = [op for op in block.ops if not isinstance(op, Terminator)]
        return len(ops) <= self.max_ops and all(self._is_small(op) for op in ops)

    def _is_small(self, op: Operation) -> bool:
        if not isinstance(op, _CHEAP) or (isinstance(op, ElementwiseOp) and op.kind.data in _MAY_STOP):
            return False
        if isinstance(op, ShuffleOp) and op.shape is not None:
            return False
        counts = [element_count(result.type) for result in op.results]
        return all(isinstance(count, int) and count <= self.max_elements for count in counts)


def _select(op: scf.IfOp, ctx: Context) -> None:
    sides = [[value.type for value in _yielded(region.block)] for region in op.regions]
    types = [result.type for result in op.results]
    try:
        condition = source_of_condition(op.cond)
    except ValueError:
        return
    if any(side != types for side in sides):
        return
    then, otherwise = (copy_before(region.block, [], op) for region in op.regions)
    made = LayerBuilder.in_front_of(op, ctx)
    results = [_chosen(made, condition, *pair) for pair in zip(then, otherwise, strict=True)]
    replace(op, results)


def _yielded(block: Block) -> list[SSAValue]:
    return [] if block.last_op is None else list(block.last_op.operands)


def _chosen(made: LayerBuilder, condition: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
    if then is otherwise:
        return then
    places = rank(then.type)
    holds = made.reshaped(condition, [1] * places) if places else condition
    return made.layer(SelectOp, [holds, then, otherwise])
