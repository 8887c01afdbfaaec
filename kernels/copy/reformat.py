"""Copies between memory layouts as one parallel loop nest."""

from __future__ import annotations

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import channels, dims, element_of, is_row_major, memory_order, row_length
from mlirt.kernels.lib.copying import copy
from mlirt.kernels.lib.language import build, kernel
from mlirt.kernels.lib.language.words import Elements, ceil_div, constant, extent, parallel
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering


def lower(op: ReformatOp, lowering: Lowering) -> bool:
    """Copy each element of the result; lanes beyond the last channel and the ends of longer rows become zero."""
    enters, leaves = is_blocked(op.output.type), is_blocked(op.input.type)
    is_longer = bool(row_length(op.output.type)) and not (enters or leaves)
    if not (is_longer or enters or leaves) and not (is_row_major(op.input.type) and is_row_major(op.output.type)):
        copy(op.input, lowering.placements[op.output], op, lowering)
        return True
    k = lowering.kernel("reformat")
    if is_longer:
        inner, space = memory_order(op.output.type)[-1], list(dims(op.output.type))
        length, space[inner] = space[inner], row_length(op.output.type)
        nest = Nest.of(space, [whole(op.input, lowering), whole(op.output, lowering)]).ordered(1)
        build(k, _to_longer_rows, op, NestCode(k, collapse(nest, frozenset({inner}))), inner, length)
    else:
        build(k, _copy if enters == leaves else _to_blocked if enters else _to_plain, op)
    k.finish(op)
    return True


@kernel
def _copy(op: ReformatOp) -> None:
    x, y = Elements(op.input), Elements(op.output)
    for at in parallel(dims(op.output.type)):
        y[at] = x[at]


@kernel
def _to_longer_rows(op: ReformatOp, code: NestCode, inner: int, length: Dim) -> None:
    """`y[.., i] = x[.., i]`, zero from the length of the innermost dimension to that of its rows."""
    for loops in parallel(code.extents()):
        value = constant(0, element_of(op.output.type))
        if code.original(inner, loops) < extent(length):
            value = code.load(0, loops)
        code.store(value, 1, loops)


@kernel
def _to_plain(op: ReformatOp) -> None:
    """`y[n, c, h, w] = x[n, c // b, h, w, c % b]`."""
    x, y = Elements(op.input), Elements(op.output)
    for batch, channel, row, column in parallel(dims(op.output.type)):
        lanes = extent(dims(op.input.type)[-1])
        block = channel // lanes
        y[batch, channel, row, column] = x[batch, block, row, column, channel - block * lanes]


@kernel
def _to_blocked(op: ReformatOp) -> None:
    """`y[n, b, h, w, l] = x[n, b * lanes + l, h, w]`, zero where there is no such channel."""
    x, y, count, lanes = Elements(op.input), Elements(op.output), channels(op.output.type), dims(op.output.type)[-1]
    assert count is not None
    for batch, block, row, column, lane in parallel(dims(op.output.type)):
        channel = block * extent(lanes) + lane
        if count == ceil_div(count, lanes) * lanes:
            value = x[batch, channel, row, column]
        else:
            inside = channel < extent(count)
            last = extent(count) - 1
            element = x[batch, channel if inside else last, row, column]
            value = element if inside else constant(0, element_of(op.output.type))
        y[batch, block, row, column, lane] = value
