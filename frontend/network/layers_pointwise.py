"""Layers that compute each element for itself: activation, unary, elementwise, scale, select, conversion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import dims, element_of, is_bool, is_float
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.parametric_relu import ParametricReluOp
from mlirt.dialects.trt.scale import ScaleOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.errors import InvalidModelError, UnsupportedError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import EnumSetting, FloatSetting, IntSetting, WeightsSetting
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.layer_enums import ActivationType, ElementWiseOperation, LayerType, ScaleMode, UnaryOperation

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor
    from mlirt.tensorrt.weights import Array, Weights

_LOGIC = (ElementWiseOperation.AND, ElementWiseOperation.OR, ElementWiseOperation.XOR)


class IActivationLayer(ILayer):
    """A curve (tensorrt-features.md#1.1a, 1.1b)."""

    OP, KIND, TYPE = ActivationOp, "Activation", LayerType.ACTIVATION
    type = EnumSetting(ActivationType.RELU, "kind")  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]  (TensorRT's name)
    alpha = FloatSetting(0.0, "alpha")
    beta = FloatSetting(0.0, "beta")


class IUnaryLayer(ILayer):
    """A function of one number (tensorrt-features.md#1.42a, 1.42b)."""

    OP, KIND, TYPE = UnaryOp, "Unary", LayerType.UNARY
    op = EnumSetting(UnaryOperation.EXP, "kind")

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        _check_unary(self.op, ir.input(0), self.name)
        return super().emit(ir)


def _check_unary(op: UnaryOperation, value: SSAValue, name: str) -> None:
    element = element_of(value.type)
    if op is UnaryOperation.NOT and not is_bool(element):
        raise InvalidModelError(f"{name}: operation NOT requires boolean input")
    if op not in (UnaryOperation.NOT, UnaryOperation.SIGN) and not is_float(element):
        raise InvalidModelError(f"{name}: operation {op.name} requires a floating-point input, got {element}")


class IElementWiseLayer(ILayer):
    """A function of two numbers (tensorrt-features.md#1.10a, 1.10b)."""

    OP, KIND, TYPE, INPUTS = ElementwiseOp, "ElementWise", LayerType.ELEMENTWISE, 2
    op = EnumSetting(ElementWiseOperation.SUM, "kind")

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        self._check(ir)
        return super().emit(ir)

    def _check(self, ir: LayerEmitter) -> None:
        left, right = (element_of(ir.input(k).type) for k in (0, 1))
        if is_float(left) != is_float(right):
            kinds = [one.dtype.name.title() for one in self.record.inputs if one is not None]
            raise InvalidModelError(f"{self.name}: has incompatible input types {kinds[0]} and {kinds[1]}")
        if self.op is ElementWiseOperation.POW and not is_float(left):
            raise InvalidModelError(f"{self.name}: operation POW requires inputs with activation type.")
        if self.op in _LOGIC and not is_bool(left):
            raise InvalidModelError(f"{self.name}: operation {self.op.name} requires boolean inputs.")


class IParametricReLULayer(ILayer):
    """x, or slope * x where x is negative (tensorrt-features.md#1.23)."""

    OP, KIND, TYPE, INPUTS = ParametricReluOp, "ParametricReLU", LayerType.PARAMETRIC_RELU, 2


class ISelectLayer(ILayer):
    """One of two tensors, element by element (tensorrt-features.md#1.35)."""

    OP, KIND, TYPE, INPUTS = SelectOp, "Select", LayerType.SELECT, 3


class IIdentityLayer(ILayer):
    """The input, in the type that `set_output_type` asks for (tensorrt-features.md#1.14)."""

    OP, KIND, TYPE = IdentityOp, "Identity", LayerType.IDENTITY

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        wanted = self.record.output_types.get(0, self.record.outputs[0].given_dtype)
        x = ir.input(0)
        if wanted is DataType.INT8 and is_float(element_of(x.type)):
            return [ir.converted(x, wanted, self.record.outputs[0].range)]
        made = IdentityOp.cast(x, element_of(x.type) if wanted is None else ir.element(wanted))
        ir.append(made)
        return [made.output]


class IScaleLayer(ILayer):
    """(x * scale + shift) ** power (tensorrt-features.md#1.33)."""

    OP, KIND, TYPE = ScaleOp, "Scale", LayerType.SCALE
    mode = EnumSetting(ScaleMode.UNIFORM, "mode")
    channel_axis = IntSetting(1, "channel_axis")
    shift = WeightsSetting()
    scale = WeightsSetting()
    power = WeightsSetting()

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        x = ir.input(0)
        shape = dims(x.type)
        if len(shape) < 4:
            raise InvalidModelError(
                f"{self.name}: The input to the Scale Layer is required to have a minimum of 3 dimensions behind the "
                f"batch, and has {len(shape)} in all"
            )
        axis = self.channel_axis
        wanted = {ScaleMode.UNIFORM: (), ScaleMode.CHANNEL: shape[axis : axis + 1], ScaleMode.ELEMENTWISE: shape[axis:]}
        lengths = [length if isinstance(length, int) else -1 for length in wanted[self.mode]]
        if -1 in lengths:
            raise UnsupportedError(f"{self.name}: coefficients for axes whose length the run decides")
        parts = {"shift": self.shift, "scale": self.scale, "power": self.power}
        for what, part in parts.items():
            if part.size and part.size != math.prod(lengths):
                raise InvalidModelError(
                    f"{self.name}: Invalid scale mode, nbWeights: {part.size}: {what} weights has count {part.size} "
                    f"but {lengths} was expected by {self.mode.name}"
                )
        given = [ir.weights(part, lengths, x, what) if part.size else None for what, part in parts.items()]
        return ir.op(ScaleOp, [x, *given], self.properties())


class PointwiseMethods(Methods):
    """`add_activation`, `add_unary`, `add_elementwise`, `add_scale` and their kin."""

    def add_activation(self, input: ITensor, type: ActivationType) -> IActivationLayer:
        return self.graph.add(IActivationLayer, [input], settings={"type": type})

    def add_unary(self, input: ITensor, op: UnaryOperation) -> IUnaryLayer:
        return self.graph.add(IUnaryLayer, [input], settings={"op": op})

    def add_elementwise(self, input1: ITensor, input2: ITensor, op: ElementWiseOperation) -> IElementWiseLayer:
        return self.graph.add(IElementWiseLayer, [input1, input2], settings={"op": op})

    def add_parametric_relu(self, input: ITensor, slopes: ITensor) -> IParametricReLULayer:
        return self.graph.add(IParametricReLULayer, [input, slopes])

    def add_select(self, condition: ITensor, then_input: ITensor, else_input: ITensor) -> ISelectLayer:
        return self.graph.add(ISelectLayer, [condition, then_input, else_input])

    def add_identity(self, input: ITensor) -> IIdentityLayer:
        return self.graph.add(IIdentityLayer, [input])

    def add_scale(
        self,
        input: ITensor,
        mode: ScaleMode,
        shift: Weights | Array | None = None,
        scale: Weights | Array | None = None,
        power: Weights | Array | None = None,
    ) -> IScaleLayer:
        return self.add_scale_nd(input, mode, shift, scale, power, 0 if self.graph.has_implicit_batch else 1)

    def add_scale_nd(
        self,
        input: ITensor,
        mode: ScaleMode,
        shift: Weights | Array | None = None,
        scale: Weights | Array | None = None,
        power: Weights | Array | None = None,
        channel_axis: int = 1,
    ) -> IScaleLayer:
        weights = {"shift": shift, "scale": scale, "power": power}
        return self.graph.add(IScaleLayer, [input], settings={"mode": mode, "channel_axis": channel_axis, **weights})
