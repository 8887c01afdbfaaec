"""Software pipelining of a product's loop over its depth: while one stage is multiplied, the next ones are copied."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.async_copy import CommitAsyncOp, WaitAsyncOp
from mlirt.dialects.kernel.simt import BarrierOp
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.engines import Engine
from mlirt.kernels.lib.cuda.tiles.loaders import Loader


def sum_of_products(
    k: KernelBuilder, engine: Engine, left: Loader, right: Loader, first: SSAValue, steps: SSAValue, stages: int
) -> SSAValue:
    """The accumulators of `steps` tiles from tile `first` on; afterwards no copy is on its way, and all threads are
    done.
    """
    loop = _staged if left.is_async and right.is_async else _through_registers
    accumulators = loop(k, engine, left, right, first, steps, stages)
    k.insert(WaitAsyncOp(0))
    k.insert(BarrierOp())
    return accumulators


def stages_for(left_is_async: bool, right_is_async: bool, wanted: int) -> int:
    """How many stages the loop uses."""
    return wanted if left_is_async and right_is_async else 2


def _staged(
    k: KernelBuilder, engine: Engine, left: Loader, right: Loader, first: SSAValue, steps: SSAValue, stages: int
) -> SSAValue:
    """Copies run `stages - 1` steps ahead; a prologue starts the first ones.

    `for i { wait for stage i; barrier; start stage i + stages - 1 where i - 1 was; multiply stage i }`
    """

    def start(step: SSAValue, stage: SSAValue | int) -> None:
        left.start(step, stage)
        right.start(step, stage)

    def ahead(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
        k.when(k.compare("slt", i, steps), lambda: start(k.add(first, i), i))
        k.insert(CommitAsyncOp())
        return carried

    k.loop(stages - 1, [], ahead, ["stage"])

    def body(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
        accumulators, reading, writing = carried
        k.insert(WaitAsyncOp(stages - 2))
        k.insert(BarrierOp())
        later = k.named(k.add(i, stages - 1), "later")
        k.when(k.compare("slt", later, steps), lambda: start(k.add(first, later), writing))
        k.insert(CommitAsyncOp())
        accumulators = engine.multiply(accumulators, left.tile, right.tile, reading)
        return [accumulators, _next(k, reading, stages), _next(k, writing, stages)]

    names = ["step", "total", "reading", "writing"]
    return k.loop(steps, [engine.zeros(), k.constant(0), k.constant(stages - 1)], body, names)[0]


def _next(k: KernelBuilder, stage: SSAValue, stages: int) -> SSAValue:
    following = k.named(k.add(stage, 1), "next_stage")
    return k.select(k.compare("eq", following, stages), 0, following)


def _through_registers(
    k: KernelBuilder, engine: Engine, left: Loader, right: Loader, first: SSAValue, steps: SSAValue, stages: int
) -> SSAValue:
    """One step ahead: what cannot be copied asynchronously waits in registers while a stage is multiplied."""
    direct = [one for one in (left, right) if one.is_async]
    held = [one for one in (left, right) if not one.is_async]
    for one in direct:
        one.start(first, 0)
    for one in held:
        one.put(one.fetch(first, None), 0)
    k.insert(CommitAsyncOp())
    k.insert(WaitAsyncOp(0))
    k.insert(BarrierOp())

    def body(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
        accumulators, reading = carried
        writing = k.named(k.sub(k.constant(1), reading), "writing")
        later = k.named(k.add(i, 1), "later")
        more = k.named(k.compare("slt", later, steps), "more")
        step = k.add(first, later)
        fragments = [one.fetch(step, more) for one in held]

        def start() -> None:
            for one in direct:
                one.start(step, writing)

        k.when(more, start)
        k.insert(CommitAsyncOp())
        accumulators = engine.multiply(accumulators, left.tile, right.tile, reading)
        for one, some in zip(held, fragments, strict=True):
            one.put(some, writing)
        k.insert(WaitAsyncOp(0))
        k.insert(BarrierOp())
        return [accumulators, writing]

    return k.loop(steps, [engine.zeros(), k.constant(0)], body, ["step", "total", "reading"])[0]
