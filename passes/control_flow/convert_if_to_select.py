"""If-conversion: branches that cost less than deciding between them are both computed, and the result is selected."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.regions import Terminator, source_of_condition
from mlirt.dialects.tensor_types import element_count, rank
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.passes.control_flow.region_rewriting import copy_before
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.options import option
from mlirt.passes.rules import Outcome, RulePass, op, rule

_CHEAP = (ActivationOp, ConstantOp, ElementwiseOp, IdentityOp, SelectOp, ShuffleOp, UnaryOp)
# A machine may stop at these.
_MAY_STOP = frozenset(
    {ElementwiseKind.DIV, ElementwiseKind.FLOOR_DIV, ElementwiseKind.MOD, ElementwiseKind.FMOD, ElementwiseKind.POW}
)


@dataclass(frozen=True)
class ConvertIfToSelectPass(RulePass):
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

    @rule(op(scf.IfOp).named("branch"))
    def select(self, ctx: Context, branch: scf.IfOp) -> Outcome:
        if not self._is_cheap(branch):
            return "its sides are more than a few small layers"
        types = [result.type for result in branch.results]
        try:
            condition = source_of_condition(branch.cond)
        except ValueError:
            return None
        if any([value.type for value in _yielded(region.block)] != types for region in branch.regions):
            return "its sides have results of other dimensions"
        then, otherwise = (copy_before(region.block, [], branch) for region in branch.regions)
        made = LayerBuilder.in_front_of(branch, ctx)
        return [_chosen(made, condition, *pair) for pair in zip(then, otherwise, strict=True)]

    def _is_cheap(self, branch: scf.IfOp) -> bool:
        return all(region.blocks and self._costs_little(region.block) for region in branch.regions)

    def _costs_little(self, block: Block) -> bool:
        layers = [one for one in block.ops if not isinstance(one, Terminator)]
        return len(layers) <= self.max_ops and all(map(self._is_small, layers))

    def _is_small(self, layer: Operation) -> bool:
        if not isinstance(layer, _CHEAP) or (isinstance(layer, ElementwiseOp) and layer.kind.data in _MAY_STOP):
            return False
        if isinstance(layer, ShuffleOp) and layer.shape is not None:
            return False
        counts = [element_count(result.type) for result in layer.results]
        return all(isinstance(count, int) and count <= self.max_elements for count in counts)


def _yielded(block: Block) -> list[SSAValue]:
    return [] if block.last_op is None else list(block.last_op.operands)


def _chosen(made: LayerBuilder, condition: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
    if then is otherwise:
        return then
    places = rank(then.type)
    holds = made.reshaped(condition, [1] * places) if places else condition
    return made.layer(SelectOp, [holds, then, otherwise])
