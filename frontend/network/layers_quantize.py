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

    Scales are constants and positive; there is one for each channel of weights alone. The zero point is 0.
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
        if numbers is None:
            raise InvalidModelError(f"{self.name}: the scale is computed by the run; it must be a constant")
        wrong = wrong_scale(numbers)
        if wrong is not None:
            raise InvalidModelError(f"{self.name}: expected scales greater than 0, but its scale holds {wrong:g}")
        self._check_channels(ir, numbers.size)
        self._check_zero_point(ir)
        return ir.op(self.OP, [x, scale, None], {"axis": self.axis if along else None})

    def _check_channels(self, ir: LayerEmitter, count: int) -> None:
        """Raise for several scales of what the run computes (tensorrt-features.md#10.5)."""

    def _check_zero_point(self, ir: LayerEmitter) -> None:
        """Raise for one that is not 0, as far as the build knows (tensorrt-features.md#1.8, 10.15)."""
        given = ir.maybe_input(2)
        known = None if given is None else ir.known_numbers(given)
        if given is not None and (known is None or known.any()):
            found = "the run decides" if known is None else f"{known.ravel()[known.ravel() != 0][0]:g}"
            raise InvalidModelError(f"{self.name}: the zero point must be 0, got {found}")


class IQuantizeLayer(QuantizationLayer):
    """clamp(round(x / scale) + zero point, -128, 127) (tensorrt-features.md#1.27)."""

    OP, KIND, TYPE = QuantizeOp, "Quantize", LayerType.QUANTIZE

    def _check_channels(self, ir: LayerEmitter, count: int) -> None:
        if count > 1 and ir.known_numbers(ir.input(0)) is None and not ir.is_constant(ir.input(0)):
            raise InvalidModelError(f"{self.name}: scales for each channel are for weights, not for activations")


class IDequantizeLayer(QuantizationLayer):
    """(x - zero point) * scale (tensorrt-features.md#1.8)."""

    OP, KIND, TYPE = DequantizeOp, "Dequantize", LayerType.DEQUANTIZE


class QuantizeMethods(Methods):
    """`add_quantize`, `add_dequantize`."""

    def add_quantize(self, input: ITensor, scale: ITensor) -> IQuantizeLayer:
        return self.graph.add(IQuantizeLayer, [input, scale])

    def add_dequantize(self, input: ITensor, scale: ITensor) -> IDequantizeLayer:
        return self.graph.add(IDequantizeLayer, [input, scale])
