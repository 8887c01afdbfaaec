"""Numbers that blocks send each other with flags, and the sum of the products of two fragments."""

from __future__ import annotations

from functools import reduce
from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import (
    F32,
    GLOBAL,
    I8,
    I64,
    SCALARS,
    SIZES,
    ir,
    llvm_type,
    maker,
    pack,
    ptx,
    unpack,
    word,
)
from mlirt.builder.numba_cuda_intrinsics.untyped import types

_MAX_LOAD_BYTES = 16  # bytes of a load
_CHAINS = 4


class _Words:
    """Words of twice the bits of a number: the flag, then the number."""

    def __init__(self, type_name: str) -> None:
        self.type = SCALARS[type_name]
        self.bytes = 2 * SIZES[type_name]
        self.whole, self.half = ir.IntType(8 * self.bytes), ir.IntType(4 * self.bytes)
        self.pointer = types.CPointer(getattr(types, f"int{8 * self.bytes}"))
        self.letter = "u32" if self.bytes == 4 else "u64"

    def address(self, builder: Any, pointer: Any, index: Any) -> Any:
        start = builder.gep(builder.bitcast(pointer, ir.PointerType(I8)), [builder.mul(index, I64(self.bytes))])
        return builder.ptrtoint(builder.addrspacecast(start, ir.PointerType(I8, GLOBAL)), I64)

    def flagged(self, builder: Any, flag: Any) -> Any:
        """The flag in its place in a word."""
        return builder.shl(builder.trunc(flag, self.whole) if self.bytes < 8 else flag, self.whole(4 * self.bytes))


@maker
def send_flagged(type_name: str) -> Any:
    """`word(x, flag, pointer, index)`: write a number with a flag."""
    words = _Words(type_name)

    def emit(builder: Any, value: Any, flag: Any, pointer: Any, index: Any) -> Any:
        number = builder.zext(builder.bitcast(value, words.half), words.whole)
        both = builder.or_(number, words.flagged(builder, flag))
        address = words.address(builder, pointer, index)
        return ptx(builder, f"st.relaxed.gpu.global.{words.letter} [$0], $1;", [], [address, both], memory=True)

    return word(types.void, [words.type, types.int64, words.pointer, types.int64], emit)


@maker
def receive_flagged(type_name: str, count: int, places: int) -> Any:
    """`word(pointer, flag, i0, ..)`: the numbers of `count` words from each of the places on, once all have the
    flag.
    """
    words = _Words(type_name)
    vector = f".v{count}" if count > 1 else ""
    registers = ",".join(f"${k}" for k in range(count))
    results = f"{{{registers}}}" if count > 1 else registers
    text = f"ld.relaxed.gpu.global{vector}.{words.letter} {results}, [${count}];"

    def emit(builder: Any, pointer: Any, flag: Any, *indices: Any) -> Any:
        wanted = words.flagged(builder, flag)
        addresses = [words.address(builder, pointer, index) for index in indices]
        again, here = builder.append_basic_block("again"), builder.append_basic_block("here")
        builder.branch(again)
        builder.position_at_end(again)
        found = [
            value
            for address in addresses
            for value in ptx(builder, text, [words.whole] * count, [address], memory=True)
        ]
        differing = reduce(builder.or_, [builder.xor(value, wanted) for value in found])
        late = builder.lshr(differing, words.whole(4 * words.bytes))
        builder.cbranch(builder.icmp_unsigned("==", late, words.whole(0)), here, again)
        builder.position_at_end(here)
        element = llvm_type(words.type)
        numbers = [builder.bitcast(builder.trunc(value, words.half), element) for value in found]
        return pack(builder, element, numbers)

    arguments = [words.pointer, types.int64, *[types.int64] * places]
    return word(types.UniTuple(words.type, count * places), arguments, emit)


@maker
def dot_product(count: int) -> Any:
    """`word(a, b)`: the sum of the products, in four chains."""
    both = types.UniTuple(types.float32, count)

    def emit(builder: Any, left: Any, right: Any) -> Any:
        name = "llvm.fma.f32"
        kind = ir.FunctionType(F32, [F32, F32, F32])
        fma = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        accumulators = [F32(0.0)] * _CHAINS
        for k, (a, b) in enumerate(zip(unpack(builder, left, count), unpack(builder, right, count), strict=True)):
            accumulators[k % _CHAINS] = builder.call(fma, [a, b, accumulators[k % _CHAINS]])
        return builder.fadd(
            builder.fadd(accumulators[0], accumulators[1]), builder.fadd(accumulators[2], accumulators[3])
        )

    return word(types.float32, [both, both], emit)
