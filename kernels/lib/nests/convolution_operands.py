"""What a direct convolution reads: pixels and weights by channel, whatever the layout and the grouping."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.tensor_types import channels, dims
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Value, kernel, value_of
from mlirt.kernels.lib.language.words import Elements, place
from mlirt.kernels.lib.loops.block_lanes import surplus
from mlirt.kernels.lib.nests.taps import Axis, AxisCode, TransposedAxisCode


class ConvolutionOperands:
    """The input, the kernel and the window of a convolution, as arguments of a kernel."""

    def __init__(self, k: KernelBuilder, op: ConvolutionOp) -> None:
        self._op = op
        weights, groups = dims(op.kernel.type), op.groups.value.data
        self._transposed = bool(op.transposed.value.data)
        self._is_grouped = groups > 1
        self.depth = value_of(k.size(weights[0] // groups if self._transposed else weights[1]))
        self._outputs_per_group = value_of(k.size(weights[1] if self._transposed else weights[0] // groups))
        self.axes = [TransposedAxisCode(k, axis) if self._transposed else AxisCode(k, axis) for axis in _axes(op)]
        self._input_lanes = _lanes(k, op.input)
        self._output_lanes = _lanes(k, op.output)
        last = surplus(op.output.type)
        self._channels = None if last is None else value_of(k.size(last))

    @kernel
    def channel(self, loops: Sequence[Value]) -> tuple[Value, bool]:
        """The channel of a result element, and whether there is one."""
        if self._output_lanes is None:
            return loops[1], True
        channel = loops[1] * self._output_lanes + loops[-1]
        return channel, self._channels is None or channel < self._channels

    @kernel
    def group(self, channel: Value) -> tuple[Value, Value]:
        """The first input channel of the group of a result channel, and the place of the latter in its group."""
        if not self._is_grouped:
            return place(0), channel
        return channel // self._outputs_per_group * self.depth, channel % self._outputs_per_group

    @kernel
    def starts(self, loops: Sequence[Value]) -> list[Value]:
        """Where the window of a result element starts."""
        return [axis.start(position) for axis, position in zip(self.axes, loops[2:], strict=False)]

    @kernel
    def cells(self, starts: Sequence[Value], taps: Sequence[Value]) -> tuple[list[Value], bool]:
        """The input cells of a tap, and whether it lies inside."""
        found = [axis.place(start, tap) for axis, start, tap in zip(self.axes, starts, taps, strict=True)]
        return [cell for cell, _ in found], all(inside for _, inside in found)

    @kernel
    def pixel(self, batch: Value, channel: Value, cells: Sequence[Value]) -> Value:
        """An element of the input."""
        if self._input_lanes is None:
            return Elements(self._op.input)[batch, channel, *cells]
        return Elements(self._op.input)[batch, channel // self._input_lanes, *cells, channel % self._input_lanes]

    @kernel
    def weight(self, first: Value, depth: Value, channel: Value, taps: Sequence[Value]) -> Value:
        """An element of the kernel for the `depth`-th input channel of the group that starts at channel `first`."""
        if self._transposed:
            return Elements(self._op.kernel)[first + depth, self.group(channel)[1], *taps]
        return Elements(self._op.kernel)[channel, depth, *taps]


def _lanes(k: KernelBuilder, value: SSAValue) -> Value | None:
    """The lanes of a blocked tensor."""
    return None if channels(value.type) is None else value_of(k.size(dims(value.type)[-1]))


def _axes(op: ConvolutionOp) -> list[Axis]:
    spatial = op.spatial()
    lengths, outputs, sizes = (dims(value.type)[2:] for value in (op.input, op.output, op.kernel))
    return [
        Axis(size, stride, dilation, pre, length, output)
        for size, (stride, dilation, pre, _), length, output in zip(sizes, spatial, lengths, outputs, strict=False)
    ]
