"""Warp-specialised flash attention on Hopper GPUs: warpgroups multiply tiles that a producer thread copies by TMA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, i64

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.gpu_architectures import WARPGROUPS
from mlirt.dialects.kernel.warpgroup import WARPGROUP
from mlirt.dialects.symbolic import ceil_div, product
from mlirt.dialects.tensor_types import element_of, is_half
from mlirt.kernels.attention.cuda.flash_blocks import (
    Heads,
    fits_narrow,
    has_one_element,
    heads_of,
    place_of,
    range_of,
    work_of,
)
from mlirt.kernels.attention.cuda.flash_scores import FlashScores
from mlirt.kernels.attention.cuda.group_copies import Boxes, GroupMemory, mapped
from mlirt.kernels.attention.cuda.group_kernel import GroupKernel
from mlirt.kernels.attention.cuda.group_shape import GroupShape, group_shapes
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.language import build, kernel
from mlirt.kernels.lib.language.hopper_words import set_registers, warp_uniform
from mlirt.kernels.lib.language.simt_words import sync_threads, thread_id
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (AttentionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20

_VALUE_ROWS = 64  # of a box of values
_WIDTH = 8  # neighbouring results that a thread writes
# Registers of a thread by the number of warpgroups that multiply: of those that copy, and of the others.
_REGISTERS = {2: (40, 232), 3: (32, 160)}


def estimates(op: AttentionOp, lowering: Lowering) -> Mapping[str, float]:
    shapes = _shapes(op, lowering)
    work = work_of(op, lowering) if shapes else None
    return {} if work is None else {shape.name: shape.microseconds(work) for shape in shapes}


def lower(op: AttentionOp, lowering: Lowering) -> bool:
    shape = next((shape for shape in _shapes(op, lowering) if shape.name == lowering.choice(op)), None)
    if shape is None:
        return False
    _build(op, shape, heads_of(op, lowering), lowering)
    return True


def _shapes(op: AttentionOp, lowering: Lowering) -> Sequence[GroupShape]:
    """The shapes that apply: none where the elements or the way they lie in memory do not fit."""
    element, depth, columns = element_of(op.query.type), op.depth, op.columns
    same = has_one_element(op)
    if not lowering.target.has(WARPGROUPS) or not is_half(element) or not same:
        return ()
    if op.score.block.args[0].type != f32 or not isinstance(depth, int) or not isinstance(columns, int):
        return ()
    heads = heads_of(op, lowering)
    contiguous = [heads.walks.query.depth, heads.walks.key.depth, heads.walks.values.column, heads.walks.out.column]
    rows = (heads.queries, heads.keys, heads.values)
    if contiguous != [1] * 4 or not all(mapped(one, op.batch, lowering).fits() for one in rows):
        return ()
    return group_shapes(depth, columns, lowering.target.gpu)


def _build(op: AttentionOp, shape: GroupShape, heads: Heads, lowering: Lowering) -> None:
    k = lowering.kernel("attention")
    build(k, _attend, op, shape, heads, lowering)
    k.function.attributes["architecture"] = StringAttr(lowering.target.arch)
    if fits_narrow(op, lowering):
        k.function.attributes["index_bits"] = IntegerAttr(32, i64)
    k.finish(op, grid=[ceil_div(op.queries, shape.queries) * product(op.batch), 1, 1], block=[shape.threads])


@kernel
def _attend(op: AttentionOp, shape: GroupShape, heads: Heads, lowering: Lowering) -> None:
    """The attention of a block's queries: one warpgroup copies, the others multiply."""
    element, thread = element_of(op.query.type), thread_id()
    rows = (heads.queries, heads.keys, heads.values)
    heights = ((shape.queries, 1), (shape.keys, 1), (_VALUE_ROWS, shape.keys // _VALUE_ROWS))
    query, key, value = [
        Boxes.of(one, mapped(one, op.batch, lowering), *height) for one, height in zip(rows, heights, strict=True)
    ]
    memory = GroupMemory(element, shape, (query, key, value))
    memory.initialise(thread)
    sync_threads()
    tile, batch = place_of(op, shape)
    first_query = tile * shape.queries
    tiles = range_of(op, shape, first_query)
    if op.last_key is not None:
        tiles = replace(tiles, count=max(tiles.count, 1))  # the first tile comes before the loop
    group = warp_uniform(thread // WARPGROUP)
    if group == shape.groups:
        _give_registers(shape, 0)
        if thread % WARPGROUP == 0:
            memory.fill(batch, first_query, tiles.count)
    else:
        _give_registers(shape, 1)
        columns, zero_masked = heads.values.width, bool(op.zero_masked.value.data)
        multiplied = GroupKernel(shape, element, columns, memory, group, thread, zero_masked)
        thread_query = first_query + multiplied.first_row + multiplied.lane // 4
        scores = FlashScores(op, shape, heads.walks.extras, batch, thread_query, multiplied.lane)
        results = multiplied.results(tiles, scores)
        multiplied.write(results, op, heads.walks.out, first_query, batch, _writes_wide(op, heads, lowering))


def _give_registers(shape: GroupShape, role: int) -> None:
    """Those of the warpgroup that copies to those that multiply."""
    if shape.groups in _REGISTERS:
        set_registers(_REGISTERS[shape.groups][role], grow=bool(role))


def _writes_wide(op: AttentionOp, heads: Heads, lowering: Lowering) -> bool:
    out = heads.walks.out
    return widest_access(op.output, [out.query, *out.batch, out.offset], lowering) >= _WIDTH
