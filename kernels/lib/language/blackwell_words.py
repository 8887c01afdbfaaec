"""Words of the kernel language for Blackwell GPUs: products into tensor memory (tcgen05), and loads from there."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import BoolAttr, i32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.matrix_unit import MmaKind
from mlirt.dialects.kernel.tensor_memory import (
    AllocateTensorMemoryOp,
    FreeTensorMemoryOp,
    LoadTensorMemoryOp,
    RelinquishTensorMemoryOp,
    TensorCommitOp,
    TensorFenceOp,
    TensorMmaOp,
)
from mlirt.dialects.kernel.warpgroup import LINE
from mlirt.kernels.lib.language.context import builder, emit
from mlirt.kernels.lib.language.hopper_words import Barrier, SharedTile
from mlirt.kernels.lib.language.simt_words import shared_memory
from mlirt.kernels.lib.language.values import Index, Value

__all__ = [
    "TensorColumns", "tcgen05_commit", "tcgen05_fence_after", "tcgen05_fence_before", "tcgen05_load", "tcgen05_mma",
    "tensor_columns",
]  # fmt: skip


@dataclass(frozen=True)
class TensorColumns:
    """So many columns of tensor memory, whose address is at a place in shared memory once a warp has allocated them."""

    count: int
    place: Value

    def allocate(self) -> None:
        """Allocate them, in one warp, for a block that asks for no more (tcgen05.alloc, relinquish_alloc_permit)."""
        k = builder()
        k.insert(AllocateTensorMemoryOp(self.place, k.index(0), self.count))
        k.insert(RelinquishTensorMemoryOp())

    def free(self, address: SSAValue) -> None:
        """Free them, in the same warp (tcgen05.dealloc)."""
        builder().insert(FreeTensorMemoryOp(address, self.count))


def tensor_columns(count: int) -> TensorColumns:
    """So many columns, a power of two from 32 to 512."""
    return TensorColumns(count, shared_memory("tensor_memory", 1, i32))


def tcgen05_mma(
    kind: MmaKind,
    address: Index,
    accumulate: Value | bool,
    a: SharedTile,
    b: SharedTile,
    columns: int,
    line: int = LINE,
) -> None:
    """Start a @ b^T of 128 rows and so many columns, in one thread; what is at the address is added if `accumulate`."""
    k = builder()
    adds = emit(arith.ConstantOp(BoolAttr.from_bool(accumulate))) if isinstance(accumulate, bool) else accumulate
    left, right = ((one.memory, k.index(one.index)) for one in (a, b))
    majors = {"left_by_depth": a.mn_major, "right_by_depth": b.mn_major}
    k.insert(TensorMmaOp(kind, k.index(address), adds, left, right, columns, line=line, **majors))


def tcgen05_commit(barrier: Barrier) -> None:
    """Let a barrier get an arrival when all products are done that this thread has started."""
    builder().insert(TensorCommitOp(barrier.memory, barrier.number))


def tcgen05_fence_after() -> None:
    """Between a wait, and the products and loads behind it."""
    builder().insert(TensorFenceOp(after=True))


def tcgen05_fence_before() -> None:
    """Between loads, and what tells others of them."""
    builder().insert(TensorFenceOp())


def tcgen05_load(address: Index, element: Attribute, columns: int) -> Value:
    """16 lanes of this warp and so many columns, as the accumulators of a warpgroup lie in registers."""
    return emit(LoadTensorMemoryOp(builder().index(address), element, columns))
