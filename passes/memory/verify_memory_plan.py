"""Stops where the plan of memory would let a launch read or write what is not its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.diagnostics import OperationError
from mlirt.dialects.plan.expression import PointerAttr
from mlirt.dialects.plan.ops import BufferKind, BufferOp, InputOp, LaunchOp, OutputOp, ViewOp, WeightOp
from mlirt.dialects.plan.step_numbers import StepNumbers
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import stored_bytes

# The arena's alignment in bytes, as runtime/memory_planning.py has it.
_ALIGNMENT = 256


@dataclass(frozen=True)
class VerifyMemoryPlanPass(ModulePass):
    """Check the attributes that `plan-memory` (or a test) wrote, as far as sizes are numbers; change nothing.

    Every buffer has a lifetime that covers all launches using it; buffers of one halo class have one size and one fill;
    views and pointers stay inside of what they point into; and arena buffers with offsets are aligned and do not
    overlap while they are alive together.

    Before: two buffers at offset 0 that are alive in [0, 2] and in [1, 3]
    After: `error: 'plan.buffer' op overlaps another buffer that is alive in [0, 2]`
    """

    name = "verify-memory-plan"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [
            inner for inner in op.body.block.ops if isinstance(inner, FuncOp) and not inner.is_declaration
        ]:
            ops = list(function.body.block.ops)
            numbers = StepNumbers.of(ops)
            launches = numbers.launches
            buffers = [inner for inner in ops if isinstance(inner, BufferOp)]
            _check_lifetimes(launches, buffers)
            _check_loops(numbers)
            _check_returned(ops, len(launches))
            _check_bounds([*ops, *launches])
            _check_halo_classes(buffers)
            for left, right in combinations([one for one in buffers if _is_placed(one)], 2):
                _check_apart(left, right)


def _lifetime(op: BufferOp) -> tuple[int, int]:
    if op.first is None or op.last is None:
        raise OperationError(op, "has no lifetime: expected first and last, run plan-memory")
    return op.first.value.data, op.last.value.data


def _root(buffer: SSAValue) -> Operation:
    owner = buffer.owner
    assert isinstance(owner, Operation)
    return _root(owner.source) if isinstance(owner, ViewOp) else owner


def _check_lifetimes(launches: Sequence[LaunchOp], buffers: Sequence[BufferOp]) -> None:
    for op in buffers:
        _lifetime(op)
    for step, launch in enumerate(launches):
        for root in map(_root, launch.buffers):
            if isinstance(root, BufferOp):
                first, last = _lifetime(root)
                if not first <= step <= last:
                    raise OperationError(
                        launch, f"is launch {step} and uses a buffer that is alive in [{first}, {last}]"
                    )


def _check_loops(numbers: StepNumbers) -> None:
    """What a loop uses is alive only inside of it, or through all of its iterations."""
    for loop in numbers.loops:
        for launch in numbers.launches[loop.first : loop.last + 1]:
            for root in map(_root, launch.buffers):
                first, last = _lifetime(root) if isinstance(root, BufferOp) else (loop.first, loop.last)
                within = loop.first <= first and last <= loop.last
                if not within and not (first <= loop.first and loop.last <= last):
                    raise OperationError(
                        launch,
                        f"is in a loop over [{loop.first}, {loop.last}] and uses a buffer that is alive in "
                        f"[{first}, {last}]",
                    )


def _check_returned(ops: Sequence[Operation], launches: int) -> None:
    for op in ops:
        root = _root(op.buffer) if isinstance(op, OutputOp) else None
        if isinstance(root, BufferOp) and _lifetime(root)[1] < launches - 1:
            raise OperationError(op, f"returns a buffer that dies after launch {_lifetime(root)[1]} of {launches}")


def _check_bounds(ops: Sequence[Operation]) -> None:
    for op in ops:
        for start, size, room in _parts(op):
            if isinstance(start, int) and start < 0:
                raise OperationError(op, f"starts {start} bytes before its buffer")
            end = start + size
            if isinstance(end, int) and isinstance(room, int) and end > room:
                raise OperationError(op, f"reaches byte {end} of a buffer of {room} bytes")


def _parts(op: Operation) -> Iterator[tuple[Dim, Dim, Dim]]:
    """(start, bytes, bytes of the whole) of what an op points at."""
    if isinstance(op, ViewOp):
        yield op.offset.value(), op.bytes.value(), _size(op.source)
    elif isinstance(op, OutputOp):
        yield 0, stored_bytes(op.result.type), _size(op.buffer)
    elif isinstance(op, LaunchOp):
        for arg in op.arguments():
            if isinstance(arg, PointerAttr):
                yield arg.value(), 0, _size(op.buffers[arg.operand.data])


def _size(buffer: SSAValue) -> Dim:
    owner = buffer.owner
    if isinstance(owner, BufferOp | ViewOp):
        return owner.bytes.value()
    if isinstance(owner, WeightOp):
        return owner.bytes.value.data
    assert isinstance(owner, InputOp)
    return stored_bytes(owner.source.type)


def _check_halo_classes(buffers: Sequence[BufferOp]) -> None:
    sizes: dict[str, Dim] = {}
    fills: dict[str, int] = {}
    for op in buffers:
        fill = op.fill.value.data
        if op.halo is not None and fills.setdefault(op.halo.data, fill) != fill:
            raise OperationError(op, f"has {fill} in its halo, others of its class have {fills[op.halo.data]}")
        if op.halo is not None and sizes.setdefault(op.halo.data, op.bytes.value()) != op.bytes.value():
            raise OperationError(
                op, f"has {op.bytes.value()} bytes, others of its halo class have {sizes[op.halo.data]}"
            )


def _is_placed(op: BufferOp) -> bool:
    return op.kind.data is BufferKind.ARENA and op.offset is not None


def _check_apart(left: BufferOp, right: BufferOp) -> None:
    places = [_place(op) for op in (left, right)]
    if None in places:
        return
    (start, size), (other, length) = (place for place in places if place is not None)
    (first, last), (begin, end) = _lifetime(left), _lifetime(right)
    shares_class = left.halo == right.halo
    together = (first <= end and begin <= last) or (
        not shares_class and (left.halo is not None or right.halo is not None)
    )
    if together and size and length and start < other + length and other < start + size:
        raise OperationError(right, f"overlaps another buffer that is alive in [{first}, {last}]")


def _place(op: BufferOp) -> tuple[int, int] | None:
    """(offset, bytes) where both are numbers."""
    offset, size = None if op.offset is None else op.offset.value(), op.bytes.value()
    if not isinstance(offset, int) or not isinstance(size, int):
        return None
    if offset % _ALIGNMENT:
        raise OperationError(op, f"lies at offset {offset}, which is no multiple of {_ALIGNMENT}")
    return offset, size
