"""TensorRT's own plugins as layers, by their documented meaning (tensorrt-features.md#19.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlirt.errors import InvalidModelError, UnsupportedError
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.normalization import per_channel, standardized, standardized_groups

if TYPE_CHECKING:
    from mlirt.tensorrt.plugins.built_in import BuiltInPlugin, Values


class Fields:
    """The fields of a plugin, read by name; errors name the layer and the field."""

    def __init__(self, layer: str, plugin: str, values: Values) -> None:
        self.label = f"{layer}: plugin {plugin}"
        self._values = values

    def real(self, name: str, default: float | None = None) -> float:
        return float(self._one(name, default))

    def whole(self, name: str, default: int | None = None) -> int:
        return int(self._one(name, default))

    def reals(self, name: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        """All elements; none for a field that is not given."""
        return self._values.get(name, np.zeros(0)).astype(np.float32).reshape(-1)

    def _one(self, name: str, default: float | None) -> float:
        if name in self._values and self._values[name].size:
            return self._values[name][0]
        if default is None:
            raise InvalidModelError(f"{self.label}: the field {name!r} is missing")
        return default


Build = Callable[[Network, Fields, Sequence[Value]], list[Value]]


def built_in_results(net: Network, layer: str, plugin: BuiltInPlugin, inputs: Sequence[Value]) -> list[Value]:
    """The results of a plugin; raises `InvalidModelError` for inputs or fields that it does not have."""
    build, counts = _PLUGINS[plugin.plugin_type]
    fields = Fields(layer, plugin.plugin_type, plugin.values)
    if len(inputs) not in counts:
        expected = " or ".join(map(str, counts))
        raise InvalidModelError(f"{fields.label}: expected {expected} inputs, got {len(inputs)}")
    return build(net, fields, inputs)


def _clip(net: Network, fields: Fields, inputs: Sequence[Value]) -> list[Value]:
    return [layers.activation(net, "clip", inputs[0], fields.real("clipMin"), fields.real("clipMax"))]


def _leaky_relu(net: Network, fields: Fields, inputs: Sequence[Value]) -> list[Value]:
    return [layers.activation(net, "leaky_relu", inputs[0], fields.real("negSlope"))]


def _gelu(net: Network, fields: Fields, inputs: Sequence[Value]) -> list[Value]:
    """The approximation by tanh, of the input plus a bias of the last axis where there is one."""
    x, bias = inputs[0], fields.reals("bias")
    if bias.size:
        x = layers.binary(net, "sum", x, layers.cast(net, net.constant(bias), x.element))
    return [layers.activation(net, "gelu_tanh", x)]


def _instance_normalization(net: Network, fields: Fields, inputs: Sequence[Value]) -> list[Value]:
    """Each channel of each sample with the mean and deviation of its coefficients; then perhaps a leaky relu."""
    x = inputs[0]
    scales, bias = (layers.cast(net, net.constant(fields.reals(name)), x.element) for name in ("scales", "bias"))
    for name, one in (("scales", scales), ("bias", bias)):
        if one.dims[0] != x.dims[1]:
            raise InvalidModelError(
                f"{fields.label}: {name}: expected one for each of {x.dims[1]} channels, got {one.dims[0]}"
            )
    result = per_channel(net, standardized(net, x, list(range(2, x.rank)), fields.real("epsilon")), scales, bias)
    if fields.whole("relu", 0):
        result = layers.activation(net, "leaky_relu", result, fields.real("alpha", 0.0))
    return [result]


def _group_normalization(net: Network, fields: Fields, inputs: Sequence[Value]) -> list[Value]:
    x, scale, bias = inputs
    grouped = standardized_groups(net, x, fields.whole("num_groups"), fields.real("eps"))
    flat = [layers.reshape(net, one, [x.dims[1]]) for one in (scale, bias)]
    return [per_channel(net, layers.reshape(net, grouped, x.dims), *flat)]


def _normalization(net: Network, fields: Fields, inputs: Sequence[Value]) -> list[Value]:
    """x by the root of the sum of its squares, of a position or of a sample, times a weight for all or each channel."""
    x = inputs[0]
    weights = fields.reals("weights")
    axes = list(range(1, x.rank)) if fields.whole("acrossSpatial") else [1]
    squares = layers.reduce(net, "sum", layers.binary(net, "prod", x, x), axes)
    shifted = layers.binary(net, "sum", squares, layers.scalar_like(net, fields.real("eps"), squares))
    unit = layers.binary(net, "div", x, layers.unary(net, "sqrt", shifted))
    if fields.whole("channelShared"):
        return [layers.binary(net, "prod", unit, layers.scalar_like(net, float(weights[0]), unit))]
    shape = [len(weights), *[1] * (x.rank - 2)]
    return [layers.binary(net, "prod", unit, layers.cast(net, net.constant(weights.reshape(shape)), x.element))]


def _scatter(net: Network, fields: Fields, inputs: Sequence[Value]) -> list[Value]:
    return [net.emit("scatter", list(inputs), mode="nd", reduction="none")]


def _efficient_nms(net: Network, fields: Fields, inputs: Sequence[Value]) -> list[Value]:
    """The number of detections, and boxes, scores and classes of the best ones; zeros behind them.

    Boxes are B x N x 4 or B x N x 1 x 4, scores B x N x C; those that stay in their class compete by score.
    """
    boxes, scores = _boxes(net, fields, inputs[0]), _scores(net, fields, inputs[1])
    batch, count, classes = scores.dims
    kept = fields.whole("max_output_boxes")
    if not isinstance(count, int) or not isinstance(classes, int):
        raise UnsupportedError(f"{fields.label}: expected a known number of boxes and classes, got {scores.type}")
    most = min(count, 4096)
    ranked, order = net.emit_many(
        "topk", [layers.transpose(net, scores, [0, 2, 1])], 2, kind="max", axis=2, sorted=True, k=most
    )
    sorted_boxes = _boxes_of_classes(net, boxes, order)
    limits = [np.array(kept, np.int64), np.array(fields.real("iou_threshold"), np.float32)]
    flags = layers.reshape(net, _allowed(net, fields, ranked, classes), [batch * classes, most])
    stays = net.emit("suppress", [sorted_boxes, flags, *map(net.constant, limits)])
    found = _best(
        net,
        layers.reshape(net, stays, [batch, classes * most]),
        layers.reshape(net, ranked, [batch, classes * most]),
        layers.reshape(net, sorted_boxes, [batch, classes * most, 4]),
        min(kept, classes * most),
        most,
    )
    number, *detections = found
    padded = [_padded(net, one, kept - min(kept, classes * most)) for one in detections]
    return [number, *(layers.cast(net, one, inputs[0].element) for one in padded[:2]), padded[2]]


def _scores(net: Network, fields: Fields, given: Value) -> Value:
    scores = layers.cast(net, given, "float32")
    if scores.rank != 3:
        raise InvalidModelError(f"{fields.label}: expected scores B x N x C, got {scores.type}")
    return layers.activation(net, "sigmoid", scores) if fields.whole("score_activation", 0) else scores


def _boxes_of_classes(net: Network, boxes: Value, order: Value) -> Value:
    """For each sample and class the boxes `[N, 4]` in an order `[B, C, K]`, as `[B * C, K, 4]`."""
    (batch, classes, most), count = order.dims, boxes.dims[1]
    everywhere = layers.expand(net, layers.unsqueeze(net, boxes, [1]), [batch, classes, count, 4])
    places = layers.reshape(net, layers.cast(net, order, "int64"), [batch * classes, most, 1])
    everywhere = layers.reshape(net, everywhere, [batch * classes, count, 4])
    return net.emit("gather", [everywhere, places], mode="nd", num_elementwise_dims=1)


def _best(net: Network, stays: Value, scores: Value, boxes: Value, total: int, of_class: int) -> list[Value]:
    """The number of those that stay, and boxes, scores and classes of the `total` best of all classes.

    `stays` and `scores` are `[B, C * of_class]`, `boxes` one axis of 4 longer.
    """
    least = layers.scalar_like(net, float(np.finfo(np.float32).min), scores)
    candidates = layers.select(net, stays, scores, least)
    chosen_scores, chosen = net.emit_many("topk", [candidates], 2, kind="max", axis=1, sorted=True, k=total)
    index = layers.cast(net, chosen, "int64")
    chosen_boxes = net.emit("gather", [boxes, layers.unsqueeze(net, index, [2])], mode="nd", num_elementwise_dims=1)
    is_there = layers.binary(net, "greater", chosen_scores, least)
    of_classes = layers.binary(net, "floor_div", index, layers.scalar_like(net, of_class, index))
    number = layers.reduce(net, "sum", layers.cast(net, is_there, "int32"), [1])
    chosen_classes = layers.cast(net, of_classes, "int32")
    return [number, *(_or_zero(net, is_there, one) for one in (chosen_boxes, chosen_scores, chosen_classes))]


def _boxes(net: Network, fields: Fields, given: Value) -> Value:
    """Boxes by two corners, as float32."""
    if given.rank not in (3, 4) or given.dims[-1] != 4 or (given.rank == 4 and given.dims[2] != 1):
        raise UnsupportedError(f"{fields.label}: expected boxes B x N x 4 for all classes together, got {given.type}")
    boxes = layers.cast(net, given, "float32")
    if given.rank == 4:
        boxes = layers.squeeze(net, boxes, [2])
    if not fields.whole("box_coding", 0):
        return boxes
    centre, size = layers.along(net, boxes, 2, 0, 2), layers.along(net, boxes, 2, 2, 2)
    half = layers.binary(net, "prod", size, layers.scalar_like(net, 0.5, size))
    return layers.concatenate(net, [layers.binary(net, kind, centre, half) for kind in ("sub", "sum")], 2)


def _allowed(net: Network, fields: Fields, ranked: Value, classes: int) -> Value:
    """Which scores reach the threshold, those of the background left out."""
    threshold = layers.scalar_like(net, fields.real("score_threshold"), ranked)
    reaches = layers.binary(net, "greater_equal", ranked, threshold)
    background = fields.whole("background_class", -1)
    if background < 0:
        return reaches
    counts = (np.arange(classes) != background).reshape(1, classes, 1)
    return layers.binary(net, "and", reaches, net.constant(counts))


def _or_zero(net: Network, condition: Value, value: Value) -> Value:
    shaped = condition if value.rank == 2 else layers.unsqueeze(net, condition, [2])
    return layers.select(net, shaped, value, layers.scalar_like(net, 0, value))


def _padded(net: Network, value: Value, count: int) -> Value:
    """So many rows of zeros behind those of axis 1."""
    if count <= 0:
        return value
    behind = [count if axis == 1 else 0 for axis in range(value.rank)]
    return layers.pad(net, value, [0] * value.rank, behind, "constant", None)


_PLUGINS: Mapping[str, tuple[Build, Sequence[int]]] = {
    "Clip_TRT": (_clip, (1,)),
    "CustomGeluPluginDynamic": (_gelu, (1,)),
    "EfficientNMS_TRT": (_efficient_nms, (2,)),
    "GroupNormalizationPlugin": (_group_normalization, (3,)),
    "InstanceNormalization_TRT": (_instance_normalization, (1,)),
    "LReLU_TRT": (_leaky_relu, (1,)),
    "Normalize_TRT": (_normalization, (1,)),
    "ScatterND": (_scatter, (3,)),
}
"""By name: the layers, and how many inputs they take."""
