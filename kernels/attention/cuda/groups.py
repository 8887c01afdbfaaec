"""Warp-specialised flash attention on Hopper GPUs: warpgroups multiply tiles that a producer thread copies by TMA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace

from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, i64

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.gpu_architectures import WARPGROUPS
from mlirt.dialects.kernel.warpgroup import WARPGROUP
from mlirt.dialects.symbolic import Dim, ceil_div, minimum, product
from mlirt.dialects.target import FIXED_REGISTERS
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
from mlirt.kernels.attention.cuda.group_copies import Boxes, GroupMemory, Work, mapped
from mlirt.kernels.attention.cuda.group_kernel import GroupKernel
from mlirt.kernels.attention.cuda.group_shape import GroupShape, group_shapes
from mlirt.kernels.attention.cuda.register_shares import give_registers
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.language import Index, Value, build, kernel
from mlirt.kernels.lib.language.hopper_words import each_warpgroup, warp_uniform
from mlirt.kernels.lib.language.simt_words import block_id, grid_size, sync_threads, thread_id
from mlirt.kernels.lib.language.words import ceil_div as ceil_div_value
from mlirt.kernels.lib.language.words import size
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (AttentionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20

_VALUE_ROWS = 64  # of a box of values
_WIDTH = 8  # neighbouring results that a thread writes


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
    fixed = FIXED_REGISTERS in lowering.target.special
    return group_shapes(depth, columns, lowering.target.gpu, fixed=fixed)


def _build(op: AttentionOp, shape: GroupShape, heads: Heads, lowering: Lowering) -> None:
    k = lowering.kernel("attention")
    build(k, _attend, op, shape, heads, lowering)
    k.function.attributes["architecture"] = StringAttr(lowering.target.arch)
    if fits_narrow(op, lowering):
        k.function.attributes["index_bits"] = IntegerAttr(32, i64)
    blocks = _query_tiles(op, shape)
    if shape.stays:
        blocks = minimum(blocks, lowering.target.gpu.processors)
    k.finish(op, grid=[blocks, 1, 1], block=[shape.threads])


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
    block = block_id()
    work = None if shape.stays else _work(op, shape, block)
    group, held = warp_uniform(thread // WARPGROUP), shape.held(heads.values.width)
    if group == shape.groups:
        give_registers(shape.groups, held, multiplies=False)
        if thread % WARPGROUP == 0:
            if work is None:
                _fill_all(op, shape, memory, block)
            else:
                memory.fill(work)
    else:
        give_registers(shape.groups, held, multiplies=True)
        columns, zero_masked = heads.values.width, bool(op.zero_masked.value.data)
        multiplied = GroupKernel(shape, element, columns, memory, group, thread, zero_masked)
        wide = _writes_wide(op, heads, lowering)
        with each_warpgroup() if shape.takes_turns else nullcontext():
            if work is None:
                _multiply_all(op, shape, heads, multiplied, block, wide)
            else:
                _multiply(op, shape, heads, multiplied, work, wide)


@kernel
def _work(op: AttentionOp, shape: GroupShape, block: Value, number: Index | None = None) -> Work:
    """What the block of a number does."""
    tile, batch = place_of(op, shape, block)
    first_query = tile * shape.queries
    tiles = range_of(op, shape, first_query)
    if op.last_key is not None:
        tiles = replace(tiles, count=max(tiles.count, 1))  # the first tile comes before the loop
    return Work(batch, first_query, tiles, number)


@kernel
def _count(op: AttentionOp, shape: GroupShape, block: Value) -> Value:
    """How many tiles of queries a persistent block has: each as many further on as there are blocks."""
    return ceil_div_value(size("query_tiles", _query_tiles(op, shape)) - block, grid_size())


@kernel
def _fill_all(op: AttentionOp, shape: GroupShape, memory: GroupMemory, block: Value) -> None:
    """Start the copies of all that a block does, each when there is room."""
    done, blocks = 0, grid_size()
    for i in range(_count(op, shape, block)):
        work = _work(op, shape, block + i * blocks, i)
        memory.fill(work, done)
        done += work.tiles.count


@kernel
def _multiply_all(
    op: AttentionOp, shape: GroupShape, heads: Heads, multiplied: GroupKernel, block: Value, wide: bool
) -> None:
    """One tile of queries after the other."""
    done, blocks = 0, grid_size()
    for i in range(_count(op, shape, block)):
        work = _work(op, shape, block + i * blocks, i)
        _multiply(op, shape, heads, multiplied, work, wide, done)
        done += work.tiles.count


@kernel
def _multiply(
    op: AttentionOp,
    shape: GroupShape,
    heads: Heads,
    multiplied: GroupKernel,
    work: Work,
    wide: bool,
    done: Index | None = None,
) -> None:
    """The results of a warpgroup for its part of a tile of queries."""
    thread_query = work.first_query + multiplied.first_row + multiplied.lane // 4
    scores = FlashScores(op, shape, heads.walks.extras, work.batch, thread_query, multiplied.lane)
    results = multiplied.results(work, scores, done)
    multiplied.write(results, op, heads.walks.out, work.first_query, work.batch, wide)


def _query_tiles(op: AttentionOp, shape: GroupShape) -> Dim:
    """Tiles of queries of all batch entries."""
    return ceil_div(op.queries, shape.queries) * product(op.batch)


def _writes_wide(op: AttentionOp, heads: Heads, lowering: Lowering) -> bool:
    out = heads.walks.out
    return widest_access(op.output, [out.query, *out.batch, out.offset], lowering) >= _WIDTH
