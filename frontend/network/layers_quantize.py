"""Layers between numbers and their int8 codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.quantization_scales import wrong_scale
from mlirt.dialects.tensor_types import rank
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import IntSetting
from mlirt.tensorrt.layer_enums import LayerType

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor


class QuantizationLayer(ILayer):
    """A scale, input 1, for the whole tensor, or one for each position along `axis`; input 2 may be a zero point.

    Scales are positive, as far as the build knows them.
    """

    INPUTS = 3
    axis = IntSetting(-1)

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        assert self.OP is not None
        x, scale = ir.input(0), ir.input(1)
        along = rank(scale.type) == 1
        if along and self.axis < 0:
            raise InvalidModelError(f"{self.name}: unexpected negative axis; set the axis that the scales go along")
        numbers = ir.known_numbers(scale)
        wrong = None if numbers is None else wrong_scale(numbers)
        if wrong is not None:
            raise InvalidModelError(f"{self.name}: expected scales greater than 0, but its scale holds {wrong:g}")
        return ir.op(self.OP, [x, scale, ir.maybe_input(2)], {"axis": self.axis if along else None})


class IQuantizeLayer(QuantizationLayer):
    """clamp(round(x / scale) + zero point, -128, 127) (feature 1.27)."""

    OP, KIND, TYPE = QuantizeOp, "Quantize", LayerType.QUANTIZE


class IDequantizeLayer(QuantizationLayer):
    """(x - zero point) * scale (feature 1.8)."""

    OP, KIND, TYPE = DequantizeOp, "Dequantize", LayerType.DEQUANTIZE


class QuantizeMethods(Methods):
    """`add_quantize`, `add_dequantize`."""

    def add_quantize(self, input: ITensor, scale: ITensor) -> IQuantizeLayer:
        return self.graph.add(IQuantizeLayer, [input, scale])

    def add_dequantize(self, input: ITensor, scale: ITensor) -> IDequantizeLayer:
        return self.graph.add(IDequantizeLayer, [input, scale])
