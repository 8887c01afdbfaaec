"""Words of the kernel language for Hopper GPUs: warp roles, mbarriers, bulk copies (TMA), wgmma, clusters."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from mlirt.dialects.kernel.cluster import (
    ClusterBarrierOp,
    ClusterRankOp,
    LaunchDependentsOp,
    RemoteSharedOp,
    WaitDependencyOp,
)
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.kernel.matrix_unit import MmaKind
from mlirt.dialects.kernel.tensor_copy import LoadBoxOp, LoadWindowOp
from mlirt.dialects.kernel.transaction_barrier import (
    AsyncFenceOp,
    MbarrierArriveOp,
    MbarrierExpectOp,
    MbarrierFenceOp,
    MbarrierInitOp,
    MbarrierWaitOp,
)
from mlirt.dialects.kernel.warp_specialization import EachWarpgroupOp
from mlirt.dialects.kernel.warpgroup import (
    LINE,
    WARPGROUP,
    SetRegistersOp,
    WarpgroupAccumulatorsOp,
    WarpgroupMmaOp,
    WarpgroupWaitOp,
    WarpValueOp,
)
from mlirt.kernels.lib.language.context import builder, emit
from mlirt.kernels.lib.language.simt_words import shared_memory
from mlirt.kernels.lib.language.values import Index, Value

__all__ = [
    "Barrier", "Barriers", "SharedTile", "cluster_rank", "each_warpgroup", "fence_async", "fence_mbarriers",
    "launch_dependents", "mbarriers", "remote_shared", "set_registers", "sync_cluster", "tma_load",
    "tma_load_window", "wait_dependency", "warp_uniform", "wgmma", "wgmma_result", "wgmma_wait",
]  # fmt: skip


# Roles of warps, and launches.


def warp_uniform(number: SSAValue) -> Value:
    """A number that all threads of a warp agree on, such as that of their warp: branches on it do not diverge."""
    return emit(WarpValueOp(number))


def set_registers(count: int, *, grow: bool) -> None:
    """Let each thread of this warpgroup have so many registers (setmaxnreg)."""
    builder().insert(SetRegistersOp(count, grow=grow))


@contextmanager
def each_warpgroup(threads: int = WARPGROUP) -> Generator[None]:
    """What warpgroups, or warps, do one apart from the other, each in a loop of its own."""
    op, k = EachWarpgroupOp(threads=threads), builder()
    with k.inside(op.body.block):
        yield
        k.insert(YieldOp(operands=[[]]))
    k.insert(op)


def launch_dependents() -> None:
    """Programmatic dependent launch: the next kernel of the stream may start."""
    builder().insert(LaunchDependentsOp())


def wait_dependency() -> None:
    """Programmatic dependent launch: wait until the kernel before this one has ended."""
    builder().insert(WaitDependencyOp())


# Clusters.


def cluster_rank() -> Value:
    """The number of this block in its cluster."""
    return emit(ClusterRankOp())


def sync_cluster() -> None:
    """Wait until all threads of the cluster are here."""
    builder().insert(ClusterBarrierOp())


def remote_shared(memory: SSAValue, rank: int) -> Value:
    """The same shared memory of another block of the cluster."""
    return emit(RemoteSharedOp(memory, builder().constant(rank)))


# Barriers and bulk copies.


@dataclass(frozen=True)
class Barrier:
    """An mbarrier: a phase ends when all arrivals and all announced bytes are there."""

    memory: SSAValue
    number: SSAValue

    def init(self, arrivals: int) -> None:
        """Make it, in one thread."""
        builder().insert(MbarrierInitOp(self.memory, self.number, arrivals))

    def expect(self, count: int) -> None:
        """Arrive, and announce that so many bytes come."""
        builder().insert(MbarrierExpectOp(self.memory, self.number, count))

    def arrive(self) -> None:
        """Arrive."""
        builder().insert(MbarrierArriveOp(self.memory, self.number))

    def wait(self, parity: Index) -> None:
        """Wait until the phase of a parity has ended."""
        builder().insert(MbarrierWaitOp(self.memory, self.number, builder().index(parity)))


@dataclass(frozen=True)
class Barriers:
    """Some mbarriers in shared memory, which one thread has to make; `[i]` is one of them."""

    count: int
    memory: SSAValue

    def __getitem__(self, number: Index) -> Barrier:
        return Barrier(self.memory, builder().index(number))

    def all(self) -> list[Barrier]:
        """Each of them."""
        return [self[number] for number in range(self.count)]


def mbarriers(name: str, count: int) -> Barriers:
    """So many mbarriers."""
    return Barriers(count, shared_memory(name, count, i64))


def fence_mbarriers() -> None:
    """Let bulk copies see the barriers that were made."""
    builder().insert(MbarrierFenceOp())


def fence_async() -> None:
    """Let matrix units see what this thread has written to shared memory, once others know of it."""
    builder().insert(AsyncFenceOp())


@dataclass(frozen=True)
class SharedTile:
    """A tile in shared memory, which starts at an index; `mn_major` if neighbours along the sum are no neighbours."""

    memory: SSAValue
    index: Index
    mn_major: bool = False


def tma_load(tensor_map: SSAValue, origin: Sequence[Index], target: SharedTile, barrier: Barrier) -> None:
    """Start to copy the box of a tensor map at an origin to shared memory; the barrier counts its bytes."""
    k = builder()
    places = [k.index(one) for one in origin]
    builder().insert(
        LoadBoxOp(tensor_map, places, target.memory, k.index(target.index), barrier.memory, barrier.number)
    )


def tma_load_window(
    tensor_map: SSAValue, origin: Sequence[Index], offsets: Sequence[Index], target: SharedTile, barrier: Barrier
) -> None:
    """The same for the pixels that one tap of a window reads, whose first one has an origin, and the tap offsets."""
    k = builder()
    places, taps = ([k.index(one) for one in given] for given in (origin, offsets))
    k.insert(
        LoadWindowOp(tensor_map, places, taps, target.memory, k.index(target.index), barrier.memory, barrier.number)
    )


# Products of warpgroups.


def wgmma(
    kind: MmaKind,
    accumulators: SSAValue,
    a: SharedTile,
    b: SharedTile,
    columns: int,
    line: int = LINE,
    step: int | None = None,
    columns_step: int | None = None,
) -> Value:
    """Start accumulators + a @ b^T of 64 rows and so many columns in shared memory, and commit it as a group.

    A row of a tile is a `line` of bytes; with a `step` groups of 8 lines of `a` are so many lines apart, with a
    `columns_step` those of `b`.
    """
    left, right = ((one.memory, builder().index(one.index)) for one in (a, b))
    majors = {"left_by_depth": a.mn_major, "right_by_depth": b.mn_major}
    made = WarpgroupMmaOp(
        kind, accumulators, left, right, columns, line=line, **majors, left_step=step, right_step=columns_step
    )
    return emit(made)


def wgmma_wait(pending: int) -> None:
    """Wait until at most so many groups of this warpgroup still read their tiles."""
    builder().insert(WarpgroupWaitOp(pending))


def wgmma_result(accumulators: SSAValue) -> Value:
    """Wait for all groups of this warpgroup: the accumulators may be read."""
    return emit(WarpgroupAccumulatorsOp(accumulators))
