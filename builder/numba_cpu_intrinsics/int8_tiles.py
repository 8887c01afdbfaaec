"""Register tiles of 32-bit sums of int8 products, four in each lane, by the instructions that a processor has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_value import Value
from mlirt.builder.numba_cpu_intrinsics.memory import Memory
from mlirt.builder.numba_cpu_intrinsics.processor import code_processor
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, ir

_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
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

    def pairs(self) -> tuple[Any, Any]:
        """The bytes 0 and 2, and the bytes 1 and 3, of each lane as 16-bit numbers."""
        if self._pairs is None:
            builder, words = self.builder, ir.VectorType(_I16, 2 * self.lanes)
            eight = ir.Constant(words, [8] * 2 * self.lanes)
            odd = builder.bitcast(self.llvm, words)
            self._pairs = builder.ashr(builder.shl(odd, eight), eight), builder.ashr(odd, eight)
        return self._pairs


def _by_one_instruction(name: str) -> DotAdd:
    """One instruction multiplies, adds the four products, and adds their sum to the lane; it does not saturate."""

    def add(accumulators: Value, pixels: Any, weights: Weights) -> Value:
        kind = ir.FunctionType(accumulators.llvm_type, [accumulators.llvm_type] * 3)
        function = cgutils.get_or_insert_function(accumulators.builder.module, kind, name)
        return accumulators.like(accumulators.builder.call(function, [accumulators.llvm, pixels, weights.llvm]))

    return add


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


def best_dot_add(context: Any, lanes: int) -> DotAdd:
    """The way that suits the processor which the code is for, whose features numba was told."""
    features = code_processor().features
    wide = "+avx512vnni" in features and (lanes == 16 or "+avx512vl" in features)
    if lanes in (4, 8, 16) and (wide or ("+avxvnni" in features and lanes < 16)):
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
