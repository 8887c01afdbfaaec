"""What a direct convolution reads: pixels and weights by channel, whatever the layout and the grouping."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.tensor_types import channels, dims, rank
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.loops.block_lanes import surplus
from mlirt.kernels.lib.loops.taps import Axis, AxisCode, TransposedAxisCode


class ConvolutionOperands:
    """The input, the kernel and the window of a convolution, as arguments of a kernel."""

    def __init__(self, k: KernelBuilder, op: ConvolutionOp) -> None:
        self._k, self._op = k, op
        weights, groups = dims(op.kernel.type), op.groups.value.data
        self._transposed = bool(op.transposed.value.data)
        self._is_grouped = groups > 1
        self.depth = k.size(weights[0] // groups if self._transposed else weights[1])
        self._outputs_per_group = k.size(weights[1] if self._transposed else weights[0] // groups)
        self.axes = [TransposedAxisCode(k, axis) if self._transposed else AxisCode(k, axis) for axis in _axes(op)]
        self._input_lanes = k.size(dims(op.input.type)[-1]) if channels(op.input.type) is not None else None
        self._output_lanes = k.size(dims(op.output.type)[-1]) if channels(op.output.type) is not None else None
        last = surplus(op.output.type)
        self._channels = None if last is None else k.size(last)

    def channel(self, loops: list[SSAValue]) -> tuple[SSAValue, SSAValue | None]:
        """The channel of a result element, and whether there is one (None: always)."""
        if self._output_lanes is None:
            return loops[1], None
        channel = self._k.add(self._k.mul(loops[1], self._output_lanes), loops[rank(self._op.output.type) - 1])
        return channel, None if self._channels is None else self._k.compare("slt", channel, self._channels)

    def group(self, channel: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The first input channel of the group of a result channel, and the place of the latter in its group."""
        k = self._k
        if not self._is_grouped:
            return k.constant(0), channel
        number, within = self._split(channel, self._outputs_per_group)
        return k.mul(number, self.depth), within

    def starts(self, loops: list[SSAValue]) -> list[SSAValue]:
        """Where the window of a result element starts."""
        return [axis.start(position) for axis, position in zip(self.axes, loops[2:], strict=False)]

    def cells(self, starts: list[SSAValue], taps: list[SSAValue]) -> tuple[list[SSAValue], SSAValue | None]:
        """The input cells of a tap, and whether it lies inside (None: always)."""
        cells: list[SSAValue] = []
        valid: SSAValue | None = None
        for axis, start, tap in zip(self.axes, starts, taps, strict=True):
            cell, inside = axis.place(start, tap)
            cells.append(cell)
            valid = self._k.both(valid, inside)
        return cells, valid

    def pixel(self, batch: SSAValue, channel: SSAValue, cells: list[SSAValue]) -> SSAValue:
        """An element of the input."""
        if self._input_lanes is None:
            return self._k.load(self._op.input, [batch, channel, *cells])
        block, lane = self._split(channel, self._input_lanes)
        return self._k.load(self._op.input, [batch, block, *cells, lane])

    def weight(self, first: SSAValue, depth: SSAValue, channel: SSAValue, taps: list[SSAValue]) -> SSAValue:
        """An element of the kernel for the `depth`-th input channel of the group that starts at channel `first`."""
        if self._transposed:
            return self._k.load(self._op.kernel, [self._k.add(first, depth), self.group(channel)[1], *taps])
        return self._k.load(self._op.kernel, [channel, depth, *taps])

    def _split(self, channel: SSAValue, size: SSAValue) -> tuple[SSAValue, SSAValue]:
        return self._k.div(channel, size), self._k.rem(channel, size)


def _axes(op: ConvolutionOp) -> list[Axis]:
    spatial = op.spatial()
    lengths, outputs, sizes = (dims(value.type)[2:] for value in (op.input, op.output, op.kernel))
    return [
        Axis(size, stride, dilation, pre, length, output)
        for size, (stride, dilation, pre, _), length, output in zip(sizes, spatial, lengths, outputs, strict=False)
    ]
