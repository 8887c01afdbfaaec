"""The k extreme elements of each row by sorting it: a block has a row, in shared memory (bitonic sort).

each thread: load its elements as pairs of key and place
for each length of sorted parts, doubled from 2 on { for each distance, halved { exchange pairs that far apart } }
each thread: store its elements of the first k
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32, i64

from mlirt.dialects.fused.topk import ExtremeKind, TopkOp
from mlirt.dialects.gpu_device import GpuDevice
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.simt_words import block_id, shared_memory, sync_threads, thread_id
from mlirt.kernels.lib.language.words import Elements, cast, clamp, constant, extent, index_of, integer_of, place, split
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rows.row_order import key, key_type
from mlirt.kernels.rows.row_shares import normalize
from mlirt.kernels.rows.topk import cycles_on_device

OPS = (TopkOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_THREADS, _WARP = 512, 32
_PAIR_BYTES = 8
_EXCHANGE_CYCLES, _SYNC_CYCLES = 24, 40  # of a pair of each thread, and of a block's threads that wait for each other
_MAX_BLOCKS, _MAX_BLOCK_THREADS = 32, 2048  # of a processor


def lower(op: TopkOp, lowering: Lowering) -> bool:
    axis, shape, count = op.axis.value.data, dims(op.input.type), op.count()
    length, device = shape[axis], lowering.target.gpu
    if not isinstance(length, int) or not isinstance(count, int) or key_type(element_of(op.input.type)) != i32:
        return False
    places = max(2, 1 << (length - 1).bit_length())
    if _PAIR_BYTES * places > device.shared_bytes_of(1):
        return False
    others = [*shape[:axis], *shape[axis + 1 :]]
    rows = typical(product(others), typical_values(lowering.block))
    if _cycles(places, rows, device) >= cycles_on_device(count, length, rows, device):
        return False
    k, threads = lowering.kernel("topk"), _threads(places)
    build(k, _sort, op, others, length, count, places, threads)
    k.finish(op, grid=[product(others), 1, 1], block=[threads])
    normalize(op, lowering)
    return True


def _threads(places: int) -> int:
    return min(_THREADS, max(_WARP, places // 2))


def _cycles(places: int, rows: int, device: GpuDevice) -> float:
    """Of all rows: steps one after the other, in each of which a thread exchanges its pairs."""
    threads, steps = _threads(places), places.bit_length() * (places.bit_length() - 1) // 2
    blocks = min(_MAX_BLOCKS, _MAX_BLOCK_THREADS // threads, device.shared_bytes_of(1) // (_PAIR_BYTES * places))
    turns = -(-rows // (device.processors * max(1, blocks)))
    return turns * steps * (-(-places // 2 // threads) * _EXCHANGE_CYCLES + _SYNC_CYCLES)


@kernel
def _sort(op: TopkOp, others: list[Dim], length: int, count: int, places: int, threads: int) -> None:
    """`pairs = (key, ~place) of the row; sort them; the first k are the results`."""
    thread, axis, indices = thread_id(), op.axis.value.data, split(block_id(), others)
    before, behind = indices[:axis], indices[axis:]
    x, values, found = Elements(op.input), Elements(op.values), Elements(op.indices)
    element, is_largest = element_of(op.input.type), op.kind.data is ExtremeKind.MAX
    pairs = shared_memory("pairs", places, i64)
    for i in range(thread, places, threads):
        pair = constant(-(2**63), i64)
        if i < length:
            own = cast(key(x[*before, i, *behind], element, largest_first=is_largest), i32, i64)
            pair = (own << 32) | (2**32 - 1 - integer_of(i, i64))
        pairs[i] = pair
    sync_threads()
    size = 2
    while size <= places:
        distance = size // 2
        while distance > 0:
            for number in range(thread, places // 2, threads):
                _exchange(pairs, place(number), place(size), place(distance))
            sync_threads()
            distance = distance // 2
        size = size * 2
    for rank in range(thread, count, threads):
        # A row has at least `count` elements, whose places are inside; the clamp proves it.
        source = clamp(index_of(2**32 - 1 - (pairs[rank] & 2**32 - 1)), extent(length))
        values[*before, rank, *behind] = x[*before, source, *behind]
        found[*before, rank, *behind] = integer_of(source, element_of(op.indices.type))


@kernel
def _exchange(pairs: Value, number: Value, size: Value, distance: Value) -> None:
    """Put the larger pair in front, in every other part of `size` behind."""
    at = 2 * number - (number & distance - 1)
    one, other = pairs[at], pairs[at + distance]
    is_in_order = one > other if at & size == 0 else one < other
    if not is_in_order:
        pairs[at], pairs[at + distance] = other, one


__all__ = ["lower"]
