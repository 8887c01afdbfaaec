"""Layers that move elements without computing: transposes, reshapes, slices, padding and joins."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirt.dialects.fused.access import broadcast_access, iteration
from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.fused.scalar_builder import Scalars
from mlirt.dialects.integer_list import integers
from mlirt.dialects.slicing import PAD_READS, PadMode, SliceMode
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.dialects.trt.broadcast import BroadcastOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.padding import PaddingOp
from mlirt.dialects.trt.shape import ShapeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions, require_known

_SLICE_PADS = {read: pad for pad, read in PAD_READS.items()}


def convert_shuffle(at: Conversion) -> None:
    """`trt.shuffle` becomes a permuted read, a view and a permuted read, as far as each changes something."""
    op = at.op
    assert isinstance(op, ShuffleOp)
    final = dims(op.output.type)
    second = range(len(final)) if op.second_transpose is None else integers(op.second_transpose)
    middle = list(final)
    for axis, source in enumerate(second):
        middle[source] = final[axis]
    first = range(len(dims(op.input.type))) if op.first_transpose is None else integers(op.first_transpose)
    value = at.transposed(op.input, first)
    if op.shape is not None or op.reshape_dims is not None:
        value = at.reshaped(value, middle)
    at.replace(at.transposed(value, second))


def convert_slice(at: Conversion) -> None:
    """`trt.slice` becomes a strided read, or where it may leave the input a `fused.pad` that crops."""
    op = at.op
    assert isinstance(op, SliceOp)
    starts, strides, shape = op.starts(), op.strides(), dims(op.output.type)
    require_known(at, starts, "start")
    require_known(at, strides, "stride")
    if op.mode.data is SliceMode.STRICT_BOUNDS:
        steps = enumerate(zip(starts, strides, shape, strict=True))
        indices = [start if size == 1 else start + iteration(axis) * stride for axis, (start, stride, size) in steps]
        at.replace(at.moved(op.input, shape, indices))
        return
    mode = _SLICE_PADS[op.mode.data]
    fill = op.fill if op.mode.data is SliceMode.FILL else None
    at.replace(at.emit(PadOp(op.input, [start * -1 for start in starts], op.output.type, mode, fill, strides)))


def convert_broadcast(at: Conversion) -> None:
    """`trt.broadcast` becomes a read that stays at index 0 of a dimension where a run finds it to be 1."""
    op = at.op
    assert isinstance(op, BroadcastOp)
    shape = dims(op.output.type)
    at.replace(at.moved(op.input, shape, broadcast_access(dims(op.input.type), shape).indices()))


def convert_padding(at: Conversion) -> None:
    """`trt.padding` becomes `fused.pad`."""
    op = at.op
    assert isinstance(op, PaddingOp)
    mode = op.mode.data
    fill = op.value if mode is PadMode.CONSTANT else None
    at.replace(at.emit(PadOp(op.input, integers(op.pre), op.output.type, mode, fill)))


def convert_concatenation(at: Conversion) -> None:
    """`trt.concatenation` becomes `fused.concat`."""
    op = at.op
    assert isinstance(op, ConcatenationOp)
    at.replace(at.emit(ConcatOp(list(op.inputs), op.axis.value.data, op.output.type)))


def convert_shape(at: Conversion) -> None:
    """`trt.shape` of constant dimensions becomes a constant, of dynamic ones a pointwise op that names the sizes."""
    import numpy as np

    op = at.op
    assert isinstance(op, ShapeOp)
    shape = dims(op.input.type)
    lengths = [length for length in shape if isinstance(length, int)]
    if len(lengths) == len(shape):
        return at.replace(at.constant(np.array(lengths, np.int64)))

    def formula(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
        position, found = s.index(0), s.size(shape[0])
        for axis, length in enumerate(shape[1:], 1):
            found = s.select(s.compare("eq", position, s.constant(axis)), s.size(length), found)
        return found

    at.replace(at.pointwise([], op.output.type, element_of(op.output.type), formula, access=[]))


CONVERSIONS: Conversions = {
    ShuffleOp: convert_shuffle,
    SliceOp: convert_slice,
    BroadcastOp: convert_broadcast,
    PaddingOp: convert_padding,
    ConcatenationOp: convert_concatenation,
    ShapeOp: convert_shape,
}
