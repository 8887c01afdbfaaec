"""What each block of attention does: its queries and batch entry, the tiles of keys that it looks at."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from xdsl.ir import SSAValue

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.kernel.simt import BlockIdOp
from mlirt.dialects.symbolic import ceil_div, product
from mlirt.dialects.tensor_types import element_of
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.attention.cuda.flash_shape import FlashWork, QueryTile
from mlirt.kernels.attention.cuda.flash_softmax import Range
from mlirt.kernels.attention.cuda.flash_tiles import Rows
from mlirt.kernels.attention.walks import Walks
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.builder.run_values import Value
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
        device=lowering.target.gpu,
    )


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


def place_of(k: KernelBuilder, op: AttentionOp, shape: QueryTile) -> tuple[Value, list[SSAValue]]:
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


def range_of(k: KernelBuilder, op: AttentionOp, shape: QueryTile, first: SSAValue) -> Range:
    """How many tiles of keys are not fully masked for a block's queries, and how many of these need no mask."""
    keys, offset = op.keys, op.last_key_offset()
    count, whole = k.size(ceil_div(keys, shape.keys)), k.size(keys // shape.keys)
    if offset is None:
        return Range(count, None if keys % shape.keys == 0 else whole)
    last = k.add(first, k.size(offset + shape.queries))
    seen = k.max(k.add(k.floor_div(k.sub(last, 1), shape.keys), 1), 0)
    all_see = k.max(k.floor_div(k.add(first, k.size(offset + 1)), shape.keys), 0)
    return Range(k.min(count, seen), k.min(whole, all_see))


def has_one_element(op: AttentionOp) -> bool:
    """Whether queries, keys and values have one type, and so do results unless an epilogue gives them their own."""
    given = [op.key, op.values, *([op.output] if op.epilogue is None else [])]
    return all(element_of(value.type) == element_of(op.query.type) for value in given)


def fits_narrow(op: AttentionOp, lowering: Lowering) -> bool:
    """Whether 32-bit indices are enough: nothing that is touched has 2**31 bytes."""
    return lowering.fits_int32((*op.operands, op.output))
