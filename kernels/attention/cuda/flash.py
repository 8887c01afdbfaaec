"""Flash attention in half precision on tensor cores, the scores in registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, f32, i64

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.kernel.simt import ThreadIdOp
from mlirt.dialects.symbolic import ceil_div, product
from mlirt.dialects.tensor_types import byte_width, element_of
from mlirt.kernels.attention.cuda.flash_blocks import (
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
from mlirt.kernels.lib.language import build, value_of
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
    heads, element = heads_of(op, lowering), element_of(op.query.type)
    depth, columns = heads.queries.width, heads.values.width
    k = lowering.kernel("attention")
    thread = k.value(ThreadIdOp())
    thread.name_hint = "thread"
    tile, batch = build(k, place_of, op, shape)
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
    results = build(k, flash.results, loaders, tile, build(k, range_of, op, shape, value_of(first)), scores)
    build(k, ResultWriter(flash, op, heads.walks.out, lowering).write, results, first, batch, thread)
    if fits_narrow(op, lowering):
        k.function.attributes["index_bits"] = IntegerAttr(32, i64)
    k.finish(op, grid=[ceil_div(op.queries, shape.queries) * product(op.batch), 1, 1], block=[shape.threads])
    return True


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
