"""Words of the kernel language for CUDA: threads and blocks, shared memory, barriers, shuffles, fragments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.async_copy import CommitAsyncOp, CopyAsyncOp, WaitAsyncOp
from mlirt.dialects.kernel.buffers import length
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.kernel.fragment import (
    FillFragmentOp,
    FragmentElementOp,
    FragmentOp,
    LoadFragmentOp,
    StoreFragmentOp,
)
from mlirt.dialects.kernel.fragment_map import FragmentPartOp, MapFragmentOp
from mlirt.dialects.kernel.matrix_unit import LoadMatrixOp, MmaKind, MmaOp
from mlirt.dialects.kernel.simt import (
    BarrierOp,
    BlockIdOp,
    GridSizeOp,
    ReuseSharedOp,
    SharedOp,
    ShuffleOp,
    ThreadIdOp,
    WarpBarrierOp,
)
from mlirt.dialects.kernel.split_float import BlockIsFiniteOp
from mlirt.kernels.lib.language.context import builder, emit
from mlirt.kernels.lib.language.values import Index, Value, value_of

__all__ = [
    "Access", "block_id", "block_is_finite", "commit_copies", "copy_async", "count_where", "element_at", "elementwise",
    "filled", "fragment", "grid_size", "load_fragment", "load_matrix", "mma", "named", "part_of", "reuse_shared",
    "shared_memory", "shuffle_xor", "store_fragment", "sync_threads", "sync_warp", "thread_id", "wait_for_copies",
    "zeros",
]  # fmt: skip


def named(value: SSAValue, name: str) -> Value:
    """A value under a name in the generated text."""
    value.name_hint = name
    return value_of(value)


# Threads.


def thread_id() -> Value:
    """The number of this thread in its block (threadIdx.x)."""
    return named(emit(ThreadIdOp()), "thread")


def block_id(axis: int = 0) -> Value:
    """The number of this block in its grid (blockIdx.x), or along another axis of that."""
    made = emit(BlockIdOp(axis))
    return made if axis else named(made, "block")


def grid_size() -> Value:
    """The number of blocks (gridDim.x)."""
    return named(emit(GridSizeOp(0)), "blocks")


def sync_threads() -> None:
    """Wait until all threads of the block are here (__syncthreads)."""
    builder().insert(BarrierOp())


def sync_warp() -> None:
    """Wait until all threads of the warp are here (__syncwarp)."""
    builder().insert(WarpBarrierOp())


def commit_copies() -> None:
    """Make one group of the asynchronous copies that this thread has started since (cp.async.commit_group)."""
    builder().insert(CommitAsyncOp())


def wait_for_copies(groups: int) -> None:
    """Wait until at most the last `groups` groups of this thread's copies are on their way (cp.async.wait_group)."""
    builder().insert(WaitAsyncOp(groups))


def block_is_finite(fragment: SSAValue) -> Value:
    """Whether a fragment's elements are finite in all threads of the block, which wait for each other."""
    return emit(BlockIsFiniteOp(fragment))


def shuffle_xor(value: SSAValue, mask: int) -> Value:
    """The value of the thread of the warp whose lane differs by a mask (__shfl_xor_sync)."""
    return emit(ShuffleOp(value, mask))


# Memory.


def shared_memory(name: str, count: int, element: Attribute, alignment: int | None = None) -> Value:
    """So many elements that the threads of a block share; with `[i]` they are loaded and stored."""
    return named(emit(SharedOp(count, element) if alignment is None else SharedOp(count, element, alignment)), name)


def reuse_shared(name: str, memory: SSAValue, count: int, element: Attribute) -> Value:
    """So many elements in the place of shared memory that nobody uses any more."""
    return named(emit(ReuseSharedOp(memory, count, element)), name)


@dataclass(frozen=True)
class Access:
    """Which elements a thread accesses together: those at `offsets` from an index, times a `stride` if there is one.

    Of these the first `valid` ones exist (None: all). `wide`: neighbours lie so that one instruction moves them, of
    at most `together` elements unless that is 0.
    """

    offsets: Sequence[int]
    stride: SSAValue | None = None
    valid: Index | None = None
    wide: bool = False
    together: int = 0

    def fields(self) -> dict[str, Any]:
        """Those of the ops that access memory so."""
        valid = None if self.valid is None else builder().index(self.valid)
        return {"stride": self.stride, "valid": valid, "wide": self.wide, "together": self.together}


def count_where(condition: SSAValue | bool, count: Index) -> Index | None:
    """The `valid` elements of an access that has them all under a condition: None where that always holds."""
    if isinstance(condition, bool):
        return None if condition else 0
    return value_of(builder().select(condition, count, 0))


def copy_async(
    source: SSAValue,
    index: Index,
    shared: SSAValue,
    at: Index,
    count: int,
    valid: Index | None = None,
    offsets: tuple[int, int] = (0, 0),
) -> None:
    """Start to copy elements to shared memory, both indices moved by `offsets`; those beyond `valid` become zero."""
    k = builder()
    end = None if valid is None else k.index(valid)
    k.insert(CopyAsyncOp(source, k.index(index), shared, k.index(at), count, end, offsets))


def load_fragment(memory: SSAValue, index: Index, access: Access) -> Value:
    """Elements in registers; zero where there are none."""
    place = builder().index(index)
    return emit(LoadFragmentOp(memory, place, access.offsets, **access.fields()))


def store_fragment(value: SSAValue, memory: SSAValue, index: Index, access: Access) -> None:
    """Write elements from registers; those that do not exist are left out."""
    place = builder().index(index)
    builder().insert(StoreFragmentOp(value, memory, place, access.offsets, **access.fields()))


def fragment(elements: Sequence[SSAValue]) -> Value:
    """Numbers as a fragment."""
    return emit(FragmentOp(elements))


def part_of(value: SSAValue, first: int, count: int) -> Value:
    """So many numbers of a fragment."""
    return emit(FragmentPartOp(value, first, count))


def element_at(value: SSAValue, number: int) -> Value:
    """One number of a fragment."""
    return emit(FragmentElementOp(value, number))


def elementwise(function: Callable[..., Any], element: Attribute, *fragments: SSAValue) -> Value:
    """A function of numbers on each element of fragments, which gives one of a type."""
    op, k = MapFragmentOp(fragments, element, length(fragments[0])), builder()
    with k.inside(op.body.block):
        k.insert(YieldOp(operands=[[function(*op.body.block.args)]]))
    return emit(op)


def load_matrix(shared: SSAValue, index: Index, count: int, step: int, *, transpose: bool = False) -> Value:
    """Each thread's part of `count` times four 8x8 matrices in shared memory, `step` elements apart (ldmatrix)."""
    return emit(LoadMatrixOp(shared, builder().index(index), count, step, transpose=transpose))


def mma(kind: MmaKind, accumulators: SSAValue, a: SSAValue, b: SSAValue, rows: int, columns: int) -> Value:
    """accumulators + a @ b of a warp: `rows` x 16 rows, `columns` x 8 columns (mma.sync)."""
    return emit(MmaOp(kind, accumulators, a, b, rows, columns))


def zeros(element: Attribute, count: int) -> Value:
    """A fragment of so many zeros: the accumulators of a thread."""
    return filled(0, element, count)


def filled(number: float, element: Attribute, count: int) -> Value:
    """A fragment that has a number so many times."""
    return emit(FillFragmentOp(builder().constant(number, element), count))
