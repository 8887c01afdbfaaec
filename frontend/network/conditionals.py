"""Conditionals: the layers at their borders; what is inside follows from the data flow (tensorrt-features.md#8.1 to
8.10).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.conditional import ConditionOp, IfInputOp, IfOutputOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import Setting
from mlirt.tensorrt.layer_enums import LayerType

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.graph import NetworkGraph
    from mlirt.frontend.network.tensor import ITensor


class IIfConditional:
    """A conditional; its layers are added by its methods."""

    def __init__(self, graph: NetworkGraph, symbol: str) -> None:
        self.graph = graph
        self.symbol = symbol
        self.name = symbol
        self.has_condition = False
        self.allows_different_shapes = False
        """Whether its outputs may have one shape in one branch and another in the other (mlirt's own,
        tensorrt-features.md#8.3).
        """

    def set_condition(self, condition: ITensor) -> IConditionLayer:
        """The 0-D Bool tensor that decides; None, with an error in the log, where there is one already."""
        if self.has_condition:
            return self.graph.refused("setCondition", f"{self.name}: the conditional has a condition already")
        self.has_condition = True
        return self.graph.add(IConditionLayer, [condition], outputs=0, settings={"conditional": self})

    def add_input(self, input: ITensor) -> IIfConditionalInputLayer:
        """A tensor as the branches see it: what depends on it is computed only where its branch is taken."""
        return self.graph.add(IIfConditionalInputLayer, [input], settings={"conditional": self})

    def add_output(self, true_subgraph_output: ITensor, false_subgraph_output: ITensor) -> IIfConditionalOutputLayer:
        """The first where the condition holds, else the second."""
        branches = [true_subgraph_output, false_subgraph_output]
        return self.graph.add(IIfConditionalOutputLayer, branches, settings={"conditional": self})


class IIfConditionalBoundaryLayer(ILayer):
    """A layer at the border of a conditional."""

    conditional = Setting["IIfConditional | None"](None)

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        assert self.OP is not None
        assert self.conditional is not None
        symbol = SymbolRefAttr(self.conditional.symbol)
        return ir.op(self.OP, ir.inputs(), {"conditional": symbol}, len(self.record.outputs))


class IConditionLayer(IIfConditionalBoundaryLayer):
    """What decides."""

    OP, KIND, TYPE = ConditionOp, "Condition", LayerType.CONDITION


class IIfConditionalInputLayer(IIfConditionalBoundaryLayer):
    """A tensor that enters."""

    OP, KIND, TYPE = IfInputOp, "Input (if)", LayerType.CONDITIONAL_INPUT


class IIfConditionalOutputLayer(IIfConditionalBoundaryLayer):
    """A tensor that leaves."""

    OP, KIND, TYPE, INPUTS = IfOutputOp, "Output (if)", LayerType.CONDITIONAL_OUTPUT, 2

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        branches = [dims(ir.input(index).type) for index in (0, 1)]
        assert self.conditional is not None
        if branches[0] != branches[1] and not self.conditional.allows_different_shapes:
            shapes = " and ".join(f"({', '.join(map(str, shape))})" for shape in branches)
            raise InvalidModelError(
                f"{self.name}: the branches give the shapes {shapes}, not the same one; "
                "conditional.allows_different_shapes = True permits that"
            )
        return super().emit(ir)


class ConditionalMethods(Methods):
    """`add_if_conditional`."""

    def add_if_conditional(self) -> IIfConditional:
        self.graph.boundaries += 1
        return IIfConditional(self.graph, f"conditional_{self.graph.boundaries}")
