"""Layers that make tensors of nothing: constants and fills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from xdsl.ir import SSAValue

from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.fill import FillOp
from mlirt.dialects.trt.random import RandomOp
from mlirt.dialects.trt.run_number import RunNumberOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import DimsSetting, EnumSetting, FloatSetting, WeightsSetting
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.dims import MAX_DIMS
from mlirt.tensorrt.layer_enums import FillOperation, LayerType

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.tensorrt.weights import Array, Weights

_RANDOM = {FillOperation.RANDOM_UNIFORM: "uniform", FillOperation.RANDOM_NORMAL: "normal"}


class IConstantLayer(ILayer):
    """Weights as a tensor (tensorrt-features.md#1.5)."""

    OP, KIND, TYPE, INPUTS = ConstantOp, "Constant", LayerType.CONSTANT, 0
    weights = WeightsSetting()
    shape = DimsSetting()

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        array, shape = self.weights, list(self.shape or ())
        if len(shape) >= MAX_DIMS:
            raise InvalidModelError(f"{self.name}: a constant has at most {MAX_DIMS - 1} dimensions, got {len(shape)}")
        if array.dtype == np.bool_:
            raise InvalidModelError(f"{self.name}: constants are not Bool; convert Int32 ones by an identity layer")
        count = int(np.prod(shape, dtype=np.int64))
        if count != array.size:
            raise InvalidModelError(f"{self.name}: weights has count {array.size}, but {count} was expected")
        name = self.record.graph.name_of_weights(array)
        return [ir.named_constant(array.reshape(shape), name, named=bool(name))]


class IFillLayer(ILayer):
    """alpha + beta * index, or random numbers; inputs 0 to 2 may give shape, alpha and beta (tensorrt-features.md#1.11a
    and b).

    Random numbers are uniform between alpha and beta, or normal with the mean alpha and the deviation beta. Each run of
    an execution context has others; a new context begins with the first ones.
    """

    OP, KIND, TYPE, INPUTS, SHAPE_INPUTS = FillOp, "Fill", LayerType.FILL, 3, (0,)
    shape = DimsSetting("output_dims")
    operation = EnumSetting(FillOperation.LINSPACE, "kind")
    alpha = FloatSetting(0.0)
    beta = FloatSetting(1.0)

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        shape, alpha, beta = ir.maybe_input(0), ir.maybe_scalar(1), ir.maybe_input(2)
        if self.operation is not FillOperation.LINSPACE:
            return self._random(ir, shape, alpha, beta)
        element = DataType.INT32 if self.record.output_types.get(0) is DataType.INT32 else DataType.FLOAT
        if alpha is None and beta is None:
            if shape is not None or len(self.shape or ()) > 1:
                raise InvalidModelError(f"{self.name}: Alpha and beta tensor should be set when output an ND tensor")
            kind = np.int32 if element is DataType.INT32 else np.float32
            alpha, beta = ir.constant(np.array(self.alpha, kind)), ir.constant(np.array(self.beta, kind))
        properties = self.properties()
        if shape is not None:
            properties.pop("output_dims", None)
        return ir.op(FillOp, [shape, alpha, beta], properties)

    def _random(
        self, ir: LayerEmitter, shape: SSAValue | None, alpha: SSAValue | None, beta: SSAValue | None
    ) -> Sequence[SSAValue]:
        element = np.float16 if self.record.output_types.get(0) is DataType.HALF else np.float32
        scales = [
            ir.constant(np.array(number, element)) if given is None else given
            for given, number in ((alpha, self.alpha), (beta, self.beta))
        ]
        properties: dict[str, object] = {"kind": _RANDOM[self.operation], "seed": crc32(self.name.encode())}
        if shape is None:
            properties["output_dims"] = list(self.shape or ())
        return ir.op(RandomOp, [ir.value(RunNumberOp), shape, *scales], properties)


class SourceMethods(Methods):
    """`add_constant`, `add_fill`."""

    def add_constant(self, shape: Sequence[int], weights: Weights | Array) -> IConstantLayer:
        return self.graph.add(IConstantLayer, [], settings={"shape": shape, "weights": weights})

    def add_fill(self, shape: Sequence[int], op: FillOperation) -> IFillLayer:
        return self.graph.add(IFillLayer, [], settings={"shape": shape, "operation": op})
