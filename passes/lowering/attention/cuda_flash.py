"""Attention of half precision on the matrix units of a GPU, the scores in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from xdsl.dialects.builtin import IntegerAttr, f32, i64
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.kernel.simt import BlockIdOp, ThreadIdOp
from mlirt.dialects.symbolic import Dim, ceil_div, product
from mlirt.dialects.tensor_types import byte_width, element_of
from mlirt.passes.lowering.attention.flash_kernel import FlashKernel, Loaders, Range
from mlirt.passes.lowering.attention.flash_results import ResultWriter
from mlirt.passes.lowering.attention.flash_scores import FlashScores
from mlirt.passes.lowering.attention.flash_shape import FlashShape, FlashWork, shapes_for
from mlirt.passes.lowering.attention.flash_tiles import FlashTiles, Rows, loader
from mlirt.passes.lowering.attention.walks import Walks
from mlirt.passes.lowering.kernel_builder import KernelBuilder
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.tiles.problem import is_half
from mlirt.passes.lowering.typical_sizes import typical, typical_values

OPS = (AttentionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_HEADS_TOGETHER = 16  # whose keys and values fit into the second-level cache
_SMALLEST_COPY = 4  # bytes of the smallest asynchronous copy
_INDEX_LIMIT = 2**31


def choices(op: Operation, lowering: Lowering) -> list[str]:
    assert isinstance(op, AttentionOp)
    return [shape.name for shape in _shapes(op, lowering)]


def cost(op: Operation, lowering: Lowering, choice: str) -> float:
    assert isinstance(op, AttentionOp)
    known = typical_values(lowering.block)
    work = FlashWork(
        typical(product(op.batch), known),
        typical(op.queries, known),
        typical(op.keys, known),
        typical(op.depth, known),
        typical(op.columns, known),
        op.last_key is not None,
    )
    (shape,) = (shape for shape in _shapes(op, lowering) if shape.name == choice)
    return work.microseconds(shape)


def lower(op: Operation, lowering: Lowering) -> bool:
    assert isinstance(op, AttentionOp)
    shape = next((shape for shape in _shapes(op, lowering) if shape.name == lowering.choice(op)), None)
    if shape is None:
        return False
    heads, element = _heads(op, lowering), element_of(op.query.type)
    depth, columns = heads.queries.width, heads.values.width
    k = lowering.kernel("attention")
    thread = k.value(ThreadIdOp())
    thread.name_hint = "thread"
    tile, batch = _place(k, op, shape)
    tiles = FlashTiles.allocate(k, element, shape, depth, columns)
    flash = FlashKernel(k, shape, element, depth, columns, tiles, thread, bool(op.zero_masked.value.data))
    loaders = Loaders(
        loader(k, heads.queries, tiles.queries, batch, thread, shape, lowering),
        loader(k, heads.keys, tiles.keys, batch, thread, shape, lowering),
        loader(k, heads.values, tiles.values, batch, thread, shape, lowering),
    )
    first = k.mul(tile, shape.queries)
    first.name_hint = "first_query"
    thread_query = k.add(k.add(first, flash.first_row), k.div(flash.lane, 4))
    scores = FlashScores(k, op, shape, heads.walks.extras, batch, thread_query, flash.lane)
    results = flash.results(loaders, tile, _range(k, op, shape, first), scores)
    ResultWriter(flash, op, heads.walks.out, lowering).write(results, first, batch, thread)
    if _fits_narrow(op, lowering):
        k.function.attributes["index_bits"] = IntegerAttr(32, i64)
    k.finish(op, grid=[ceil_div(op.queries, shape.queries) * product(op.batch), 1, 1], block=[shape.threads])
    return True


@dataclass(frozen=True)
class Heads:
    """The operands as rows, which neighbouring elements of one head make up."""

    walks: Walks
    queries: Rows
    keys: Rows
    values: Rows


def _heads(op: AttentionOp, lowering: Lowering) -> Heads:
    walks = Walks.of(op, lowering)
    depth, columns = op.depth, op.columns
    assert isinstance(depth, int)
    assert isinstance(columns, int)
    return Heads(
        walks,
        Rows(walks.query, walks.query.query, op.queries, depth),
        Rows(walks.key, walks.key.key, op.keys, depth),
        Rows(walks.values, walks.values.key, op.keys, columns),
    )


def _shapes(op: AttentionOp, lowering: Lowering) -> Sequence[FlashShape]:
    """The shapes that apply: none where the elements or the way they lie in memory do not fit."""
    element, depth, columns = element_of(op.query.type), op.depth, op.columns
    same = all(element_of(value.type) == element for value in (op.key, op.values, op.output))
    if not is_half(element) or not same or op.score.block.args[0].type != f32:
        return ()
    if not isinstance(depth, int) or not isinstance(columns, int):
        return ()
    heads = _heads(op, lowering)
    contiguous = [heads.walks.query.depth, heads.walks.key.depth, heads.walks.values.column]
    widths = [one.wide(lowering) * byte_width(element) for one in (heads.queries, heads.keys, heads.values)]
    if contiguous != [1, 1, 1] or min(widths) < _SMALLEST_COPY:
        return ()
    return shapes_for(depth, columns)


def _place(k: KernelBuilder, op: AttentionOp, shape: FlashShape) -> tuple[SSAValue, list[SSAValue]]:
    """The tile of queries and the batch entry of a block: tiles of one head after each other, as they share its keys.

    With causal attention long tiles come first, those of a few heads, so that no block is left alone in the end.
    """
    block = k.value(BlockIdOp(0))
    block.name_hint = "block"
    count, heads = k.size(ceil_div(op.queries, shape.queries)), product(op.batch)
    if op.last_key is None:
        tile, head = k.rem(block, count), k.div(block, count)
    else:
        together = gcd(heads, _HEADS_TOGETHER) if isinstance(heads, int) else 1
        group = k.mul(count, together)
        within = k.rem(block, group)
        tile = k.sub(k.sub(count, 1), k.div(within, together))
        head = k.add(k.mul(k.div(block, group), together), k.rem(within, together))
    indices: list[SSAValue] = []
    for size in reversed(op.batch):
        extent = k.size(size)
        indices.append(k.rem(head, extent))
        head = k.div(head, extent)
    return tile, list(reversed(indices))


def _range(k: KernelBuilder, op: AttentionOp, shape: FlashShape, first: SSAValue) -> Range:
    """Tiles of keys that some query of a block looks at, and those that all of its queries look at whole."""
    keys, offset = op.keys, op.last_key_offset()
    count, whole = k.size(ceil_div(keys, shape.keys)), k.size(keys // shape.keys)
    if offset is None:
        return Range(count, None if keys % shape.keys == 0 else whole)
    last = k.add(first, k.size(offset + shape.queries))
    seen = k.max(k.add(k.floor_div(k.sub(last, 1), shape.keys), 1), 0)
    all_see = k.max(k.floor_div(k.add(first, k.size(offset + 1)), shape.keys), 0)
    return Range(k.min(count, seen), k.min(whole, all_see))


def _fits_narrow(op: AttentionOp, lowering: Lowering) -> bool:
    """Whether 32-bit indices are enough: nothing that is touched has 2**31 bytes."""
    places = lowering.placements
    sizes: list[Dim] = [places.size_of(places[value].buffer) for value in (*op.operands, op.output)]
    return all(isinstance(size, int) and size < _INDEX_LIMIT for size in sizes)
