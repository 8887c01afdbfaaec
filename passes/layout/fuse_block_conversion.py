"""Fuses the copy of a tensor out of blocks of channels into the pointwise op that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.tensor_types import dims, element_of, halo, is_row_major, row_length, tensor
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class FuseBlockConversionPass(RulePass):
    """Let a pointwise op read a tensor in blocks of channels, where it alone reads the copy that is in plain order.

    Such ops reorder or join images: those that keep the order of an image are in blocks themselves. The channels of the
    result are two dimensions for the op, blocks and places in them, so that what it reads is whole blocks. One
    dimension of the result must be the channels, and the channels whole blocks.

    Before:

        %p = fused.reformat %b : (tensor<6x2x5x5x16xf32, #trt.dims<[..], channels = "32">>) -> tensor<6x32x5x5xf32>
        %y = fused.pointwise %p {access = [["3*d0 + d2", "d1", "d3", "d4"]]} : tensor<2x32x3x5x5xf32>

    After:

        %v = fused.view %b : (..) -> tensor<6x2x5x5x16xf32>
        %r = fused.pointwise %v {access = [["3*d0 + d3", "d1", "d4", "d5", "d2"]]} : tensor<2x2x16x3x5x5xf32>
        %y = fused.view %r : (..) -> tensor<2x32x3x5x5xf32>
    """

    name = "fuse-block-conversion"

    @rule(op(PointwiseOp).named("reader"))
    def fuse(self, m: Match, reader: PointwiseOp) -> Outcome:
        copies = [value.owner for value in reader.inputs if _leaves_blocks(value)]
        if not copies:
            return None
        (copy, *others) = copies
        assert isinstance(copy, ReformatOp)
        if others or any(use.operation is not reader for use in copy.output.uses):
            return "the copy has other readers" if not others else "it reads several copies out of blocks"
        at = list(reader.inputs).index(copy.output)
        channel = _channel(reader, at)
        if isinstance(channel, str):
            return channel
        m.drop(copy)
        return _in_blocks(m, reader, at, channel, copy)


def _leaves_blocks(value: SSAValue) -> bool:
    """Whether a value is a copy out of whole blocks, without cells around the images."""
    copy = value.owner
    if not isinstance(copy, ReformatOp) or not is_blocked(copy.input.type) or is_blocked(copy.output.type):
        return False
    count, lanes = dims(copy.output.type)[1], dims(copy.input.type)[-1]
    is_whole = isinstance(count, int) and isinstance(lanes, int) and count % lanes == 0
    return is_whole and not any(halo(copy.input.type) or ()) and _is_plain(copy.output)


def _channel(reader: PointwiseOp, at: int) -> int | str:
    """The dimension of the result that is the copy's channels; else why the op does not read blocks."""
    if len(reader.outputs) != 1 or not _is_plain(reader.outputs[0]):
        return "its result has a memory order of its own"
    if any(isinstance(inner, IndexOp) for inner in reader.body.block.ops):
        return "its body asks where an element is"
    space = dims(reader.outputs[0].type)
    own = reader.access.data[at].indices()
    channel = next((axis for axis in range(len(space)) if own[1] == iteration(axis)), None)
    if channel is None or space[channel] != dims(reader.inputs[at].type)[1]:
        return "no dimension of its result is the channels"
    if _mentions((*own[:1], *own[2:]), channel) or own[-1] != iteration(len(space) - 1) or channel == len(space) - 1:
        return "rows of its result are no rows of the images"
    for number, (value, access) in enumerate(zip(reader.inputs, reader.access.data, strict=True)):
        if number != at and not _reads_along(value, access, channel, len(space)):
            return "another operand lies across its result"
    return channel


def _reads_along(value: SSAValue, access: AccessAttr, channel: int, rank: int) -> bool:
    """Whether an operand can be read as well: by whole channels, and along memory where it is read along rows."""
    indices = access.indices()
    if any(_mentions([index], channel) and index != iteration(channel) for index in indices):
        return False
    is_split = sum(index == iteration(channel) for index in indices)
    if is_split > 1 or (is_split and not _is_plain(value)):
        return False
    return is_row_major(value.type) and not _mentions(indices[:-1], rank - 1)


def _in_blocks(m: Match, reader: PointwiseOp, at: int, channel: int, copy: ReformatOp) -> Operation:
    source, space = copy.input, list(dims(reader.outputs[0].type))
    blocks, lanes = dims(source.type)[1], dims(source.type)[-1]
    moved: dict[str, Dim] = {f"d{axis}": iteration(axis + 1) for axis in range(channel + 1, len(space))}
    inputs: list[SSAValue] = []
    accesses: list[AccessAttr] = []
    for number, (value, access) in enumerate(zip(reader.inputs, reader.access.data, strict=True)):
        indices = list(access.substituted(moved).indices())
        if number == at:
            value = m.insert(ViewOp(source, tensor(element_of(source.type), dims(source.type))), copy).output
            indices = [*indices, iteration(channel + 1)]
        elif iteration(channel) in indices:
            axis = indices.index(iteration(channel))
            value = _split(m, value, axis, blocks, lanes)
            indices[axis + 1 : axis + 1] = [iteration(channel + 1)]
        inputs.append(value)
        accesses.append(AccessAttr.of(indices))
    result = reader.outputs[0].type
    wide = tensor(element_of(result), [*space[:channel], blocks, lanes, *space[channel + 1 :]])
    made = m.insert(PointwiseOp(inputs, accesses, [wide], reader.detach_region(reader.body)), copy, reader)
    return m.insert(ViewOp(made.outputs[0], result), reader)


def _split(m: Match, value: SSAValue, axis: int, blocks: Dim, lanes: Dim) -> SSAValue:
    """An operand whose channels are blocks and places in them."""
    shape = list(dims(value.type))
    shape[axis : axis + 1] = [blocks, lanes]
    return m.insert(ViewOp(value, tensor(element_of(value.type), shape))).output


def _is_plain(value: SSAValue) -> bool:
    return is_row_major(value.type) and not row_length(value.type) and not is_blocked(value.type)


def _mentions(indices: Sequence[Dim], axis: int) -> bool:
    return any(f"d{axis}" in symbols(index) for index in indices)


__all__ = ["FuseBlockConversionPass"]
