"""Layers with a window that slides over images: convolution, deconvolution, pooling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import element_count
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.pooling import PoolingOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import (
    BoolSetting,
    Deprecated2d,
    DimsSetting,
    EnumSetting,
    FloatSetting,
    IntSetting,
    WeightsSetting,
)
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.layer_enums import LayerType, PaddingMode, PoolingType

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor
    from mlirt.tensorrt.weights import Array, Weights


class WindowLayer(ILayer, ABC):
    """Strides and pads (tensorrt-features.md#1.6g); `padding_nd` sets both pads, and reads the first."""

    stride_nd = DimsSetting("stride", lambda layer: layer.for_each_axis(1))
    dilation_nd = DimsSetting("dilation", lambda layer: layer.for_each_axis(1))
    pre_padding = DimsSetting("pre_padding", lambda layer: layer.for_each_axis(0))
    post_padding = DimsSetting("post_padding", lambda layer: layer.for_each_axis(0))
    padding_mode = EnumSetting(PaddingMode.EXPLICIT_ROUND_DOWN, "padding_mode")
    stride = Deprecated2d("stride_nd")
    padding = Deprecated2d("padding_nd")

    @property
    def padding_nd(self) -> Dims | None:
        return None if self.pre_padding is None else Dims(self.pre_padding)

    @padding_nd.setter
    def padding_nd(self, padding: Sequence[int]) -> None:
        self.pre_padding = padding
        self.post_padding = padding

    @abstractmethod
    def for_each_axis(self, usual: int) -> Sequence[int] | None:
        """A default for each axis of the window; None where the window is not known."""


class KernelLayer(WindowLayer):
    """A window with weights: those that the layer holds, or inputs 1 and 2 (tensorrt-features.md#1.6f)."""

    INPUTS = 3
    kernel_size_nd = DimsSetting()
    num_output_maps = IntSetting(0)
    num_groups = IntSetting(1, "num_groups")
    kernel = WeightsSetting()
    bias = WeightsSetting()
    kernel_size = Deprecated2d("kernel_size_nd")
    dilation = Deprecated2d("dilation_nd")

    @abstractmethod
    def kernel_shape(self) -> list[int]:
        """The dimensions of the weights, the one that nothing says worked out from their number."""

    def for_each_axis(self, usual: int) -> Sequence[int] | None:
        return None if self.kernel_size_nd is None else [usual] * len(self.kernel_size_nd)

    def _known(self) -> tuple[list[int], int]:
        size = list(self.kernel_size_nd or ())
        if not size or self.num_output_maps <= 0 or self.num_groups <= 0:
            raise InvalidModelError(f"{self.name}: kernel size, output maps and groups are positive numbers")
        return size, self.num_output_maps

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        assert self.OP is not None
        x = ir.input(0)
        kernel = ir.maybe_input(1)
        if kernel is None:
            if not self.kernel.size and element_count(x.type) != 0:
                raise InvalidModelError(f"{self.name}: kernel weights has zero count, and input 1 gives no kernel")
            kernel = ir.weights(self.kernel, self.kernel_shape(), x, "kernel")
        bias = ir.maybe_input(2)
        if bias is None and self.bias.size:
            bias = ir.weights(self.bias, [self.num_output_maps], x, "bias")
        return ir.op(self.OP, ir.in_one_float([x, kernel, bias]), self.properties())


class IConvolutionLayer(KernelLayer):
    """Correlation with kernels K x C/groups x R x S (tensorrt-features.md#1.6a to 1.6g)."""

    OP, KIND, TYPE = ConvolutionOp, "Convolution", LayerType.CONVOLUTION

    def kernel_shape(self) -> list[int]:
        size, maps = self._known()
        return [maps, _rest(self.kernel.size, [maps, *size]), *size]


class IDeconvolutionLayer(KernelLayer):
    """The transpose of a convolution; kernels are C x K/groups x R x S (tensorrt-features.md#1.7)."""

    OP, KIND, TYPE = DeconvolutionOp, "Deconvolution", LayerType.DECONVOLUTION

    def kernel_shape(self) -> list[int]:
        size, maps = self._known()
        return [_rest(self.kernel.size, [maps // self.num_groups, *size]), maps // self.num_groups, *size]


class IPoolingLayer(WindowLayer):
    """The largest or the average of each window (tensorrt-features.md#1.26a to 1.26d)."""

    OP, KIND, TYPE = PoolingOp, "Pooling", LayerType.POOLING
    type = EnumSetting(PoolingType.MAX, "kind")  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]  (TensorRT's name)
    window_size_nd = DimsSetting("window")
    blend_factor = FloatSetting(0.0, "blend_factor")
    average_count_excludes_padding = BoolSetting(True, "average_count_excludes_padding")
    window_size = Deprecated2d("window_size_nd")

    def for_each_axis(self, usual: int) -> Sequence[int] | None:
        return None if self.window_size_nd is None else [usual] * len(self.window_size_nd)


class WindowMethods(Methods):
    """`add_convolution_nd`, `add_deconvolution_nd`, `add_pooling_nd`, and their deprecated names."""

    def add_convolution_nd(
        self,
        input: ITensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: Weights | Array,
        bias: Weights | Array | None = None,
    ) -> IConvolutionLayer:
        return self.graph.add(
            IConvolutionLayer, [input], settings=_kernel_settings(num_output_maps, kernel_shape, kernel, bias)
        )

    def add_deconvolution_nd(
        self,
        input: ITensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: Weights | Array,
        bias: Weights | Array | None = None,
    ) -> IDeconvolutionLayer:
        return self.graph.add(
            IDeconvolutionLayer, [input], settings=_kernel_settings(num_output_maps, kernel_shape, kernel, bias)
        )

    def add_pooling_nd(self, input: ITensor, type: PoolingType, window_size: Sequence[int]) -> IPoolingLayer:
        return self.graph.add(IPoolingLayer, [input], settings={"type": type, "window_size_nd": window_size})

    def add_convolution(
        self,
        input: ITensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: Weights | Array,
        bias: Weights | Array | None = None,
    ) -> IConvolutionLayer:
        deprecated("add_convolution_nd")
        return self.add_convolution_nd(input, num_output_maps, kernel_shape, kernel, bias)

    def add_deconvolution(
        self,
        input: ITensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: Weights | Array,
        bias: Weights | Array | None = None,
    ) -> IDeconvolutionLayer:
        deprecated("add_deconvolution_nd")
        return self.add_deconvolution_nd(input, num_output_maps, kernel_shape, kernel, bias)

    def add_pooling(self, input: ITensor, type: PoolingType, window_size: Sequence[int]) -> IPoolingLayer:
        deprecated("add_pooling_nd")
        return self.add_pooling_nd(input, type, window_size)


def _kernel_settings(
    maps: int, shape: Sequence[int], kernel: Weights | Array, bias: Weights | Array | None
) -> dict[str, object]:
    return {
        "num_output_maps": maps,
        "kernel_size_nd": shape,
        "kernel": kernel,
        "bias": bias,
    }


def _rest(count: int, known: Sequence[int]) -> int:
    """The length that is left for `count` weights; 1 more than fits where it is no whole number."""
    product = 1
    for length in known:
        product *= length
    return -(-count // product)
