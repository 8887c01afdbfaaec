"""Attention of few queries over many keys: the blocks of a cluster share the keys of a query, as in split-K products.

Some lanes of a warp have a key together: each multiplies a piece of it, and adds its weight times the same piece of the
value to sums of its own (online softmax in single precision). A block combines what its groups of lanes have found, a
cluster what its blocks have. Nothing is computed that half-empty tiles of matrix units would throw away, and a query
waits for its keys in as many processors as the cluster has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, i64
from xdsl.ir import Attribute

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.gpu_architectures import CLUSTERS
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, element_of, is_half
from mlirt.kernels.attention.cuda.flash_blocks import fits_narrow, has_one_element, work_of
from mlirt.kernels.attention.generic import read_extra
from mlirt.kernels.attention.results import finished_result
from mlirt.kernels.attention.walks import Walk, Walks
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.epilogue import finished
from mlirt.kernels.lib.language import Value, build, builder, kernel, value_of
from mlirt.kernels.lib.language.hopper_words import cluster_rank, remote_shared, sync_cluster
from mlirt.kernels.lib.language.simt_words import (
    Access,
    block_id,
    count_where,
    element_at,
    load_fragment,
    shared_memory,
    shuffle_xor,
    sync_threads,
    thread_id,
)
from mlirt.kernels.lib.language.words import (
    Strided,
    cast,
    ceil_div,
    constant,
    exp,
    extent,
    place,
    size,
    split,
    static_range,
    stride,
)
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (AttentionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 9  # where nothing is known of the times, matrix units come first

_THREADS, _WARP = 256, 32
_MAX_QUERIES = 8
_BYTES = 16  # of a piece of a row
_TOGETHER = 4  # keys that a group of lanes has under way
_PARTS = (1, 2, 4, 8)
_NONE = float("-inf")


@dataclass(frozen=True)
class _Rows:
    """Rows of `width` elements are shared by so many `lanes`, which have a `piece` of neighbours each."""

    element: Attribute
    width: int
    lanes: int
    piece: int

    @property
    def groups(self) -> int:
        """Of lanes, in a block."""
        return _THREADS // self.lanes


def estimates(op: AttentionOp, lowering: Lowering) -> Mapping[str, float]:
    rows = _rows(op, lowering)
    if rows is None:
        return {}
    work, device = work_of(op, lowering), lowering.target.gpu
    times = device.split_attention
    read = work.heads * work.queries * work.keys * 2 * rows.width * byte_width(rows.element)
    found: dict[str, float] = {}
    for parts in _PARTS if lowering.target.has(CLUSTERS) else (1,):
        rounds = -(-work.keys // (parts * rows.groups * _TOGETHER))
        waves = -(-work.heads * work.queries * parts // (times.blocks * device.processors))
        busy = max(waves * rounds * times.round, read / times.bytes)
        found[f"parts{parts}"] = device.attention.launch + times.block + busy + (times.cluster if parts > 1 else 0)
    return found


def lower(op: AttentionOp, lowering: Lowering) -> bool:
    rows, choice = _rows(op, lowering), str(lowering.choice(op))
    if rows is None or not choice.startswith("parts"):
        return False
    parts = int(choice.removeprefix("parts"))
    k = lowering.kernel("attention")
    build(k, _attend, op, Walks.of(op, lowering), rows, parts)
    if parts > 1:
        k.function.attributes["cluster"] = IntegerAttr(parts, i64)
        k.function.attributes["architecture"] = StringAttr(lowering.target.arch)
    if fits_narrow(op, lowering):
        k.function.attributes["index_bits"] = IntegerAttr(32, i64)
    k.finish(op, grid=[product([*op.batch, op.queries]) * parts, 1, 1], block=[_THREADS])
    return True


def _rows(op: AttentionOp, lowering: Lowering) -> _Rows | None:
    """How lanes share a row: None where there are many queries, or rows are not made up of whole pieces."""
    element, width, queries = element_of(op.query.type), op.depth, op.queries
    same = has_one_element(op)
    if not isinstance(queries, int) or queries > _MAX_QUERIES or not isinstance(width, int) or op.columns != width:
        return None
    if not same or not (is_half(element) or element == f32) or op.score.block.args[0].type != f32:
        return None
    piece, walks = _BYTES // byte_width(element), Walks.of(op, lowering)
    lanes = width // piece
    if width % piece or lanes & (lanes - 1) or not 1 <= lanes <= _WARP:
        return None
    contiguous = [walks.query.depth, walks.key.depth, walks.values.column] == [1, 1, 1]
    reads = [(walks.query, walks.query.query), (walks.key, walks.key.key), (walks.values, walks.values.key)]
    aligned = all(widest_access(one.value, [step, *one.batch, one.offset], lowering) == piece for one, step in reads)
    return _Rows(element, width, lanes, piece) if contiguous and aligned else None


@kernel
def _attend(op: AttentionOp, walks: Walks, rows: _Rows, parts: int) -> None:
    """One query of one head; block `rank` of its cluster has the keys of its number."""
    thread = thread_id()
    lane, group = thread % rows.lanes, thread // rows.lanes
    *batch, query = split(block_id() // parts, [*op.batch, op.queries])
    count = size("keys", op.keys)
    offset = op.last_key_offset()
    if offset is not None:
        count = max(min(count, query + extent(offset) + 1), 0)
    begin, end = place(0), count
    if parts > 1:
        share = ceil_div(count, parts)
        begin = min(cluster_rank() * share, count)
        end = min(begin + share, count)

    def numbers(walk: Walk, steps: Sequence[tuple[Value, Dim]], exists: bool) -> list[Value]:
        """A lane's piece of a row; zeros where there is none."""
        at = lane * rows.piece
        for index, step in [*zip(batch, walk.batch, strict=True), *steps]:
            at = at + index * stride(step)
        access = Access(static_range(rows.piece), valid=count_where(exists, rows.piece), wide=True)
        some = load_fragment(walk.buffer(builder()), at, access)
        return [cast(element_at(some, i), rows.element, f32) for i in static_range(rows.piece)]

    asked = numbers(walks.query, [(query, walks.query.query)], True)

    def score_of(key: Value, numbers: Sequence[Value]) -> Value:
        """Of a key; -inf where there is none."""
        product = value_of(sum(own * number for own, number in zip(asked, numbers, strict=True)))
        for bit in static_range(rows.lanes.bit_length() - 1):
            product = product + shuffle_xor(product, 1 << bit)
        there = [*batch, query, value_of(min(key, end - 1))]
        extras = [read_extra(walk, batch, query, there[-1]) for walk in walks.extras]
        score = finished(op.score, product, extras, len(there), lambda axis: there[axis])
        return score if key < end else constant(_NONE, f32)

    largest, total = constant(_NONE, f32), constant(0.0, f32)
    weighted = [constant(0.0, f32) for _ in static_range(rows.piece)]
    for first in range(begin, end, rows.groups * _TOGETHER):
        keys = [first + group + rows.groups * i for i in static_range(_TOGETHER)]
        read = [numbers(walks.key, [(key, walks.key.key)], key < end) for key in keys]
        values = [numbers(walks.values, [(key, walks.values.key)], key < end) for key in keys]
        scores = [score_of(key, some) for key, some in zip(keys, read, strict=True)]
        above = max(largest, *scores)
        shift = _shift(above)
        fall = exp(largest - shift)
        weights = [exp(score - shift) for score in scores]
        total = value_of(total * fall + sum(weights))
        added = [sum(w * some[i] for w, some in zip(weights, values, strict=True)) for i in static_range(rows.piece)]
        weighted = [value_of(before * fall + new) for before, new in zip(weighted, added, strict=True)]
        largest = above
    whole = _of_block(rows, thread, largest, total, weighted)
    column = thread
    if parts > 1:
        sync_cluster()
        near = [[remote_shared(memory, rank) for memory in whole] for rank in static_range(parts)]
        if thread < rows.width and cluster_rank() == 0:
            _write(op, walks.out, [*batch, query], column, _combined(near, column))
        sync_cluster()  # no block may end while another one reads what it has found
    else:
        sync_threads()
        if thread < rows.width:
            _write(op, walks.out, [*batch, query], column, _combined([whole], column))


@kernel
def _shift(largest: Value) -> Value:
    """What is subtracted from scores: 0 as long as there is no score above -inf."""
    return value_of(0.0 if largest == _NONE else largest)


@kernel
def _of_block(rows: _Rows, thread: Value, largest: Value, total: Value, weighted: Sequence[Value]) -> list[Value]:
    """What the groups of a block have found together, in shared memory: largest score, sum of weights, results."""
    names = (("largest", rows.groups), ("totals", rows.groups), ("weighted", rows.groups * rows.width))
    found = [shared_memory(name, count, f32) for name, count in names]
    lane, group = thread % rows.lanes, thread // rows.lanes
    for i in static_range(rows.piece):
        found[2][group * rows.width + lane * rows.piece + i] = weighted[i]
    if lane == 0:
        found[0][group] = largest
        found[1][group] = total
    sync_threads()
    whole = [
        shared_memory(f"all_{name}", count, f32) for (name, _), count in zip(names, (1, 1, rows.width), strict=True)
    ]
    if thread < rows.width:
        highest = max(found[0][one] for one in static_range(rows.groups))
        falls = [exp(found[0][one] - _shift(highest)) for one in static_range(rows.groups)]
        whole[2][thread] = sum(fall * found[2][one * rows.width + thread] for one, fall in enumerate(falls))
        if thread == 0:
            whole[0][0] = highest
            whole[1][0] = sum(fall * found[1][one] for one, fall in enumerate(falls))
    return whole


@kernel
def _combined(parts: Sequence[Sequence[Value]], column: Value) -> tuple[Value, Value]:
    """The sum of weights of all blocks, and that of a column."""
    highest = max(one[0][0] for one in parts)
    falls = [exp(one[0][0] - _shift(highest)) for one in parts]
    total = value_of(sum(fall * one[1][0] for one, fall in zip(parts, falls, strict=True)))
    return total, value_of(sum(fall * one[2][column] for one, fall in zip(parts, falls, strict=True)))


@kernel
def _write(op: AttentionOp, out: Walk, at: Sequence[Value], column: Value, found: tuple[Value, Value]) -> None:
    """A result: zero where no key counts, if the op says so."""
    total, weighed = found
    result = weighed / total
    if op.zero_masked.value.data:
        result = result if total > 0.0 else constant(0.0, f32)
    steps = [stride(step) for step in (*out.batch, out.query, out.column)]
    Strided(out.buffer(builder()), steps)[(*at, column)] = finished_result(op, result)
