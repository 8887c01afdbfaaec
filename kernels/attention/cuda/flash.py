"""Flash attention in half precision on tensor cores, the scores in registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, f32, i64

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.symbolic import ceil_div, product
from mlirt.dialects.tensor_types import byte_width, element_of
from mlirt.kernels.attention.cuda.flash_blocks import (
    Heads,
    fits_narrow,
    has_one_element,
    heads_of,
    place_of,
    range_of,
    work_of,
)
from mlirt.kernels.attention.cuda.flash_kernel import FlashKernel, Loaders
from mlirt.kernels.attention.cuda.flash_results import ResultWriter
from mlirt.kernels.attention.cuda.flash_scores import FlashScores
from mlirt.kernels.attention.cuda.flash_shape import FlashShape, shapes_for
from mlirt.kernels.attention.cuda.flash_tiles import FlashTiles, loader
from mlirt.kernels.lib.cuda.tiles.problem import multiplies_halves
from mlirt.kernels.lib.language import build, kernel
from mlirt.kernels.lib.language.simt_words import block_id, thread_id
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (AttentionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_MIN_COPY = 4  # bytes of the smallest asynchronous copy


def estimates(op: AttentionOp, lowering: Lowering) -> Mapping[str, float]:
    shapes = _shapes(op, lowering)
    work = work_of(op, lowering) if shapes else None
    return {} if work is None else {shape.name: work.microseconds(shape) for shape in shapes}


def lower(op: AttentionOp, lowering: Lowering) -> bool:
    shape = next((shape for shape in _shapes(op, lowering) if shape.name == lowering.choice(op)), None)
    if shape is None:
        return False
    k = lowering.kernel("attention")
    build(k, _attend, op, shape, heads_of(op, lowering), lowering)
    if fits_narrow(op, lowering):
        k.function.attributes["index_bits"] = IntegerAttr(32, i64)
    k.finish(op, grid=[ceil_div(op.queries, shape.queries) * product(op.batch), 1, 1], block=[shape.threads])
    return True


@kernel
def _attend(op: AttentionOp, shape: FlashShape, heads: Heads, lowering: Lowering) -> None:
    """The attention of a block's queries."""
    element, depth, columns = element_of(op.query.type), heads.queries.width, heads.values.width
    thread = thread_id()
    tile, batch = place_of(op, shape, block_id())
    tiles = FlashTiles.allocate(element, shape, depth, columns)
    flash = FlashKernel(shape, element, depth, columns, tiles, thread, bool(op.zero_masked.value.data))
    loaders = Loaders(
        loader(heads.queries, tiles.queries, batch, thread, shape, lowering),
        loader(heads.keys, tiles.keys, batch, thread, shape, lowering),
        loader(heads.values, tiles.values, batch, thread, shape, lowering),
    )
    first_query = tile * shape.queries
    thread_query = first_query + flash.first_row + flash.lane // 4
    scores = FlashScores(op, shape, heads.walks.extras, batch, thread_query, flash.lane)
    results = flash.results(loaders, tile, range_of(op, shape, first_query), scores)
    ResultWriter(flash, op, heads.walks.out, lowering).write(results, first_query, batch, thread)


def _shapes(op: AttentionOp, lowering: Lowering) -> Sequence[FlashShape]:
    """The shapes that apply: none where the elements or the way they lie in memory do not fit."""
    element, depth, columns = element_of(op.query.type), op.depth, op.columns
    same = has_one_element(op)
    if not multiplies_halves(element, lowering.target) or not same or op.score.block.args[0].type != f32:
        return ()
    if not isinstance(depth, int) or not isinstance(columns, int):
        return ()
    heads = heads_of(op, lowering)
    contiguous = [heads.walks.query.depth, heads.walks.key.depth, heads.walks.values.column]
    widths = [one.wide(lowering) * byte_width(element) for one in (heads.queries, heads.keys, heads.values)]
    if contiguous != [1, 1, 1] or min(widths) < _MIN_COPY:
        return ()
    shapes, most = shapes_for(depth, columns), lowering.target.gpu.shared_bytes
    return [shape for shape in shapes if FlashTiles.bytes_of(element, shape, depth, columns) <= most]
