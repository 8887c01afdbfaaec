"""Layers that came with version 8.6: casts, normalizations, reversed sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import dims, rank
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.layers_reduce import AxesMask, axes_in
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import EnumSetting, FloatSetting, IntSetting
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.layer_enums import LayerType

if TYPE_CHECKING:
    from mlirt.frontend.importing.network import Network, Value
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor


class ICastLayer(ILayer):
    """The elements in another type, as they are: without a scale."""

    KIND, TYPE = "Cast", LayerType.CAST
    to_type = EnumSetting(DataType.FLOAT)

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        return [ir.cast(ir.input(0), self.to_type)]


class INormalizationLayer(ILayer):
    """`(x - mean) / sqrt(variance + epsilon) * scale + bias` over axes.

    With `num_groups` the statistics are those of groups of channels and all axes behind; they are float32 whatever
    `compute_precision` says.
    """

    KIND, TYPE, INPUTS = "Normalization", LayerType.NORMALIZATION, 3
    epsilon = FloatSetting(1e-5)
    axes = AxesMask(0)
    num_groups = IntSetting(1)
    compute_precision = EnumSetting(DataType.FLOAT)

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        x, axes = ir.input(0), axes_in(self.axes)
        if not axes or axes[-1] >= rank(x.type):
            raise InvalidModelError(f"{self.name}: axes {axes} are none of a tensor of {rank(x.type)} dimensions")
        for index, role in ((1, "scale"), (2, "bias")):
            if rank(ir.input(index).type) != rank(x.type):
                raise InvalidModelError(
                    f"{self.name}: the {role} has {rank(ir.input(index).type)} dimensions, expected {rank(x.type)}, as "
                    "many as the input"
                )
        if self.num_groups == 1:
            return ir.by_importer(lambda net, given: self._normalized(net, given, axes))
        channels = dims(x.type)[1] if rank(x.type) > 2 else 0
        if self.num_groups < 1 or not isinstance(channels, int) or channels % self.num_groups or not channels:
            raise InvalidModelError(f"{self.name}: {self.num_groups} groups do not divide {channels} channels")
        if axes != list(range(2, rank(x.type))):
            raise InvalidModelError(f"{self.name}: groups of channels are normalized with all axes behind, not {axes}")
        return ir.by_importer(self._in_groups)

    def _normalized(self, net: Network, given: list[Value], axes: Sequence[int]) -> Sequence[Value]:
        from mlirt.frontend.importing import layers
        from mlirt.frontend.importing.normalization import layer_normalized

        x, scale, bias = given
        scale, bias = (layers.cast(net, one, x.element) for one in (scale, bias))
        return layer_normalized(net, x, scale, bias, axes, self.epsilon)[:1]

    def _in_groups(self, net: Network, given: list[Value]) -> Sequence[Value]:
        """Scale and bias have an element for each channel, or for each group."""
        from mlirt.frontend.importing import layers
        from mlirt.frontend.importing.normalization import standardized_groups

        x, scale, bias = given
        normalized = standardized_groups(net, layers.widened(net, x), self.num_groups, self.epsilon)
        ones = [1] * (normalized.rank - 3)
        for op, value in (("prod", scale), ("sum", bias)):
            inner = 1 if value.dims[1] == self.num_groups else x.dims[1] // self.num_groups
            wide = layers.reshape(net, layers.cast(net, value, normalized.element), [1, self.num_groups, inner, *ones])
            normalized = layers.binary(net, op, normalized, wide)
        return [layers.cast(net, layers.reshape(net, normalized, x.dims), x.element)]


class IReverseSequenceLayer(ILayer):
    """The first steps of each sequence of a batch, as many as its length says, in the opposite order."""

    KIND, TYPE, INPUTS = "ReverseSequence", LayerType.REVERSE_SEQUENCE, 2
    batch_axis = IntSetting(1)
    sequence_axis = IntSetting(0)

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        axes = {"batch_axis": self.batch_axis, "time_axis": self.sequence_axis}
        if sorted(axes.values()) != [0, 1]:
            raise InvalidModelError(f"{self.name}: the axes of batch and sequence are 0 and 1, not {axes}")
        return [ir.onnx("ReverseSequence", [ir.input(0), ir.input(1)], axes)]


class LaterMethods(Methods):
    """`add_cast`, `add_normalization`, `add_reverse_sequence`."""

    def add_cast(self, input: ITensor, to_type: DataType) -> ICastLayer:
        return self.graph.add(ICastLayer, [input], settings={"to_type": to_type})

    def add_normalization(self, input: ITensor, scale: ITensor, bias: ITensor, axesMask: int) -> INormalizationLayer:
        return self.graph.add(INormalizationLayer, [input, scale, bias], settings={"axes": axesMask})

    def add_reverse_sequence(self, input: ITensor, sequence_lens: ITensor) -> IReverseSequenceLayer:
        return self.graph.add(IReverseSequenceLayer, [input, sequence_lens])


__all__ = ["ICastLayer", "INormalizationLayer", "IReverseSequenceLayer", "LaterMethods"]
