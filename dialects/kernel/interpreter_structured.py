"""What the structured ops mean lane-parallel: parallel loops, reductions, loads, stores and `scf`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp
from xdsl.ir import Operation, Region, SSAValue

from mlirt.dialects.combine import COMBINES
from mlirt.dialects.kernel.core import LoadOp, ParallelOp, ReduceOp, StoreOp, stride_values
from mlirt.dialects.kernel.interpreter_lanes import Epochs, Lanes, merge
from mlirt.dialects.kernel.transaction_barrier import MbarrierArriveOp, MbarrierExpectOp, MbarrierWaitOp

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.kernel.interpreter import Machine

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SYNCHRONIZES = (MbarrierArriveOp, MbarrierExpectOp, MbarrierWaitOp)
# Iterations of nested boxes that run together.
_MAX_LANES = 1 << 16


def linear_index(lanes: Lanes, op: LoadOp | StoreOp) -> Array:
    """The element that each active lane accesses."""
    import numpy as np

    total = np.zeros((), np.int64)
    for index, stride in zip(op.indices, stride_values(op), strict=True):
        step = lanes.array(stride) if isinstance(stride, SSAValue) else stride
        total = total + lanes.array(index) * step
    return np.broadcast_to(total, (lanes.count,))[lanes.active]


def _load(machine: Machine, lanes: Lanes, op: LoadOp) -> None:
    import numpy as np

    buffer = lanes.buffer(op.buffer)
    active = np.flatnonzero(lanes.active)
    result = np.zeros(lanes.count, buffer.data.dtype)
    result[active] = buffer.read(lanes.access(linear_index(lanes, op), active, machine.where(op)))
    lanes[op.result] = result


def _store(machine: Machine, lanes: Lanes, op: StoreOp) -> None:
    import numpy as np

    active = np.flatnonzero(lanes.active)
    access = lanes.access(linear_index(lanes, op), active, machine.where(op))
    lanes.buffer(op.buffer).write(access, lanes.per_lane(op.value)[active])


def _boxes(lanes: Lanes, extents: list[Array]) -> Iterator[tuple[Array, Array, Array]]:
    """(origin, iteration, indices) of the iterations of each active lane's box, in pieces of bounded size.

    `origin` is the lane that an iteration belongs to, `iteration` its row-major number, `indices` has one row per
    dimension.
    """
    import numpy as np

    shape = np.ones((len(extents), lanes.count), np.int64)
    for axis, extent in enumerate(extents):
        shape[axis] = np.maximum(extent, 0)
    sizes = np.where(lanes.active, shape.prod(axis=0), 0)
    step = max(1, _MAX_LANES // max(1, int(np.count_nonzero(sizes))))
    for first in range(0, int(sizes.max(initial=0)), step):
        here = np.clip(sizes - first, 0, step)
        origin = np.repeat(np.arange(lanes.count), here)
        iteration = first + np.arange(len(origin)) - np.repeat(np.cumsum(here) - here, here)
        rest, indices = iteration, np.empty((len(extents), len(origin)), np.int64)
        for axis in reversed(range(len(extents))):
            indices[axis] = rest % shape[axis, origin]
            rest = rest // shape[axis, origin]
        yield origin, iteration, indices


def _parallel(machine: Machine, lanes: Lanes, op: ParallelOp) -> None:
    import numpy as np

    extents = [lanes.array(extent) for extent in op.extents]
    _order(machine, lanes)
    for origin, iteration, indices in _boxes(lanes, extents):
        if lanes.depth:
            # A third level subdivides the threads of the second one.
            thread = lanes.thread[origin] * _MAX_LANES * (lanes.depth > 1) + iteration
            inner = Lanes(lanes.block[origin], thread, lanes.epochs, depth=lanes.depth + 1, parent=lanes, origin=origin)
        else:
            epochs = Epochs(int(iteration.max()) + 1)
            inner = Lanes(iteration, np.zeros_like(iteration), epochs, depth=1, parent=lanes, origin=origin)
        for name, index in zip(op.body.block.args, indices, strict=True):
            inner[name] = index
        machine.run_block(inner, op.body.block)
    _order(machine, lanes)


def _order(machine: Machine, lanes: Lanes) -> None:
    """What a parallel loop does comes after what stands before it, and before what follows."""
    import numpy as np

    if lanes.depth:
        lanes.epochs.start(np.unique(lanes.block[lanes.active]))
    else:
        for buffer in machine.buffers:
            buffer.forget()


def _reduce(machine: Machine, lanes: Lanes, op: ReduceOp) -> None:
    import numpy as np

    combine = COMBINES[op.kind.data].ufunc()
    total = np.broadcast_to(lanes.array(op.init), (lanes.count,)).copy()
    for origin, _, indices in _boxes(lanes, [lanes.array(extent) for extent in op.extents]):
        inner = lanes.split(origin)
        for name, index in zip(op.body.block.args, indices, strict=True):
            inner[name] = index
        (value,) = machine.run_block(inner, op.body.block)
        starts = np.flatnonzero(np.diff(origin, prepend=-1))
        partial = combine.reduceat(inner.per_lane(value), starts)
        total[origin[starts]] = combine(total[origin[starts]], partial.astype(total.dtype))
    lanes[op.result] = total


def _if(machine: Machine, lanes: Lanes, op: IfOp) -> None:
    condition = lanes.per_lane(op.cond)
    results: list[list[Array]] = []
    sides = ((lanes.active & condition, op.true_region), (lanes.active & ~condition, op.false_region))
    if all(chosen.any() and _waits(region) for chosen, region in sides):
        machine.coroutines.concurrently([_as_part(machine, lanes, chosen, region) for chosen, region in sides])
        return
    for chosen, region in sides:
        if not chosen.any() or region.first_block is None:
            results.append([])
            continue
        with lanes.only(chosen):
            results.append([lanes.array(value) for value in machine.run_block(lanes, region.block)])
    then, otherwise = results
    for position, name in enumerate(op.output):
        if then and otherwise:
            lanes[name] = merge(condition, then[position], otherwise[position])
        else:
            lanes[name] = (then or otherwise)[position]


def _waits(region: Region) -> bool:
    """Whether lanes may have to wait there for what other lanes do, or these for them."""
    return region.first_block is not None and any(isinstance(op, _SYNCHRONIZES) for op in region.walk())


def _as_part(machine: Machine, lanes: Lanes, chosen: Array, region: Region) -> Callable[[], None]:
    """One side of a branch for lanes of its own, so that the sides can take turns."""
    import numpy as np

    inner = lanes.split(np.flatnonzero(chosen))
    return lambda: (machine.run_block(inner, region.block), None)[1]


def _for(machine: Machine, lanes: Lanes, op: ForOp) -> None:
    import numpy as np

    index, limit, step = (lanes.array(bound) for bound in (op.lb, op.ub, op.step))
    carried = [lanes.array(value) for value in op.iter_args]
    names = op.body.block.args
    while (running := lanes.active & (index < limit)).any():
        lanes[names[0]] = index
        for name, value in zip(names[1:], carried, strict=True):
            lanes[name] = value
        with lanes.only(running):
            new = [lanes.array(value) for value in machine.run_block(lanes, op.body.block)]
        if not np.array_equal(running, lanes.active):
            new = [merge(running, value, lanes.array(name)) for name, value in zip(names[1:], new, strict=True)]
        carried = new
        index = index + step
    for name, value in zip(op.res, carried, strict=True):
        lanes[name] = value


def _while(machine: Machine, lanes: Lanes, op: WhileOp) -> None:
    carried = [lanes.array(value) for value in op.arguments]
    results: list[Array] = []
    running = lanes.active
    while running.any():
        for name, value in zip(op.before_region.block.args, carried, strict=True):
            lanes[name] = value
        with lanes.only(running):
            machine.run_block(lanes, op.before_region.block)
        condition = op.before_region.block.last_op
        assert isinstance(condition, ConditionOp)
        passed = [lanes.array(value) for value in condition.args]
        results = [merge(running, new, old) for new, old in zip(passed, results or passed, strict=True)]
        running = running & lanes.per_lane(condition.condition)
        if not running.any():
            break
        for name, value in zip(op.after_region.block.args, passed, strict=True):
            lanes[name] = value
        with lanes.only(running):
            new = [lanes.array(value) for value in machine.run_block(lanes, op.after_region.block)]
        carried = [merge(running, value, old) for value, old in zip(new, carried, strict=True)]
    for name, value in zip(op.res, results, strict=True):
        lanes[name] = value


def _execute_region(machine: Machine, lanes: Lanes, op: Operation) -> None:
    for name, value in zip(op.results, machine.run_block(lanes, op.regions[0].block), strict=True):
        lanes[name] = lanes.get(value)


RULES = {
    "kernel.load": _load,
    "kernel.store": _store,
    "kernel.parallel": _parallel,
    "kernel.reduce": _reduce,
    "scf.if": _if,
    "scf.for": _for,
    "scf.while": _while,
    "scf.execute_region": _execute_region,
}
