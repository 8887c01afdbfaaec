"""Layers that look elements up: gather, scatter, one-hot, the places of what is not zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import rank
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.one_hot import OneHotOp
from mlirt.dialects.trt.scatter import ScatterOp
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import EnumSetting, IntSetting
from mlirt.tensorrt.layer_enums import GatherMode, LayerType, ScatterMode

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor


class IGatherLayer(ILayer):
    """Elements or slices by their indices; an index that is out of range gives zero (tensorrt-features.md#1.13a to
    1.13d).
    """

    OP, KIND, TYPE, INPUTS = GatherOp, "Gather", LayerType.GATHER, 2
    axis = IntSetting(0, "axis")
    num_elementwise_dims = IntSetting(0, "num_elementwise_dims")
    mode = EnumSetting(GatherMode.DEFAULT, "mode")


class IScatterLayer(ILayer):
    """A copy of a tensor with elements put in other places (tensorrt-features.md#1.34a, 1.34b)."""

    OP, KIND, TYPE, INPUTS = ScatterOp, "Scatter", LayerType.SCATTER, 3
    axis = IntSetting(0, "axis")
    mode = EnumSetting(ScatterMode.ELEMENT, "mode")


class IOneHotLayer(ILayer):
    """One of two values along a new axis, which counts from the last one of the result below 0
    (tensorrt-features.md#1.46).
    """

    OP, KIND, TYPE, INPUTS, SHAPE_INPUTS = OneHotOp, "OneHot", LayerType.ONE_HOT, 3, (2,)
    axis = IntSetting(0, "axis")

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        place = self.axis + (rank(ir.input(0).type) + 1 if self.axis < 0 else 0)
        return ir.op(OneHotOp, [*ir.inputs()[:2], ir.maybe_scalar(2)], self.properties() | {"axis": place})


class INonZeroLayer(ILayer):
    """The places of all elements that are not zero (tensorrt-features.md#1.45)."""

    KIND, TYPE, INT32_OUTPUTS = "NonZero", LayerType.NON_ZERO, (0,)

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        return [ir.onnx("NonZero", [ir.input(0)], {})]


class IndexMethods(Methods):
    """`add_gather`, `add_scatter`, `add_one_hot`, `add_non_zero`."""

    def add_gather(self, input: ITensor, indices: ITensor, axis: int) -> IGatherLayer:
        return self.graph.add(IGatherLayer, [input, indices], settings={"axis": axis})

    def add_gather_v2(self, input: ITensor, indices: ITensor, mode: GatherMode) -> IGatherLayer:
        return self.graph.add(IGatherLayer, [input, indices], settings={"mode": mode})

    def add_scatter(self, data: ITensor, indices: ITensor, updates: ITensor, mode: ScatterMode) -> IScatterLayer:
        return self.graph.add(IScatterLayer, [data, indices, updates], settings={"mode": mode})

    def add_one_hot(self, indices: ITensor, values: ITensor, depth: ITensor, axis: int) -> IOneHotLayer:
        return self.graph.add(IOneHotLayer, [indices, values, depth], settings={"axis": axis})

    def add_non_zero(self, input: ITensor) -> INonZeroLayer:
        return self.graph.add(INonZeroLayer, [input])
