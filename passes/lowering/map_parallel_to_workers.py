"""Loop nests on a CPU: the outer iterations are shared by the workers, the inner ones run as the lanes of vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from mlirt.dialects.diagnostics import OperationError
from mlirt.dialects.kernel.core import FuncOp, LoadOp, ParallelOp, ReduceOp, StoreOp, YieldOp
from mlirt.errors import InvalidInputError
from mlirt.kernels.lib.cpu.split_index import split_index
from mlirt.passes.lowering.lane_choice import gathers
from mlirt.passes.options import option

# Iterations of the inner loop that a worker takes at once: few enough to balance, enough to make up for the start.
_CHUNK = 512
_WIDTHS = (128, 256, 512)
_INDEX = IndexType()


@dataclass(frozen=True)
class MapParallelToWorkersPass(ModulePass):
    """Split each kernel's outermost parallel loop over workers, and run inner loops as lanes where memory allows.

    Lanes need iterations that lie side by side in memory: every store moves by one element from lane to lane, every
    load by one or none (others are fetched lane by lane, which is the second choice). Rows are cut into chunks, so that
    one long row is shared too. Kernels that say themselves what a worker does are left alone.

    Before:

        kernel.parallel (%n, %m) { ^bb0(%i: index, %j: index): .. %x[%i, %j] strides [%s, 1] .. }

    After:

        kernel.parallel (%n, %chunks) attributes {workers} {
        ^bb0(%i: index, %c: index):
          kernel.parallel (%length) attributes {lanes = 16} {
          ^bb0(%j: index):
            .. %x[%i, %start, %j] strides [%s, 1, 1] ..
          }
        }
    """

    name = "map-parallel-to-workers"

    vector_bits: int = option(512, at_least=32)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.vector_bits not in _WIDTHS:
            raise InvalidInputError(f"map-parallel-to-workers: vector_bits is one of {_WIDTHS}, not {self.vector_bits}")
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                _map(function, self.vector_bits // 32)


def _map(function: FuncOp, lanes: int) -> None:
    outer = [op for op in function.body.block.ops if isinstance(op, ParallelOp)]
    if len(outer) > 1:
        raise OperationError(
            outer[1], "is a second parallel loop of its kernel: workers would need a barrier before it"
        )
    for loop in outer:
        if "workers" not in loop.attributes:
            _share(loop, lanes)


def _share(loop: ParallelOp, lanes: int) -> None:
    axis = _lane_axis(loop)
    inner = list(_inner_loops(loop.body.block))
    if axis is None and any(gathers(one.body.block, one.body.block.args[-1]) == 0 for one in inner):
        loop.attributes["workers"] = UnitAttr()
    else:
        rows = _cut_rows(loop, len(loop.extents) - 1 if axis is None else axis)
        if axis is not None:
            rows.attributes["lanes"] = IntegerAttr(lanes, i64)
            return
    for one in inner:
        if _fits_lanes(one):
            one.attributes["lanes"] = IntegerAttr(lanes, i64)


def _inner_loops(block: Block) -> Iterator[ParallelOp | ReduceOp]:
    """Loops without a loop inside of them."""
    for op in block.walk():
        if isinstance(op, ParallelOp | ReduceOp) and not any(
            isinstance(inner, ParallelOp | ReduceOp) for inner in op.body.block.walk()
        ):
            yield op


def _fits_lanes(loop: ParallelOp | ReduceOp) -> bool:
    if not loop.extents:
        return False
    cost = gathers(loop.body.block, loop.body.block.args[-1])
    return cost == 0 or (cost is not None and isinstance(loop, ParallelOp))


def _lane_axis(loop: ParallelOp) -> int | None:
    """The dimension that becomes lanes: one without gathers, the last such; else, if no inner loop is better, any."""
    costs = [gathers(loop.body.block, index) for index in loop.body.block.args]
    candidates = [axis for axis, cost in enumerate(costs) if cost is not None]
    free = [axis for axis in candidates if costs[axis] == 0]
    if free:
        return free[-1]
    if any(_fits_lanes(inner) for inner in _inner_loops(loop.body.block)):
        return None
    return candidates[-1] if candidates else None


def _cut_rows(loop: ParallelOp, axis: int) -> ParallelOp:
    """Take dimension `axis` out into a loop of its own, in chunks; gives that loop, `loop` is replaced.

    parallel (.., n) { body(i) }   ->   parallel (.., chunks) { parallel (length) { body(start + i) } }
    """
    extent = loop.extents[axis]
    before = Builder(InsertPoint.before(loop))
    chunk = _number(before, _CHUNK)
    chunks = before.insert(arith.CeilDivSIOp(extent, chunk)).result
    chunks.name_hint = "chunks"
    outer = ParallelOp([*(other for at, other in enumerate(loop.extents) if at != axis), chunks])
    outer.attributes["workers"] = UnitAttr()
    inside = Builder(InsertPoint.at_end(outer.body.block))
    start = inside.insert(arith.MuliOp(outer.body.block.args[-1], chunk)).result
    left = inside.insert(arith.SubiOp(extent, start)).result
    length = inside.insert(arith.MinSIOp(left, chunk)).result
    start.name_hint, length.name_hint = "start", "length"
    rows = inside.insert(ParallelOp([length], loop.detach_region(loop.body)))
    inside.insert(YieldOp(operands=[[]]))
    _rebase(rows, outer, axis, start)
    block = loop.parent
    assert block is not None
    block.insert_op_before(outer, loop)
    loop.detach()
    loop.erase()
    return rows


def _number(builder: Builder, value: int) -> SSAValue:
    return builder.insert(arith.ConstantOp.from_int_and_width(value, _INDEX)).result


def _rebase(rows: ParallelOp, outer: ParallelOp, axis: int, start: SSAValue) -> None:
    """Let the body of `rows` take its indices from `outer`; its own is counted from `start`."""
    body = rows.body.block
    index = body.args[axis]
    rest = iter(outer.body.block.args)
    for position, argument in enumerate(list(body.args)):
        if position != axis:
            argument.replace_all_uses_with(next(rest))
            body.erase_arg(argument)
    whole: SSAValue | None = None
    for use in list(index.uses):
        user = use.operation
        if isinstance(user, LoadOp | StoreOp) and index in user.indices:
            continue
        if whole is None:
            whole = _whole_index(body, start, index)
        user.operands[use.index] = whole
    for op in list(body.walk()):
        if isinstance(op, LoadOp | StoreOp) and index in op.indices:
            split_index(op, start, index)


def _whole_index(body: Block, start: SSAValue, index: BlockArgument) -> SSAValue:
    add = arith.AddiOp(start, index)
    first = body.first_op
    assert first is not None
    body.insert_op_before(add, first)
    return add.result
