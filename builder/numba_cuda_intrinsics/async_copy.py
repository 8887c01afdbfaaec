"""Copies from global to shared memory that go on while the threads compute."""

from __future__ import annotations

from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import GLOBAL, I8, I32, I64, SCALARS, SIZES, ir, maker, ptx, word
from mlirt.builder.numba_cuda_intrinsics.threads import shared_address
from mlirt.builder.numba_cuda_intrinsics.untyped import types


@maker
def copy_async(type_name: str, count: int, *, offsets: tuple[int, int] = (0, 0), guarded: bool = False) -> Any:
    """`word(source, i, target, j[, valid])`: start to copy `count` elements, those from `valid` on as zeros.

    The elements at `i` and `j`, moved by `offsets`, are the first ones.
    """
    size = SIZES[type_name]
    width = count * size
    pointer = types.CPointer(SCALARS[type_name])
    form = "cg" if width == 16 else "ca"

    def emit(builder: Any, source: Any, i: Any, target: Any, j: Any, valid: Any = None) -> Any:
        start = builder.gep(builder.bitcast(source, ir.PointerType(I8)), [builder.mul(i, I64(size))])
        address = builder.ptrtoint(builder.addrspacecast(start, ir.PointerType(I8, GLOBAL)), I64)
        operands = [shared_address(builder, target, j, size), address]
        if valid is None:
            text = f"cp.async.{form}.shared.global [$0+{offsets[1] * size}], [$1+{offsets[0] * size}], {width};"
            return ptx(builder, text, [], operands, memory=True)
        least, most = I64(0), I64(count)
        valid = builder.select(builder.icmp_signed("<", valid, least), least, valid)
        valid = builder.select(builder.icmp_signed(">", valid, most), most, valid)
        bytes_ = builder.mul(builder.trunc(valid, I32), I32(size))
        text = f"cp.async.{form}.shared.global [$0+{offsets[1] * size}], [$1+{offsets[0] * size}], {width}, $2;"
        return ptx(builder, text, [], [*operands, bytes_], memory=True)

    arguments = [pointer, types.int64, pointer, types.int64, *[types.int64] * guarded]
    return word(types.void, arguments, emit)


def _instruction(text: str) -> Any:
    """`word()`: one PTX instruction without operands."""

    def emit(builder: Any) -> Any:
        return ptx(builder, text, [], [], memory=True)

    return word(types.void, [], emit)


commit_async = _instruction("cp.async.commit_group;")


@maker
def wait_async(pending: int) -> Any:
    """`word()`: wait until only the `pending` newest groups may still be on their way."""
    return _instruction(f"cp.async.wait_group {pending};")
