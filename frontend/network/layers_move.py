"""Layers that put elements in other places: shuffle, slice, concatenation, padding, shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import element_of, is_float, rank
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.fill import FillOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.padding import PaddingOp
from mlirt.dialects.trt.shape import ShapeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import (
    BoolSetting,
    Deprecated2d,
    DimsSetting,
    EnumSetting,
    IntSetting,
    PermutationSetting,
)
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.layer_enums import LayerType, SampleMode

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor

_UNSET = -(1 << 31)


class IShuffleLayer(ILayer):
    """Transpose, reshape, transpose; input 1 may give the new shape (tensorrt-features.md#1.37a to 1.37c)."""

    OP, KIND, TYPE, INPUTS, SHAPE_INPUTS = ShuffleOp, "Shuffle", LayerType.SHUFFLE, 2, (1,)
    first_transpose = PermutationSetting("first_transpose")
    reshape_dims = DimsSetting("reshape_dims")
    second_transpose = PermutationSetting("second_transpose")
    zero_is_placeholder = BoolSetting(True, "zero_is_placeholder")

    def properties(self) -> dict[str, object]:
        found = super().properties()
        if self.num_inputs > 1 and self.get_input(1) is not None:
            found.pop("reshape_dims", None)
        return {name: self._order(value) if name.endswith("transpose") else value for name, value in found.items()}

    def _order(self, axes: object) -> object:
        """The axes that there are, of a permutation that orders as many as a tensor may have."""
        order, x = cast("list[int]", axes), self.get_input(0)
        count = len(order) if x is None else len(x.shape)
        tail = order[count:]
        return order[:count] if tail == list(range(count, len(order))) else order


class ISliceLayer(ILayer):
    """A part of a tensor; inputs 1 to 4 may give start, size, stride and the fill value (tensorrt-features.md#1.38a to
    1.38c).
    """

    OP, KIND, TYPE, INPUTS, SHAPE_INPUTS = SliceOp, "Slice", LayerType.SLICE, 5, (1, 2, 3)
    start = DimsSetting("start")
    shape = DimsSetting("size")
    stride = DimsSetting("stride")
    mode = EnumSetting(SampleMode.STRICT_BOUNDS, "mode")

    def properties(self) -> dict[str, object]:
        found = super().properties()
        for index, name in enumerate(("start", "size", "stride"), start=1):
            if self.get_input(index) is not None:
                found.pop(name, None)
        return found

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        stride = ir.maybe_input(3)
        if stride is None or ir.known_numbers(stride) is not None or self.mode is not SampleMode.STRICT_BOUNDS:
            return super().emit(ir)
        return [self._looked_up(ir, stride)]

    def _looked_up(self, ir: LayerEmitter, stride: SSAValue) -> SSAValue:
        """The part by the places of its elements along each axis, where the run computes the steps between them."""
        found, parts = ir.input(0), (ir.maybe_input(1), ir.maybe_input(2))
        for axis in range(rank(found.type)):
            step = _element(ir, stride, axis, keeps_axis=True)
            first = _element(ir, parts[0], axis) if parts[0] is not None else _known(ir, self.start, axis)
            if parts[1] is not None:
                places = ir.value(FillOp, _element(ir, parts[1], axis, keeps_axis=True), first, step, kind="linspace")
            else:
                count = list(self.shape or ())[axis]
                places = ir.value(FillOp, None, first, step, kind="linspace", output_dims=[count])
            found = ir.value(GatherOp, found, places, axis=axis)
        return found


def _element(ir: LayerEmitter, of: SSAValue, place: int, *, keeps_axis: bool = False) -> SSAValue:
    """One number of a list, as a scalar or as a list of one, in Int32."""
    index = ir.constant(np.array([place] if keeps_axis else place, np.int32))
    return ir.cast(ir.value(GatherOp, of, index, axis=0), DataType.INT32)


def _known(ir: LayerEmitter, of: Sequence[int] | None, place: int) -> SSAValue:
    return ir.constant(np.array(list(of or ())[place], np.int32))


class IConcatenationLayer(ILayer):
    """Tensors one behind the other along an axis, by default the third from the last (tensorrt-features.md#1.3)."""

    OP, KIND, TYPE = ConcatenationOp, "Concatenation", LayerType.CONCATENATION
    given_axis = IntSetting(_UNSET, "axis")

    @property
    def axis(self) -> int:
        if self.given_axis != _UNSET:
            return self.given_axis
        first = self.get_input(0)
        return max(0, len(first.shape) - 3) if first is not None else 0

    @axis.setter
    def axis(self, axis: int) -> None:
        self.given_axis = axis

    def set_input(self, index: int, tensor: ITensor) -> None:
        if index == self.num_inputs:
            self.record.inputs.append(None)
        super().set_input(index, tensor)

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        values = [value for value in ir.inputs() if value is not None]
        floats = {is_float(element_of(value.type)) for value in values}
        if len(floats) > 1:
            raise InvalidModelError(f"{self.name}: all inputs of a concatenation have one type")
        return ir.op(ConcatenationOp, [values], self.properties() | {"axis": self.axis})


class IPaddingLayer(ILayer):
    """Zeros around the two innermost dimensions, or cut from them (tensorrt-features.md#1.24)."""

    OP, KIND, TYPE = PaddingOp, "Padding", LayerType.PADDING
    pre_padding_nd = DimsSetting()
    post_padding_nd = DimsSetting()
    pre_padding = Deprecated2d("pre_padding_nd")
    post_padding = Deprecated2d("post_padding_nd")

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        x = ir.input(0)
        if rank(x.type) < 3:
            raise InvalidModelError(f"{self.name}: padding needs an input of at least 3 dimensions")
        outer = [0] * (rank(x.type) - 2)
        pads = [[*outer, *(pad or (0, 0))] for pad in (self.pre_padding_nd, self.post_padding_nd)]
        return ir.op(PaddingOp, [x, None], {"pre": pads[0], "post": pads[1]})


class IShapeLayer(ILayer):
    """The dimensions of a tensor as an Int32 tensor (tensorrt-features.md#1.36)."""

    OP, KIND, TYPE, INT32_OUTPUTS = ShapeOp, "Shape", LayerType.SHAPE, (0,)


class MoveMethods(Methods):
    """`add_shuffle`, `add_slice`, `add_concatenation`, `add_padding_nd`, `add_shape`."""

    def add_shuffle(self, input: ITensor) -> IShuffleLayer:
        return self.graph.add(IShuffleLayer, [input])

    def add_slice(
        self, input: ITensor, start: Sequence[int], shape: Sequence[int], stride: Sequence[int]
    ) -> ISliceLayer:
        return self.graph.add(ISliceLayer, [input], settings={"start": start, "shape": shape, "stride": stride})

    def add_concatenation(self, inputs: Sequence[ITensor]) -> IConcatenationLayer:
        return self.graph.add(IConcatenationLayer, list(inputs))

    def add_padding_nd(self, input: ITensor, pre_padding: Sequence[int], post_padding: Sequence[int]) -> IPaddingLayer:
        settings: dict[str, Any] = {"pre_padding_nd": Dims(pre_padding), "post_padding_nd": Dims(post_padding)}
        return self.graph.add(IPaddingLayer, [input], settings=settings)

    def add_padding(self, input: ITensor, pre_padding: Sequence[int], post_padding: Sequence[int]) -> IPaddingLayer:
        deprecated("add_padding_nd")
        return self.add_padding_nd(input, pre_padding, post_padding)

    def add_shape(self, input: ITensor) -> IShapeLayer:
        return self.graph.add(IShapeLayer, [input])
