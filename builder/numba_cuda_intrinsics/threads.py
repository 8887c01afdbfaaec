"""Threads and blocks: ids, barriers, shuffles, shared memory."""

from __future__ import annotations

from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import (
    F32,
    I8,
    I32,
    SCALARS,
    SHARED,
    VOID,
    ir,
    llvm_type,
    maker,
    ptx,
    unpack,
    word,
)
from mlirt.builder.numba_cuda_intrinsics.untyped import types


def _special(register: str) -> Any:
    """The number in a special register, as int32."""

    def emit(builder: Any) -> Any:
        return ptx(builder, f"mov.u32 $0, %{register};", [I32], [], pure=True)[0]

    return word(types.int32, [], emit)


thread_id = _special("tid.x")
block_id_0, block_id_1, block_id_2 = (_special(f"ctaid.{axis}") for axis in "xyz")
grid_size_0, grid_size_1, grid_size_2 = (_special(f"nctaid.{axis}") for axis in "xyz")


def _barrier(builder: Any) -> Any:
    name = "llvm.nvvm.barrier0"
    found = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(VOID, []), name)
    return builder.call(found, [])


barrier = word(types.void, [], _barrier)


def _warp_barrier(builder: Any) -> Any:
    name = "llvm.nvvm.bar.warp.sync"
    found = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(VOID, [I32]), name)
    return builder.call(found, [I32(-1)])


warp_barrier = word(types.void, [], _warp_barrier)


@maker
def block_is_finite(count: int) -> Any:
    """`word(x)`: whether all elements of the fragment `x` are finite, in all threads of the block."""

    def emit(builder: Any, fragment: Any) -> Any:
        # Zero times a number is zero, unless that is infinite or no number.
        total: Any = F32(0.0)
        for value in unpack(builder, fragment, count):
            total = builder.fadd(total, builder.fmul(value, F32(0.0)))
        lost = builder.zext(builder.fcmp_unordered("uno", total, total), I32)
        name = "llvm.nvvm.barrier0.or"
        found = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(I32, [I32]), name)
        return builder.icmp_signed("==", builder.call(found, [lost]), I32(0))

    return word(types.boolean, [types.UniTuple(types.float32, count)], emit)


@maker
def shuffle(type_name: str, mask: int) -> Any:
    """`word(x)`: the value of the thread whose number in the warp differs by exclusive or with `mask`."""
    type_ = SCALARS[type_name]

    text = f"shfl.sync.bfly.b32 $0, $1, {mask}, 31, -1;"

    def move(builder: Any, value: Any) -> Any:
        return ptx(builder, text, [value.type], [value], memory=True, convergent=True)[0]

    def emit(builder: Any, value: Any) -> Any:
        if value.type in (F32, I32):
            return move(builder, value)
        halves = builder.bitcast(value, ir.VectorType(I32, 2))
        for k in range(2):
            moved = move(builder, builder.extract_element(halves, I32(k)))
            halves = builder.insert_element(halves, moved, I32(k))
        return builder.bitcast(halves, value.type)

    return word(type_, [type_], emit)


@maker
def shared(type_name: str, offset: int) -> Any:
    """`word()`: a pointer to the block's shared memory, `offset` bytes from its start."""
    type_ = SCALARS[type_name]

    def emit(builder: Any) -> Any:
        start = builder.gep(_shared_memory(builder.module), [I32(0), I32(offset)])
        # A generic pointer: LLVM sees where it comes from, and loads and stores become those of shared memory.
        generic = builder.addrspacecast(start, ir.PointerType(I8))
        return builder.bitcast(generic, ir.PointerType(llvm_type(type_)))

    return word(types.CPointer(type_), [], emit)


def _shared_memory(module: Any) -> Any:
    """The block's dynamic shared memory: its size is given at the launch."""
    name = "shared_memory"
    found = module.globals.get(name)
    if found is None:
        found = ir.GlobalVariable(module, ir.ArrayType(I8, 0), name, addrspace=SHARED)
        found.linkage, found.align = "external", 1024  # the most that a piece of it asks for
    return found


def shared_address(builder: Any, pointer: Any, index: Any, size: int) -> Any:
    """The 32-bit address in shared memory of element `index` of a generic pointer."""
    start = builder.ptrtoint(
        builder.addrspacecast(builder.bitcast(pointer, ir.PointerType(I8)), ir.PointerType(I8, SHARED)), I32
    )
    return builder.add(start, builder.mul(builder.trunc(index, I32), I32(size)))
