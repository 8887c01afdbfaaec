"""What each block of attention does: its queries and batch entry, the tiles of keys that it looks at."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.symbolic import ceil_div, product, symbols
from mlirt.dialects.target import FIXED_REGISTERS
from mlirt.dialects.tensor_types import element_of
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.attention.cuda.flash_shape import FlashWork, QueryTile
from mlirt.kernels.attention.cuda.flash_softmax import Range
from mlirt.kernels.attention.cuda.flash_tiles import Rows
from mlirt.kernels.attention.walks import Walks
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.words import extent, floor_div, place
from mlirt.kernels.lib.tactics.lowering import Lowering

_HEADS_TOGETHER = 16  # whose keys and values fit into the second-level cache


def work_of(op: AttentionOp, lowering: Lowering) -> FlashWork:
    """What there is to do, lengths that are known at run time guessed."""
    known = typical_values(lowering.block)
    return FlashWork(
        typical(product(op.batch), known),
        typical(op.queries, known),
        typical(op.keys, known),
        typical(op.depth, known),
        typical(op.columns, known),
        op.last_key is not None,
        _extra(op),
        FIXED_REGISTERS in lowering.target.special,
        device=lowering.target.gpu,
    )


def _extra(op: AttentionOp) -> float:
    """One for each extra operand that differs from query to query, a half for one that differs by key alone.

    A quarter for one that differs by the rows or by the columns of keys: a tile has few rows, and all the same columns.
    """
    query, key, query_row, query_column, *key_parts = ({f"d{op.batch_rank + axis}"} for axis in (0, 1, 4, 5, 6, 7))
    found = 0.0
    for access in list(op.access)[3:]:
        names = {name for index in access.indices() for name in symbols(index)}
        if key & names or all(part & names for part in key_parts):
            found += 1.0 if (query | query_row | query_column) & names else 0.5
        else:
            found += 0.25 if any(part & names for part in key_parts) else 0.0
    return found


@dataclass(frozen=True)
class Heads:
    """The operands as rows, which neighbouring elements of one head make up."""

    walks: Walks
    queries: Rows
    keys: Rows
    values: Rows


def heads_of(op: AttentionOp, lowering: Lowering) -> Heads:
    """The operands of an op whose heads have a known width."""
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


@kernel
def place_of(op: AttentionOp, shape: QueryTile, block: Value) -> tuple[Value, list[Value]]:
    """The tile of queries and the batch entry of the block of a number: tiles of one head after each other, as they
    share its keys.

    With causal attention long tiles come first, those of a few heads, so that no block is left alone in the end.
    """
    count = extent(ceil_div(op.queries, shape.queries))
    if op.last_key is None:
        tile, head = block % count, block // count
    else:
        together = _heads_together(op)
        group = count * together
        within = block % group
        tile = count - 1 - within // together
        head = block // group * together + within % together
    indices = list[Value]()
    for size in reversed(op.batch):
        indices = [head % extent(size), *indices]
        head = head // extent(size)
    return tile, indices


def _heads_together(op: AttentionOp) -> int:
    heads = product(op.batch)
    return gcd(heads, _HEADS_TOGETHER) if isinstance(heads, int) else 1


@kernel
def range_of(op: AttentionOp, shape: QueryTile, first: Value) -> Range:
    """How many tiles of keys are not fully masked for a block's queries, and how many of these need no mask."""
    keys, offset = op.keys, op.last_key_offset()
    count, whole = extent(ceil_div(keys, shape.keys)), extent(keys // shape.keys)
    if offset is None:
        return Range(count, None if is_multiple(keys, shape.keys) else whole)
    last = first + extent(offset + shape.queries)
    seen = max(floor_div(last - 1, shape.keys) + 1, 0)
    all_see = max(floor_div(first + extent(offset + 1), shape.keys), 0)
    return Range(place(min(count, seen)), place(min(whole, all_see)))


def has_one_element(op: AttentionOp) -> bool:
    """Whether queries, keys and values have one type, and so do results unless an epilogue gives them their own."""
    given = [op.key, op.values, *([op.output] if op.epilogue is None else [])]
    return all(element_of(value.type) == element_of(op.query.type) for value in given)


def fits_narrow(op: AttentionOp, lowering: Lowering) -> bool:
    """Whether 32-bit indices are enough: nothing that is touched has 2**31 bytes."""
    return lowering.fits_int32((*op.operands, op.output))
