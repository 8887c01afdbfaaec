"""Slices, concatenations, transposes and views that only move whole rows of one tensor become one gather of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from xdsl.context import Context
from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.access import is_elementwise, iteration
from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.fused_op import gather_operand, is_identity
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.symbolic import Dim, substitute, sym, symbols
from mlirt.dialects.tensor_types import dims, element_of, is_row_major, is_unknown, with_dims
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_MIN_ROW = 16
"""Elements. Shorter rows are copied as fast as elements, and the table has a number for each of them."""
_MAX_ROWS = 2**20
_MAX_OPS = 64
_MAX_HOPS = 4


@dataclass(frozen=True)
class FuseRowMovesPass(RulePass):
    """Gather rows once, where several copies put whole rows of one tensor into another order.

    A row is what lies along the last axis. `torch.roll` is a concatenation of two slices for each axis, windows of an
    image are a view, a transpose and a view, and pixels that become channels are slices that are joined along the last
    axis: together they are a table of rows, which the compiler knows. One concatenation at least is among the ops, all
    begin with one tensor, and what is in between has no other reader. Only the first length may be open; the table is
    that of one of its elements.

    Before:

        %a = fused.pointwise %x ["d0", "d1 + 1", "d2"] : tensor<2x2x64xf32>
        %b = fused.pointwise %x ["d0", "d1", "d2"] : tensor<2x1x64xf32>
        %y = fused.concat %a, %b {axis = 1 : i64} : tensor<2x3x64xf32>

    After:

        %i = trt.constant {value = dense<[1, 2, 0]> : tensor<3xi32>} : tensor<3xi32>
        %y = fused.gather %x, %i {axis = 1 : i64} : (tensor<2x3x64xf32>, tensor<3xi32>) -> tensor<2x3x64xf32>
    """

    name = "fuse-row-moves"

    again = False  # a tree of moves is looked at as a whole

    @rule(op(ViewOp | PointwiseOp | ConcatOp).named("last"))
    def gather(self, m: Match, ctx: Context, last: ViewOp | PointwiseOp | ConcatOp) -> Outcome:
        if not _is_move(last) or _goes_on(last):
            return None
        tree = _Tree.of(last)
        if not tree.joins():
            return None
        if len(tree.sources) != 1 or len(tree.ops) > _MAX_OPS:
            return "what is joined comes from several tensors, or by way of too many ops"
        (source,), result = tree.sources, last.results[0]
        if tree.joins() == 1 and isinstance(source.owner, PointwiseOp):
            return "two launches compute what is joined, as many as with a gather"
        if _is_of_images(source, result):
            return "convolutions read or write images, whose channels may lie innermost"
        moved = _moved_rows(tree, source, result)
        if isinstance(moved, str):
            return moved
        row = dims(source.type)[-1]
        m.replaces(last)
        m.drop(*tree.ops[:-1])
        if moved.is_order_of_source():
            return m.insert(ViewOp(source, result.type), *tree.ops)
        indices = m.insert(ConstantOp.from_array(moved.table, weights_of(ctx), "rows"), *tree.ops)
        rows = m.insert(ViewOp(source, with_dims(source.type, (moved.count, moved.before, row))), *tree.ops)
        taken = with_dims(source.type, (moved.count, len(moved.table), row))
        found = m.insert(GatherOp(rows.output, indices.output, taken, axis=1), *tree.ops)
        return m.insert(ViewOp(found.output, result.type), *tree.ops)


@dataclass(frozen=True)
class _Rows:
    """For each row of a part of the result the row of that part of the source; `count` parts of `before` rows."""

    count: Dim
    before: int
    table: Array

    def is_order_of_source(self) -> bool:
        """Whether all rows stay where they are."""
        return len(self.table) == self.before and all(place == row for row, place in enumerate(self.table))


@dataclass(frozen=True)
class _Tree:
    """The moves that lead to one of them, each behind those that it reads, and what they begin with."""

    ops: Sequence[Operation]
    sources: Sequence[SSAValue]

    @staticmethod
    def of(last: Operation) -> _Tree:
        ops, waiting, seen = list[Operation](), [(last, False)], set[Operation]()
        while waiting and len(ops) <= _MAX_OPS:
            at, is_done = waiting.pop()
            if is_done:
                ops.append(at)
            elif at not in seen:
                seen.add(at)
                waiting.append((at, True))
                waiting += [(owner, False) for value in at.operands if (owner := _inner(value, at)) is not None]
        inside = set(ops)
        while shared := {one for one in ops if one is not last and not _readers(one) <= inside}:
            ops = [one for one in ops if one not in shared]  # what others read as well is where the tree begins
            inside = set(ops)
        sources = dict.fromkeys(value for one in ops for value in one.operands if value.owner not in inside)
        return _Tree(ops, list(sources))

    def joins(self) -> int:
        """How many launches less at the least there are: parts that are joined behind the first one."""
        return sum(len(one.inputs) - 1 for one in self.ops if isinstance(one, ConcatOp))


def _inner(value: SSAValue, reader: Operation) -> Operation | None:
    """The move that gives a value, beside its reader."""
    owner = value.owner
    return owner if isinstance(owner, Operation) and owner.parent is reader.parent and _is_move(owner) else None


def _readers(op: Operation) -> set[Operation]:
    return {use.operation for use in op.results[0].uses}


def _is_move(op: Operation) -> bool:
    """Whether an op gives elements of its operands in another order or under other dimensions, of rows as they lie."""
    if isinstance(op, PointwiseOp):
        if len(op.inputs) != 1 or len(op.outputs) != 1 or not is_identity(op.body):
            return False
        (access,), shape = op.access, dims(op.outputs[0].type)
        indices = access.indices()
        if not shape or not indices or element_of(op.inputs[0].type) != element_of(op.outputs[0].type):
            return False
        last = f"d{len(shape) - 1}"
        apart = all(last not in symbols(index) for index in indices[:-1])
        return indices[-1] == iteration(len(shape) - 1) and apart and shape[-1] == dims(op.inputs[0].type)[-1]
    if isinstance(op, ViewOp):
        before, after = dims(op.input.type), dims(op.output.type)
        lie_so = before != () and after != () and all(is_row_major(value.type) for value in (op.input, op.output))
        return lie_so and isinstance(before[-1], int) and isinstance(after[-1], int) and _joins(before[-1], after[-1])
    return isinstance(op, ConcatOp) and all(is_row_major(value.type) for value in (*op.inputs, op.output))


def _joins(before: int, after: int) -> bool:
    """Whether rows of one length are whole in those of another."""
    return before > 0 and after % before == 0


def _is_of_images(source: SSAValue, result: SSAValue) -> bool:
    """Whether convolutions or windows are next to the moves, but for pointwise ops of each element."""
    above, below = [source.owner], [use.operation for use in result.uses]
    for _ in range(_MAX_HOPS):
        above += [value.owner for one in above if _is_body(one) for value in one.operands if value.owner not in above]
        below += [user for one in below if _is_body(one) for user in _readers(one) if user not in below]
    return any(isinstance(one, ConvolutionOp | WindowOp) for one in (*above, *below))


def _is_body(op: Operation | Block) -> TypeGuard[PointwiseOp]:
    """Whether an op computes each element of its results from those at the same place."""
    return isinstance(op, PointwiseOp) and any(is_elementwise(access, dims(op.outputs[0].type)) for access in op.access)


def _goes_on(op: Operation) -> bool:
    """Whether all that reads a move are moves as well that lead to one of them, with which it is looked at."""
    found = _readers(op)
    for _ in range(_MAX_HOPS):
        if not found or not all(_is_move(one) and one.parent is op.parent for one in found):
            return False
        if len(found) == 1:
            return True
        found = {user for one in found for user in _readers(one)}
    return False


def _moved_rows(tree: _Tree, source: SSAValue, result: SSAValue) -> _Rows | str:
    """The table of rows; or why there is none."""
    import numpy as np

    shapes = [dims(value.type) for value in (source, *(one.results[0] for one in tree.ops))]
    first, row = shapes[0][0], shapes[0][-1]
    if len(shapes[0]) == 1 or not isinstance(row, int) or row < _MIN_ROW:
        return f"there are no rows, or they have an open length or less than {_MIN_ROW} elements"
    if any(not isinstance(shape[-1], int) or shape[-1] % row for shape in shapes):
        return "rows are split"
    names = {name for shape in shapes for size in shape for name in symbols(size)}
    if any(is_unknown(size) for shape in shapes for size in shape):
        return "a length is unknown"
    if len(names) > 1 or (names and first != sym(*names)):
        return "more lengths than the first one are open"
    counts = [count for count in ((2, 3) if names else (first,)) if isinstance(count, int)]
    tables = [_table(tree, source, result, dict.fromkeys(names, count)) for count in counts]
    if any(len(table) == 0 for table in tables):
        return f"there are more than {_MAX_ROWS} rows, or none"
    before = math.prod(size for size in shapes[0][1:-1] if isinstance(size, int))
    parts = [_part(table, count, before) for table, count in zip(tables, counts, strict=True)]
    if all(len(part) > 0 and np.array_equal(part, parts[0]) for part in parts):
        return _Rows(first, before, parts[0])
    if names:
        return "the first axis, whose length is open, is moved as well"
    return _Rows(1, before * counts[0], tables[0])


def _part(table: Array, count: int, before: int) -> Array:
    """The table of one element of the first axis, `count` times `before` rows; empty where they are not alike."""
    import numpy as np

    if len(table) % count:
        return table[:0]
    parts = table.reshape(count, -1) - before * np.arange(count, dtype=table.dtype)[:, None]
    alike = bool((parts == parts[0]).all() and (parts[0] >= 0).all() and (parts[0] < before).all())
    return parts[0] if alike else table[:0]


def _table(tree: _Tree, source: SSAValue, result: SSAValue, lengths: Mapping[str, int]) -> Array:
    """For each row of the result the row of the source, where open lengths are these; empty for too many rows."""
    import numpy as np

    row = _numbers(source, lengths)[-1]
    counts = [math.prod(_numbers(value, lengths)) // row for value in (source, result)]
    if max(counts) > _MAX_ROWS:
        return np.zeros(0, np.int32)
    found: dict[SSAValue, Array] = {}
    found[source] = np.arange(counts[0], dtype=np.int32).reshape([*_numbers(source, lengths)[:-1], 1])
    for one in tree.ops:
        made, arrays = one.results[0], [found[value] for value in one.operands]
        *space, last = _numbers(made, lengths)
        if isinstance(one, ConcatOp):
            found[made] = np.concatenate(arrays, one.axis.value.data)
        elif isinstance(one, PointwiseOp):
            access = one.access.data[0].substituted(dict(lengths))
            found[made] = gather_operand(arrays[0], access, [*space, last // row], {})
        else:
            found[made] = arrays[0].reshape([*space, last // row])
    return np.ascontiguousarray(found[result].reshape(-1))


def _numbers(value: SSAValue, lengths: Mapping[str, int]) -> list[int]:
    """The dimensions of a tensor where open lengths are these."""
    return [size for dim in dims(value.type) if isinstance(size := substitute(dim, lengths), int)]


__all__ = ["FuseRowMovesPass"]
