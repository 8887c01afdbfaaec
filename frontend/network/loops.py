"""Loops: the layers at their borders; what is inside follows from the data flow (tensorrt-features.md#7.1 to 7.10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import SSAValue

from mlirt.dialects.trt.loop import IteratorOp, LoopOutputOp, RecurrenceNextOp, RecurrenceOp, TripLimitOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import BoolSetting, EnumSetting, IntSetting, Setting
from mlirt.tensorrt.layer_enums import LayerType, LoopOutput, TripLimit

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.graph import NetworkGraph
    from mlirt.frontend.network.tensor import ITensor


class ILoop:
    """A loop; its layers are added by its methods."""

    def __init__(self, graph: NetworkGraph, symbol: str) -> None:
        self.graph = graph
        self.symbol = symbol
        self.name = symbol

    def add_trip_limit(self, tensor: ITensor, kind: TripLimit) -> ITripLimitLayer:
        """End the loop after a trip count, or before an iteration in which a condition is false.

        None, with an error in the log, for a second limit of a kind.
        """
        for record in self.graph.records:
            if record.settings.get("loop") is self and record.settings.get("kind") is kind:
                return self.graph.refused("addTripLimit", f"{self.name}: the loop has a trip limit {kind.name} already")
        return self.graph.add(ITripLimitLayer, [tensor], outputs=0, settings={"loop": self, "kind": kind})

    def add_iterator(self, tensor: ITensor, axis: int = 0, reverse: bool = False) -> IIteratorLayer:
        """In each iteration the next slice of a tensor."""
        return self.graph.add(IIteratorLayer, [tensor], settings={"loop": self, "axis": axis, "reverse": reverse})

    def add_recurrence(self, initial_value: ITensor) -> IRecurrenceLayer:
        """A value that an iteration hands on to the next one: `set_input(1, ..)` says what."""
        return self.graph.add(IRecurrenceLayer, [initial_value], settings={"loop": self})

    def add_loop_output(self, tensor: ITensor, kind: LoopOutput, axis: int = 0) -> ILoopOutputLayer:
        """What is seen of the loop outside; `set_input(1, ..)` gives the length of a CONCATENATE or REVERSE."""
        return self.graph.add(ILoopOutputLayer, [tensor], settings={"loop": self, "kind": kind, "axis": axis})


class ILoopBoundaryLayer(ILayer):
    """A layer at the border of a loop."""

    loop = Setting["ILoop | None"](None)

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        assert self.OP is not None
        properties = self.properties() | {"loop": self.symbol()}
        return ir.op(self.OP, ir.inputs(), properties, len(self.record.outputs))

    def symbol(self) -> SymbolRefAttr:
        """What ties the layers of the loop together."""
        assert self.loop is not None
        return SymbolRefAttr(self.loop.symbol)


class ITripLimitLayer(ILoopBoundaryLayer):
    """How long a loop goes on."""

    OP, KIND, TYPE = TripLimitOp, "TripLimit", LayerType.TRIP_LIMIT
    kind = EnumSetting(TripLimit.COUNT, "kind")


class IIteratorLayer(ILoopBoundaryLayer):
    """The slices of a tensor, one an iteration."""

    OP, KIND, TYPE = IteratorOp, "Iterator", LayerType.ITERATOR
    axis = IntSetting(0, "axis")
    reverse = BoolSetting(False, "reverse")


class IRecurrenceLayer(ILoopBoundaryLayer):
    """The initial value, input 0, in the first iteration; then what input 1 was in the iteration before."""

    OP, KIND, TYPE, INPUTS, EARLY_INPUTS = RecurrenceOp, "Recurrence", LayerType.RECURRENCE, 2, 1

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        return ir.op(RecurrenceOp, [ir.input(0)], {"loop": self.symbol()})

    def emit_late(self, ir: LayerEmitter) -> None:
        if self.get_input(1) is None:
            raise InvalidModelError(
                f"{self.name}: a recurrence needs its second input: its value in the next iteration"
            )
        ir.op(RecurrenceNextOp, [ir.emission.values[self.get_output(0)], ir.input(1)], results=0)


class ILoopOutputLayer(ILoopBoundaryLayer):
    """The last value of a recurrence, or the values of all iterations along a new axis."""

    OP, KIND, TYPE, INPUTS, SHAPE_INPUTS = LoopOutputOp, "LoopOutput", LayerType.LOOP_OUTPUT, 2, (1,)
    kind = EnumSetting(LoopOutput.LAST_VALUE, "kind")
    axis = IntSetting(0, "axis")


class LoopMethods(Methods):
    """`add_loop`."""

    def add_loop(self) -> ILoop:
        self.graph.boundaries += 1
        return ILoop(self.graph, f"loop_{self.graph.boundaries}")
