"""Networks with an implicit batch: each has another network beside it that has the batch as first dimension of all.

The user sees the tensors of one sample (tensorrt-features.md#2.17); layers are made, shapes are inferred and plans are
built of the network beside. Axes and lengths in the settings of layers move by one. Constants, and inputs that are
broadcast across the batch, have 1 there, and are repeated where a layer or an output needs all samples
(tensorrt-features.md#27.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from mlirt.dialects.tensor_types import dims
from mlirt.errors import InvalidModelError, UnsupportedError
from mlirt.frontend.network.layers_move import IConcatenationLayer
from mlirt.frontend.network.layers_reduce import ISoftMaxLayer
from mlirt.frontend.network.record import LayerRecord
from mlirt.frontend.network.tensor import ITensor
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.layer_enums import LayerType
from mlirt.tensorrt.plugins.adapted_v2 import AdaptedV2

if TYPE_CHECKING:
    from mlirt.frontend.network.definition import INetworkDefinition

BATCH = "batch"
"""The name of the dimension that all inputs share."""

Settings: TypeAlias = "dict[str, Any]"
Shift = Callable[[LayerRecord, Settings], Settings]


class WithBatch:
    """The network with an explicit batch that stands for one without."""

    def __init__(self, own: INetworkDefinition, beside: INetworkDefinition) -> None:
        """`beside` is empty yet."""
        self._own, self.network = own.graph, beside
        self.network.name = own.name
        self._graph = beside.graph
        self._graph.share_weights_names(self._own)
        self._tensors: dict[ITensor, ITensor] = {}
        self._made = 0

    def has(self, record: LayerRecord) -> bool:
        """Whether a layer has been taken over."""
        return any(one is record for one in self._own.records[: self._made])

    def tensor(self, of: ITensor) -> ITensor:
        """The tensor that stands for one of the user's network."""
        if of not in self._tensors:  # among those of a layer that is taken over now all inputs are
            self._catch_up()
        if of not in self._tensors:
            raise InvalidModelError(f"tensor {of.name!r} is no input of the network, and no layer of it makes it")
        return self._tensors[of]

    def finish(self) -> INetworkDefinition:
        """The whole network, its outputs marked."""
        self._catch_up()
        for output in self._own.outputs:
            found = self.tensor(output)
            if self._is_shared(found) and any(map(self._has_samples, self._graph.inputs)):
                name, found.name = found.name, f"{found.name} of one sample"
                found = self._repeated(found)
                found.name = name
            self._graph.outputs.append(found)
        return self.network

    def _catch_up(self) -> None:
        for one in self._own.inputs:
            if one not in self._tensors:
                self._graph.inputs.append(self._copied(one, None))
        while self._made < len(self._own.records):
            self._add(self._own.records[self._made])
            self._made += 1

    def _copied(self, one: ITensor, producer: LayerRecord | None) -> ITensor:
        """A tensor with what the user has set, and of an input with its batch."""
        made = copy(one)
        made.graph, made.producer = self._graph, producer
        if one.given_shape is not None:
            made.given_shape = Dims([1 if one.broadcast_across_batch else -1, *one.given_shape])
            named = {axis + 1: name for axis, name in one.dimension_names.items()}
            made.dimension_names = named if one.broadcast_across_batch else {0: BATCH, **named}
        self._tensors[one] = made
        return made

    def _add(self, own: LayerRecord) -> None:
        if own.type in _SIZED:
            self._add_sized(own)
            return
        if own.type not in _SHIFTS:
            raise UnsupportedError(f"{own.name}: {own.type.name} needs a network with an explicit batch")
        inputs = [None if one is None else self._tensors[one] for one in own.inputs]
        made = copy(own)
        made.settings = _SHIFTS[own.type](own, dict(own.settings))
        if own.type in _WHOLE and any(one is not None and self._has_samples(one) for one in inputs):
            plugin = made.settings.get("plugin")
            shared = [isinstance(plugin, AdaptedV2) and plugin.takes_shared(index) for index in range(len(inputs))]
            inputs = [self._whole(one, may_be) for one, may_be in zip(inputs, shared, strict=True)]
        made.graph, made.inputs = self._graph, inputs
        made.outputs = [self._copied(one, made) for one in own.outputs]
        self._graph.records.append(made)

    def _first(self, of: ITensor) -> object:
        return dims(self._graph.type_of(of))[0] if of.producer is not None else cast("Dims", of.given_shape)[0]

    def _is_shared(self, of: ITensor) -> bool:
        return self._first(of) == 1

    def _has_samples(self, of: ITensor) -> bool:
        return not self._is_shared(of)

    def _add_sized(self, own: LayerRecord) -> None:
        """A layer whose settings say how large its result is, of which the first length is that of the batch."""
        if any(one is not None for one in own.inputs[1:]):
            raise UnsupportedError(f"{own.name}: shapes of the run need a network with an explicit batch")
        made, (place, name) = copy(own), _SIZED[own.type]
        x = own.inputs[0]
        assert x is not None
        made.graph, made.inputs, made.settings = self._graph, [self._tensors[x]], dict(own.settings)
        for setting, first in (("start", 0), ("stride", 1), ("scales", 1.0)):
            if made.settings.get(setting):
                made.settings[setting] = type(made.settings[setting])([first, *made.settings[setting]])
        size = made.settings.pop(name, None)
        if size is not None:
            made.inputs += [None] * (place - 1)
            made.inputs.append(self._lengths(self._tensors[x], size, own.name))
        made.outputs = [self._copied(one, made) for one in own.outputs]
        self._graph.records.append(made)

    def _whole(self, one: ITensor | None, may_be_shared: bool) -> ITensor | None:
        return one if one is None or may_be_shared or self._has_samples(one) else self._repeated(one)

    def _repeated(self, of: ITensor) -> ITensor:
        """A tensor of all samples, which are equal: a slice that steps by 0 along the batch."""
        like = next(one for one in self._graph.inputs if self._has_samples(one))
        inner = [int(str(length)) for length in dims(self._graph.type_of(of))[1:]]
        rank = len(inner) + 1
        layer = self.network.add_slice(of, (0,) * rank, (1,) * rank, (0, *(1,) * (rank - 1)))
        layer.name = f"{of.name} for each sample"
        layer.set_input(2, self._lengths(like, inner, layer.name))
        return layer.get_output(0)

    def _lengths(self, like: ITensor, inner: Sequence[int], name: str) -> ITensor:
        """A shape as a tensor: the batch of `like`, and lengths behind it."""
        shape = self.network.add_shape(like)
        count = self.network.add_slice(shape.get_output(0), (0,), (1,), (1,))
        others = self.network.add_constant((len(inner),), np.array(inner, np.int32))
        joined = self.network.add_concatenation([count.get_output(0), others.get_output(0)])
        for layer, what in ((shape, "shape"), (count, "batch"), (others, "lengths"), (joined, "size")):
            layer.name = f"{name}.{what}"
        return joined.get_output(0)


def _same(own: LayerRecord, settings: Settings) -> Settings:
    return settings


def _mask(name: str) -> Shift:
    return lambda own, settings: settings | {name: settings.get(name, 0) << 1}


def _axis(name: str, usual: int = 0) -> Shift:
    return lambda own, settings: settings | {name: settings.get(name, usual) + 1}


def _softmax(own: LayerRecord, settings: Settings) -> Settings:
    return settings | {"given_axes": cast("ISoftMaxLayer", own.view()).axes << 1}


def _concatenation(own: LayerRecord, settings: Settings) -> Settings:
    return settings | {"given_axis": cast("IConcatenationLayer", own.view()).axis + 1}


def _shuffle(own: LayerRecord, settings: Settings) -> Settings:
    if len(own.inputs) > 1 and own.inputs[1] is not None:
        raise UnsupportedError(f"{own.name}: shapes of the run need a network with an explicit batch")
    for name in ("first_transpose", "second_transpose"):
        if settings.get(name) is not None:
            settings[name] = [0, *(axis + 1 for axis in settings[name])]
    if settings.get("reshape_dims") is not None:
        if not settings.get("zero_is_placeholder", True):
            raise UnsupportedError(f"{own.name}: a length of 0 needs a network with an explicit batch")
        settings["reshape_dims"] = Dims([0, *settings["reshape_dims"]])
    return settings


def _constant(own: LayerRecord, settings: Settings) -> Settings:
    return settings | {"shape": Dims([1, *settings.get("shape", ())])}


def _gather(own: LayerRecord, settings: Settings) -> Settings:
    return settings | {"axis": settings.get("axis", 0) + 1, "num_elementwise_dims": 1}


def _plugin(own: LayerRecord, settings: Settings) -> Settings:
    plugin = settings["plugin"]
    if not isinstance(plugin, AdaptedV2):
        raise UnsupportedError(f"{own.name}: plugins from IPluginV2DynamicExt on need an explicit batch")
    return settings | {"plugin": AdaptedV2(plugin.plugin, has_implicit_batch=True)}


_SHIFTS: dict[LayerType, Shift] = {
    **dict.fromkeys(
        (
            LayerType.ACTIVATION,
            LayerType.CONVOLUTION,
            LayerType.DECONVOLUTION,
            LayerType.ELEMENTWISE,
            LayerType.FULLY_CONNECTED,
            LayerType.IDENTITY,
            LayerType.LRN,
            LayerType.MATRIX_MULTIPLY,
            LayerType.PADDING,
            LayerType.PARAMETRIC_RELU,
            LayerType.POOLING,
            LayerType.RAGGED_SOFTMAX,
            LayerType.RNN_V2,
            LayerType.SELECT,
            LayerType.UNARY,
        ),
        _same,
    ),
    LayerType.CONCATENATION: _concatenation,
    LayerType.CONSTANT: _constant,
    LayerType.GATHER: _gather,
    LayerType.PLUGIN_V2: _plugin,
    LayerType.REDUCE: _mask("axes"),
    LayerType.SCALE: _axis("channel_axis"),
    LayerType.SHUFFLE: _shuffle,
    LayerType.SOFTMAX: _softmax,
    LayerType.TOPK: _mask("axes"),
}
"""How the settings of a layer are those of the layer with its batch; layers that are missing need an explicit one."""

_SIZED = {LayerType.SLICE: (2, "shape"), LayerType.RESIZE: (1, "shape")}
"""Layers with the input and the setting for the size of their result."""

_WHOLE = frozenset({LayerType.CONCATENATION, LayerType.GATHER, LayerType.PLUGIN_V2, LayerType.RAGGED_SOFTMAX})
"""Layers whose inputs all have the batch; others broadcast."""
