"""Clusters of blocks, and kernels that start before the one before has ended."""

from __future__ import annotations

from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import I8, I32, I64, SCALARS, ir, llvm_type, maker, ptx, word
from mlirt.builder.numba_cuda_intrinsics.untyped import types


def _statement(text: str) -> Any:
    """`word()`: PTX without operands that all threads execute together."""

    def emit(builder: Any) -> Any:
        return ptx(builder, text, [], [], memory=True, convergent=True)

    return word(types.void, [], emit)


def _rank(builder: Any) -> Any:
    return ptx(builder, "mov.u32 $0, %cluster_ctarank;", [I32], [], pure=True)[0]


cluster_rank = word(types.int32, [], _rank)
cluster_barrier = _statement("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;")
wait_dependency = _statement("griddepcontrol.wait;")
launch_dependents = _statement("griddepcontrol.launch_dependents;")


@maker
def remote_shared(type_name: str) -> Any:
    """`word(pointer, rank)`: the same place in the shared memory of another block of the cluster."""
    type_ = SCALARS[type_name]

    def emit(builder: Any, pointer: Any, rank: Any) -> Any:
        number = builder.ptrtoint(builder.bitcast(pointer, ir.PointerType(I8)), I64)
        (address,) = ptx(builder, "mapa.u64 $0, $1, $2;", [I64], [number, builder.trunc(rank, I32)], pure=True)
        return builder.inttoptr(address, ir.PointerType(llvm_type(type_)))

    return word(types.CPointer(type_), [types.CPointer(type_), types.int64], emit)
