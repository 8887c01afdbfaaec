"""What the guide of TensorRT 8.5 says a DLA can run, checked layer by layer (tensorrt-features.md#29.3, 29.5, 29.9,
29.10).

There is no DLA compiler here: the rules tell whether a network would fit one, and a build says what it did instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mlirt.tensorrt.build_enums import BuilderFlag
from mlirt.tensorrt.layer_enums import (
    ActivationType,
    ElementWiseOperation,
    InterpolationMode,
    LayerType,
    PoolingType,
    ReduceOperation,
    UnaryOperation,
)

if TYPE_CHECKING:
    from mlirt.builder.api.builder_config import IBuilderConfig
    from mlirt.frontend.network.layer import ILayer

Rule = Callable[[Any], str | None]

MAX_BATCH = 4096
_IMAGES = 4  # dimensions of a batch of images
_MAX_MAPS = 8192


def why_not_on_dla(layer: ILayer, config: IBuilderConfig) -> str | None:
    """Why a DLA cannot run a layer with the settings of a build; None where the rules know nothing against it."""
    kind = layer.record.type  # `type` of some kinds of layers is another thing
    if kind in (LayerType.QUANTIZE, LayerType.DEQUANTIZE):
        return "explicit quantization is not supported on DLA; give ranges or a calibrator"
    rule = _RULES.get(kind)
    if rule is None:
        return f"layers of the kind {kind.name} do not run on DLA"
    if not (config.get_flag(BuilderFlag.FP16) or config.get_flag(BuilderFlag.INT8)):
        return "DLA computes in FP16 or INT8; set a flag that permits one"
    return _wrong_shape(layer) or rule(layer.record.view())


def orin_sparsity(input_channels: int, weights: int, element_bytes: int) -> str | None:
    """Why sparse weights gain nothing on Orin's DLA, as far as TensorRT's guide says; None where they do (29.9)."""
    return _first(
        None if element_bytes == 1 else "structured sparsity is for INT8",
        None if input_channels > _SPARSE_CHANNELS else f"it needs more than {_SPARSE_CHANNELS} input channels",
        None if weights <= _SPARSE_WEIGHTS else f"it has {weights} weights, more than {_SPARSE_WEIGHTS}",
    )


_SPARSE_CHANNELS = 64
_SPARSE_WEIGHTS = 256 << 10


def _wrong_shape(layer: ILayer) -> str | None:
    tensors = [layer.get_input(0), *(layer.get_output(index) for index in range(layer.num_outputs))]
    for tensor in tensors:
        if tensor is None:
            continue
        if -1 in tensor.shape:
            return f"{tensor.name} has dynamic dimensions {tensor.shape}; DLA needs each length when it is built"
        if len(tensor.shape) > 1 and tensor.shape[0] > MAX_BATCH:
            return f"the batch of {tensor.name} is {tensor.shape[0]}; DLA takes {MAX_BATCH} at most"
    return None


def _outside(name: str, values: Iterable[float] | None, low: float, high: float) -> str | None:
    for value in values or ():
        if not low <= value <= high:
            return f"{name} is {value:g}, outside {low:g} to {high:g}"
    return None


def _first(*faults: str | None) -> str | None:
    return next((fault for fault in faults if fault is not None), None)


def _flat(window: Sequence[int] | None) -> str | None:
    return None if window is not None and len(window) == 2 else "the window has other than two spatial dimensions"


def _pads(layer: Any, most: int) -> str | None:
    return _first(_outside("padding", layer.pre_padding, 0, most), _outside("padding", layer.post_padding, 0, most))


def _convolution(layer: Any) -> str | None:
    return _first(
        _flat(layer.kernel_size_nd),
        _outside("a kernel dimension", layer.kernel_size_nd, 1, 32),
        _pads(layer, 31),
        _outside("a stride", layer.stride_nd, 1, 8),
        _outside("the number of output maps", [layer.num_output_maps], 1, _MAX_MAPS),
        _outside("the number of groups", [layer.num_groups], 1, _MAX_MAPS),
        _outside("a dilation", layer.dilation_nd, 1, 32),
    )


def _deconvolution(layer: Any) -> str | None:
    return _first(
        _flat(layer.kernel_size_nd),
        _outside("a kernel dimension", layer.kernel_size_nd, 1, 32),
        _pads(layer, 0),
        _outside("a stride", layer.stride_nd, 1, 32),
        _outside("the number of output maps", [layer.num_output_maps], 1, _MAX_MAPS),
        _outside("the number of groups", [layer.num_groups], 1, 1),
        _outside("a dilation", layer.dilation_nd, 1, 1),
    )


def _fully_connected(layer: Any) -> str | None:
    return _outside("the number of output maps", [layer.num_output_channels], 1, _MAX_MAPS)


def _pooling(layer: Any) -> str | None:
    return _first(
        _one_of(layer.type, (PoolingType.MAX, PoolingType.AVERAGE)),
        _flat(layer.window_size_nd),
        _outside("a window dimension", layer.window_size_nd, 1, 8),
        _pads(layer, 7),
        _outside("a stride", layer.stride_nd, 1, 16),
    )


def _activation(layer: Any) -> str | None:
    if layer.type is ActivationType.CLIP:
        return _first(_outside("alpha", [layer.alpha], 0, 0), _outside("beta", [layer.beta], 1, 127))
    kinds = (ActivationType.RELU, ActivationType.SIGMOID, ActivationType.TANH, ActivationType.LEAKY_RELU)
    return _one_of(layer.type, kinds)


def _elementwise(layer: Any) -> str | None:
    kind = ElementWiseOperation
    return _one_of(layer.op, (kind.SUM, kind.SUB, kind.PROD, kind.MAX, kind.MIN))


def _scale(layer: Any) -> str | None:
    return _outside("the power", layer.power.ravel().tolist(), 1, 1)


def _lrn(layer: Any) -> str | None:
    return None if layer.window_size in (3, 5, 7, 9) else f"the window is {layer.window_size}, not 3, 5, 7 or 9"


def _concatenation(layer: Any) -> str | None:
    return _images(layer) or _outside("the axis", [layer.axis], 1, 1)


def _resize(layer: Any) -> str | None:
    most = 32 if layer.resize_mode is InterpolationMode.NEAREST else 4
    if layer.resize_mode is InterpolationMode.CUBIC or len(layer.scales) != _IMAGES:
        return "a resize on DLA has 4 scales, and is NEAREST or LINEAR"
    outer, inner = layer.scales[:2], layer.scales[2:]
    return _first(_outside("a scale of batch or channels", outer, 1, 1), _outside("a scale", inner, 1, most))


def _unary(layer: Any) -> str | None:
    return _one_of(layer.op, (UnaryOperation.ABS,))


def _reduce(layer: Any) -> str | None:
    return _first(
        _images(layer),
        _one_of(layer.op, (ReduceOperation.MAX,)),
        "the batch is among the axes" if layer.axes & 1 else None,
    )


def _softmax(layer: Any) -> str | None:
    return "the axis is the batch" if layer.axes & 1 else None


def _parametric_relu(layer: Any) -> str | None:
    slopes = layer.get_input(1)
    is_known = slopes is not None and slopes.producer is not None and slopes.producer.type is LayerType.CONSTANT
    return None if is_known else "its slopes are no constant"


def _images(layer: Any) -> str | None:
    x = layer.get_input(0)
    return None if x is not None and len(x.shape) == _IMAGES else f"its input has other than {_IMAGES} dimensions"


def _shuffle(layer: Any) -> str | None:
    if layer.get_input(1) is not None or len(layer.get_output(0).shape) != _IMAGES:
        return f"its output has other than {_IMAGES} dimensions that are known when it is built"
    return _images(layer)


def _slice(layer: Any) -> str | None:
    if any(layer.get_input(index) is not None for index in (1, 2, 3)):
        return "its place is computed by the run"
    return _images(layer)


def _one_of(kind: Any, kinds: Sequence[Any]) -> str | None:
    return None if kind in kinds else f"{kind.name} is not one of {', '.join(one.name for one in kinds)}"


_RULES: dict[LayerType, Rule] = {
    LayerType.ACTIVATION: _activation,
    LayerType.CONCATENATION: _concatenation,
    LayerType.CONVOLUTION: _convolution,
    LayerType.DECONVOLUTION: _deconvolution,
    LayerType.ELEMENTWISE: _elementwise,
    LayerType.FULLY_CONNECTED: _fully_connected,
    LayerType.LRN: _lrn,
    LayerType.PARAMETRIC_RELU: _parametric_relu,
    LayerType.POOLING: _pooling,
    LayerType.REDUCE: _reduce,
    LayerType.RESIZE: _resize,
    LayerType.SCALE: _scale,
    LayerType.SHUFFLE: _shuffle,
    LayerType.SLICE: _slice,
    LayerType.SOFTMAX: _softmax,
    LayerType.UNARY: _unary,
}
