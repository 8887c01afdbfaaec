"""From products of queries and keys to scores: scale, mask and bias on the accumulators of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Protocol

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.fused_op import is_identity, yielded
from mlirt.dialects.kernel.accumulators import columns_of
from mlirt.dialects.kernel.fragment import FragmentElementOp, FragmentOp, LoadFragmentOp
from mlirt.kernels.attention.cuda.flash_tiles import batch_offset
from mlirt.kernels.attention.walks import Walk
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.builder.run_values import Value, value_of
from mlirt.kernels.lib.epilogue import finished

_LOG2_E = log2(2.718281828459045)


class WarpShape(Protocol):
    """What matters of a block's shape to one warp: `rows` times 16 of the block's queries, `keys` keys at a time."""

    @property
    def rows(self) -> int: ...

    @property
    def keys(self) -> int: ...

    @property
    def queries(self) -> int: ...


class FlashScores:
    """The scores of a warp's queries with a tile of keys. Exponentials are taken of `scale` times a score, to base 2.

    `first_query` is the query of the thread's first row.
    """

    def __init__(
        self,
        k: KernelBuilder,
        op: AttentionOp,
        shape: WarpShape,
        extras: Sequence[Walk],
        batch: Sequence[SSAValue],
        first_query: SSAValue,
        lane: SSAValue,
    ) -> None:
        self.k, self.op, self.shape, self.batch, self.first_query = k, op, shape, batch, first_query
        self.factor = only_scale(op)
        self.scale = k.scalar((self.factor or 1.0) * _LOG2_E, f32)
        self.scale.name_hint = "scale"
        self.queries = [k.add(first_query, 16 * row + 8 * half) for row in range(shape.rows) for half in range(2)]
        self.lane_key = k.mul(k.rem(lane, 4), 2)
        self.extras = [(walk, k.buffer(walk.value, walk.offset), batch_offset(k, batch, walk)) for walk in extras]

    def first_key(self, tile: SSAValue) -> SSAValue:
        """The key of the thread's first accumulator."""
        return self.k.add(self.k.mul(tile, self.shape.keys), self.lane_key)

    def limits(self) -> list[SSAValue]:
        """For each row of the thread, the first key that does not count."""
        k, keys, offset = self.k, self.k.size(self.op.keys), self.op.last_key_offset()
        if offset is None:
            return [keys] * len(self.queries)
        return [k.min(keys, k.add(query, k.size(offset + 1))) for query in self.queries]

    def scores(self, products: SSAValue, tile: SSAValue) -> Value:
        """The score of each product; one that is only scaled stays as it is, as `scale` does that."""
        if self.factor is not None:
            return value_of(products)
        k, rows = self.k, self.shape.rows
        per_row = self.shape.keys // 4  # accumulators of a thread in one of its rows
        keys = columns_of(per_row * 2 * rows, rows)
        first = self.first_key(tile)
        # The thread's elements of a row, two in each tile of 8 columns.
        offsets = [key for position, key in enumerate(keys[: per_row * 2]) if position % 4 < 2]
        read = [self._read(extra, first, offsets) for extra in self.extras]
        scores: list[SSAValue] = []
        for position, key in enumerate(keys):
            row, place = 2 * (position // (per_row * 2)) + position % 4 // 2, offsets.index(key)
            more = [k.value(FragmentElementOp(fragments[row], place)) for fragments in read]
            product = k.value(FragmentElementOp(products, position))
            indices = [*self.batch, self.queries[row], k.add(first, key)]
            scores.append(finished(self.op.score, product, more, len(indices), lambda axis: value_of(indices[axis])))
        return k.value(FragmentOp(scores))

    def _read(self, extra: tuple[Walk, SSAValue, SSAValue], first: SSAValue, offsets: Sequence[int]) -> list[SSAValue]:
        """For each row of the thread, its elements of an extra operand; zeros beyond the last query and key."""
        k, (walk, buffer, base) = self.k, extra
        count = self._keys_left(first, len(offsets)) if walk.key != 0 else None
        found: list[SSAValue] = []
        for query in self.queries:
            if walk.query == 0 and found:
                found.append(found[0])
                continue
            at = k.add(base, k.add(k.mul(query, k.stride(walk.query)), k.mul(first, k.stride(walk.key))))
            exists = (
                None if walk.query == 0 or self._whole_queries() else k.compare("slt", query, k.size(self.op.queries))
            )
            valid = count if exists is None else k.select(exists, len(offsets) if count is None else count, 0)
            step = walk.key
            if isinstance(step, int):
                moved, stride = [offset * step for offset in offsets], None
            else:
                moved, stride = list(offsets), k.index(k.stride(step))
            found.append(k.value(LoadFragmentOp(buffer, at, moved, stride=stride, valid=valid)))
        return found

    def _whole_queries(self) -> bool:
        return isinstance(self.op.queries, int) and self.op.queries % self.shape.queries == 0

    def _keys_left(self, first: SSAValue, most: int) -> SSAValue | None:
        """How many of a row's elements, two in each tile of 8 keys, belong to a key that exists; None: all."""
        if isinstance(self.op.keys, int) and self.op.keys % self.shape.keys == 0:
            return None
        k = self.k
        left = k.max(k.sub(k.size(self.op.keys), first), 0)
        return k.min(k.add(k.mul(k.div(left, 8), 2), k.min(k.rem(left, 8), 2)), most)


def only_scale(op: AttentionOp) -> float | None:
    """The positive number that a score is a product times, where that is all; None for other scores."""
    if is_identity(op.score):
        return 1.0
    ops = list(op.score.block.ops)
    product = op.score.block.args[0]
    if (
        len(ops) != 3
        or not isinstance(ops[1], arith.MulfOp | arith.DivfOp)
        or list(yielded(op.score)) != [ops[1].result]
    ):
        return None
    operands = list(ops[1].operands)
    if isinstance(ops[1], arith.MulfOp) and operands[1] is product:
        operands.reverse()
    if operands[0] is not product or not isinstance(operands[1].owner, arith.ConstantOp):
        return None
    value = operands[1].owner.value
    number = value.value.data if isinstance(value, FloatAttr) else 0.0
    if not 0 < number < float("inf"):
        return None
    return number if isinstance(ops[1], arith.MulfOp) else 1 / number
