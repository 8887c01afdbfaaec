"""Register tiles of 32-bit sums of int8 products, four in each lane, by the instructions that a processor has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_value import Value
from mlirt.builder.numba_cpu_intrinsics.memory import Memory
from mlirt.builder.numba_cpu_intrinsics.processor import has_feature
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, ir

_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_NEON_LANES = 4
_SIGNS = 0x80808080 - (1 << 32)  # the highest bit of each byte, as a signed word
FOUR = 4
"""Bytes whose products fall into one lane."""

# (accumulators, four uint8 in each lane, four signed ones in each lane) -> the accumulators with the products
# added.
DotAdd = Callable[[Value, Any, "Weights"], Value]


class Weights:
    """A vector of four int8 in each lane; what a processor needs of it besides is made once."""

    def __init__(self, builder: Any, llvm: Any, lanes: int) -> None:
        self.builder, self.llvm, self.lanes = builder, llvm, lanes
        self._pairs: tuple[Any, Any] | None = None
        self._offset: Any = None

    def pairs(self) -> tuple[Any, Any]:
        """The bytes 0 and 2, and the bytes 1 and 3, of each lane as 16-bit numbers."""
        if self._pairs is None:
            builder, words = self.builder, ir.VectorType(_I16, 2 * self.lanes)
            eight = ir.Constant(words, [8] * 2 * self.lanes)
            odd = builder.bitcast(self.llvm, words)
            self._pairs = builder.ashr(builder.shl(odd, eight), eight), builder.ashr(odd, eight)
        return self._pairs

    def bytes(self) -> Any:
        """The same as a vector of bytes."""
        return self.builder.bitcast(self.llvm, ir.VectorType(_I8, FOUR * self.lanes))

    def offset(self) -> Any:
        """Of each lane 128 times the sum of its bytes."""
        if self._offset is None:
            builder, zeros = self.builder, ir.Constant(ir.VectorType(_I32, self.lanes), None)
            least = ir.Constant(ir.VectorType(_I8, FOUR * self.lanes), [-128] * FOUR * self.lanes)
            self._offset = builder.sub(zeros, _neon_dot(builder, "sdot", zeros, self.bytes(), least))
        return self._offset


def _by_one_instruction(name: str) -> DotAdd:
    """One instruction multiplies, adds the four products, and adds their sum to the lane; it does not saturate."""

    def add(accumulators: Value, pixels: Any, weights: Weights) -> Value:
        kind = ir.FunctionType(accumulators.llvm_type, [accumulators.llvm_type] * 3)
        function = cgutils.get_or_insert_function(accumulators.builder.module, kind, name)
        return accumulators.like(accumulators.builder.call(function, [accumulators.llvm, pixels, weights.llvm]))

    return add


def _neon_dot(builder: Any, name: str, accumulators: Any, left: Any, right: Any) -> Any:
    """Arm's instruction for sums of four int8 products in each lane: `sdot` or, of uint8 by int8, `usdot`."""
    kind = ir.FunctionType(accumulators.type, [accumulators.type, left.type, right.type])
    suffix = f"v{accumulators.type.count}i32.v{left.type.count}i8"
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.aarch64.neon.{name}.{suffix}")
    return builder.call(function, [accumulators, left, right])


def _by_usdot(accumulators: Value, pixels: Any, weights: Weights) -> Value:
    pixels = accumulators.builder.bitcast(pixels, weights.bytes().type)
    return accumulators.like(_neon_dot(accumulators.builder, "usdot", accumulators.llvm, pixels, weights.bytes()))


def _by_sdot(accumulators: Value, pixels: Any, weights: Weights) -> Value:
    """Pixels without 128 are signed; what that takes off is added for each vector of weights."""
    builder = accumulators.builder
    signed = builder.xor(pixels, ir.Constant(pixels.type, [_SIGNS] * pixels.type.count))
    left = builder.bitcast(signed, weights.bytes().type)
    total = _neon_dot(builder, "sdot", accumulators.llvm, left, weights.bytes())
    return accumulators.like(builder.add(total, weights.offset()))


def _by_pairs(accumulators: Value, pixels: Any, weights: Weights) -> Value:
    """Pairs of 16-bit products, which many processors add in one instruction: they cannot overflow."""
    builder, lanes = accumulators.builder, accumulators.lanes
    words = ir.VectorType(_I16, 2 * lanes)
    low = ir.Constant(pixels.type, [0x00FF00FF] * lanes)
    even = builder.bitcast(builder.and_(pixels, low), words)
    odd = builder.lshr(builder.bitcast(pixels, words), ir.Constant(words, [8] * 2 * lanes))
    for factor, weight in zip((even, odd), weights.pairs(), strict=True):
        accumulators = accumulators.like(builder.add(accumulators.llvm, _pair_sums(builder, factor, weight, lanes)))
    return accumulators


def _pair_sums(builder: Any, left: Any, right: Any, lanes: int) -> Any:
    """The accumulators of neighbouring products, in the form that LLVM knows the instruction by."""
    wide = ir.VectorType(_I32, 2 * lanes)
    products = builder.mul(builder.sext(left, wide), builder.sext(right, wide))
    halves = [
        builder.shuffle_vector(
            products,
            ir.Constant(wide, ir.Undefined),
            ir.Constant(ir.VectorType(_I32, lanes), [2 * lane + half for lane in range(lanes)]),
        )
        for half in range(2)
    ]
    return builder.add(*halves)


def best_dot_add(lanes: int) -> DotAdd:
    """The way that suits the processor which the code is for."""
    if lanes == _NEON_LANES and has_feature("i8mm"):
        return _by_usdot
    if lanes == _NEON_LANES and has_feature("dotprod"):
        return _by_sdot
    wide = has_feature("avx512vnni") and (lanes == 16 or has_feature("avx512vl"))
    if lanes in (4, 8, 16) and (wide or (has_feature("avxvnni") and lanes < 16)):
        return _by_one_instruction(f"llvm.x86.avx512.vpdpbusd.{32 * lanes}")
    return _by_pairs


def four_int8(builder: Any, memory: Memory, at: Any, count: int) -> Any:
    """The next four bytes as one number, only `count` of which are read."""
    if count == FOUR:
        place = builder.bitcast(memory.at(at), _I32.as_pointer())
        return builder.load(place, align=1)
    word = _I32(0)
    for number in range(count):
        byte = builder.zext(memory.read(builder.add(at, _I64(number))).llvm, _I32)
        word = builder.or_(word, builder.shl(byte, _I32(8 * number)))
    return word


def weights_at(builder: Any, memory: Memory, at: Any, lane: int, words: Any) -> Weights:
    place = builder.bitcast(memory.at(builder.add(at, _I64(FOUR * lane))), words.as_pointer())
    loaded = builder.load(place, align=1)
    if memory.pointer.constant:
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return Weights(builder, loaded, words.count)
