"""Copies between memory layouts as one parallel loop nest."""

from __future__ import annotations

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.symbolic import ceil_div
from mlirt.dialects.tensor_types import channels, dims, element_of, is_row_major, memory_order, row_length
from mlirt.kernels.lib.copying import copy
from mlirt.kernels.lib.loops.block_lanes import zero
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

OPS = (ReformatOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: ReformatOp, lowering: Lowering) -> bool:
    """Copy each element of the result; lanes beyond the last channel and the ends of longer rows become zero."""
    are_blocked = is_blocked(op.input.type) or is_blocked(op.output.type)
    if row_length(op.output.type) and not are_blocked:
        return _to_longer_rows(op, lowering)
    if not are_blocked and not (is_row_major(op.input.type) and is_row_major(op.output.type)):
        copy(op.input, lowering.placements[op.output], op, lowering)
        return True
    k = lowering.kernel("reformat")
    if is_blocked(op.input.type) and not is_blocked(op.output.type):
        _to_plain(k, op)
    elif is_blocked(op.output.type) and not is_blocked(op.input.type):
        _to_blocked(k, op)
    else:
        with k.parallel(dims(op.output.type)) as indices:
            k.store(k.load(op.input, indices), op.output, indices)
    k.finish(op)
    return True


def _to_longer_rows(op: ReformatOp, lowering: Lowering) -> bool:
    """`y[.., i] = x[.., i]`, zero from the length of the innermost dimension to that of its rows."""
    inner, space = memory_order(op.output.type)[-1], list(dims(op.output.type))
    length, space[inner] = space[inner], row_length(op.output.type)
    k = lowering.kernel("reformat")
    nest = Nest.of(space, [whole(op.input, lowering), whole(op.output, lowering)]).ordered(1)
    code = NestCode(k, collapse(nest, frozenset({inner})))
    with k.parallel(code.extents()) as loops:
        inside = k.compare("slt", code.original(inner, loops), k.size(length))
        value = k.guarded(inside, lambda: code.load(0, loops), zero(k, element_of(op.output.type)))
        code.store(value, 1, loops)
    k.finish(op)
    return True


def _to_plain(k: KernelBuilder, op: ReformatOp) -> None:
    """`y[n, c, h, w] = x[n, c // b, h, w, c % b]`."""
    lanes = dims(op.input.type)[-1]
    with k.parallel(dims(op.output.type)) as (batch, channel, row, column):
        width = k.size(lanes)
        block = k.div(channel, width)
        lane = k.sub(channel, k.mul(block, width))
        k.store(k.load(op.input, [batch, block, row, column, lane]), op.output, [batch, channel, row, column])


def _to_blocked(k: KernelBuilder, op: ReformatOp) -> None:
    """`y[n, b, h, w, l] = x[n, b * lanes + l, h, w]`, zero where there is no such channel."""
    count, lanes = channels(op.output.type), dims(op.output.type)[-1]
    assert count is not None
    with k.parallel(dims(op.output.type)) as (batch, block, row, column, lane):
        channel = k.add(k.mul(block, k.size(lanes)), lane)
        if count == ceil_div(count, lanes) * lanes:
            value = k.load(op.input, [batch, channel, row, column])
        else:
            inside = k.compare("slt", channel, k.size(count))
            last = k.sub(k.size(count), k.constant(1))
            safe = k.select(inside, channel, last)
            loaded = k.load(op.input, [batch, safe, row, column])
            value = k.select(inside, loaded, zero(k, element_of(op.output.type)))
        k.store(value, op.output, [batch, block, row, column, lane])
