"""Register tiles of 32-bit sums of int8 products, four in each lane, by the instructions that a processor has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_value import Value
from mlirt.builder.numba_cpu_intrinsics.memory import Memory
from mlirt.builder.numba_cpu_intrinsics.processor import has_feature, is_x86
from mlirt.builder.numba_cpu_intrinsics.scalable import dot, dot_by_lane, fills_register
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, ir, types

_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_NEON_LANES = 4
_SIGNS = 0x80808080 - (1 << 32)  # the highest bit of each byte, as a signed word
SIGNED = 128
FOUR = 4
"""Bytes whose products fall into one lane."""

# (accumulators, four uint8, four signed ones in each lane) -> the accumulators with the products added.
DotAdd = Callable[[Value, "Pixel", "Weights"], Value]


class Pixels:
    """Words of four uint8 in a register, of which an instruction takes one; what it needs of them is made once."""

    def __init__(self, builder: Any, llvm: Any) -> None:
        self.builder, self.llvm = builder, llvm
        self._signed: Any = None
        self._wide: dict[int, Any] = {}
        self._repeated: dict[tuple[int, int], Any] = {}

    def repeated(self, lane: int, lanes: int) -> Any:
        """One word in all lanes."""
        if (lane, lanes) not in self._repeated:
            self._repeated[lane, lanes] = self._in_all_lanes(self.llvm, lane, lanes)
        return self._repeated[lane, lanes]

    def signed_repeated(self, lane: int, lanes: int) -> Any:
        """One word without 128 in each byte, which are signed then, in all lanes."""
        return self._in_all_lanes(self.signed(), lane, lanes)

    def signed(self) -> Any:
        """The words without 128 in each byte."""
        if self._signed is None:
            self._signed = self.builder.xor(self.llvm, ir.Constant(self.llvm.type, [_SIGNS] * self.llvm.type.count))
        return self._signed

    def wide_repeated(self, lane: int, byte: int, lanes: int) -> Any:
        """One byte of a word as a number of 16 bits in all lanes."""
        return self._in_all_lanes(self.wide(lane // 2), lane % 2 * FOUR + byte, lanes)

    def _in_all_lanes(self, vector: Any, lane: int, lanes: int) -> Any:
        order = ir.Constant(ir.VectorType(_I32, lanes), [lane] * lanes)
        return self.builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), order)

    def wide(self, pair: int) -> Any:
        """The bytes of the words `2 * pair` and `2 * pair + 1` as eight numbers of 16 bits."""
        if pair not in self._wide:
            order = ir.Constant(ir.VectorType(_I32, 2), [2 * pair, 2 * pair + 1])
            words = self.builder.shuffle_vector(self.llvm, ir.Constant(self.llvm.type, ir.Undefined), order)
            codes = self.builder.bitcast(words, ir.VectorType(_I8, 2 * FOUR))
            self._wide[pair] = self.builder.zext(codes, ir.VectorType(_I16, 2 * FOUR))
        return self._wide[pair]


class Segments(Pixels):
    """The same in a register of SVE, four words in each 128 bits, of which an instruction takes one by its number."""


@dataclass(frozen=True)
class Pixel:
    """One of those words, by its lane."""

    pixels: Pixels
    lane: int


class Weights:
    """A vector of four int8 in each lane; what a processor needs of it besides is made once."""

    def __init__(self, builder: Any, llvm: Any, lanes: int) -> None:
        self.builder, self.llvm, self.lanes = builder, llvm, lanes
        self._pairs: tuple[Any, Any] | None = None
        self._quarters: list[Any] = []

    def pairs(self) -> tuple[Any, Any]:
        """The bytes 0 and 2, and the bytes 1 and 3, of each lane as 16-bit numbers."""
        if self._pairs is None:
            builder, words = self.builder, ir.VectorType(_I16, 2 * self.lanes)
            eight = ir.Constant(words, [8] * 2 * self.lanes)
            odd = builder.bitcast(self.llvm, words)
            self._pairs = builder.ashr(builder.shl(odd, eight), eight), builder.ashr(odd, eight)
        return self._pairs

    def quarters(self) -> list[Any]:
        """Of each byte number the bytes of all lanes, as 16-bit numbers: two of them are the halves of a register."""
        if not self._quarters:
            count, undefined = self.lanes, ir.Constant(self.bytes().type, ir.Undefined)
            order = [FOUR * lane + byte for byte in range(FOUR) for lane in range(count)]
            for start in range(0, FOUR * count, 2 * count):
                picked = ir.Constant(ir.VectorType(_I32, 2 * count), order[start : start + 2 * count])
                codes = self.builder.shuffle_vector(self.bytes(), undefined, picked)
                both = self.builder.sext(codes, ir.VectorType(_I16, 2 * count))
                for half in (range(count), range(count, 2 * count)):
                    part = ir.Constant(ir.VectorType(_I32, count), list(half))
                    self._quarters.append(self.builder.shuffle_vector(both, ir.Constant(both.type, ir.Undefined), part))
        return self._quarters

    def bytes(self) -> Any:
        """The same as a vector of bytes."""
        return self.builder.bitcast(self.llvm, ir.VectorType(_I8, FOUR * self.lanes))


def _by_one_instruction(name: str) -> DotAdd:
    """One instruction multiplies, adds the four products, and adds their sum to the lane; it does not saturate."""

    def add(accumulators: Value, pixel: Pixel, weights: Weights) -> Value:
        kind = ir.FunctionType(accumulators.llvm_type, [accumulators.llvm_type] * 3)
        function = cgutils.get_or_insert_function(accumulators.builder.module, kind, name)
        operands = [accumulators.llvm, pixel.pixels.repeated(pixel.lane, accumulators.lanes), weights.llvm]
        return accumulators.like(accumulators.builder.call(function, operands))

    return add


def _arm_dot(builder: Any, name: str, accumulators: Any, left: Any, right: Any) -> Any:
    """Arm's instruction for sums of four int8 products in each lane: `sdot` or, of uint8 by int8, `usdot`."""
    if fills_register(accumulators.type):
        return dot(builder, name, accumulators, left, right)
    kind = ir.FunctionType(accumulators.type, [accumulators.type, left.type, right.type])
    suffix = f"v{accumulators.type.count}i32.v{left.type.count}i8"
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.aarch64.neon.{name}.{suffix}")
    return builder.call(function, [accumulators, left, right])


def _by_usdot(accumulators: Value, pixel: Pixel, weights: Weights) -> Value:
    builder, pixels, kind = accumulators.builder, pixel.pixels, weights.bytes().type
    if isinstance(pixels, Segments):
        four = builder.bitcast(pixels.llvm, kind)
        return accumulators.like(dot_by_lane(builder, "sudot", accumulators.llvm, weights.bytes(), four, pixel.lane))
    left = builder.bitcast(pixels.repeated(pixel.lane, accumulators.lanes), kind)
    return accumulators.like(_arm_dot(builder, "usdot", accumulators.llvm, left, weights.bytes()))


def _by_sdot(accumulators: Value, pixel: Pixel, weights: Weights) -> Value:
    """Pixels without 128 are signed; `offset_of_weights` is what that takes off."""
    builder, pixels, kind = accumulators.builder, pixel.pixels, weights.bytes().type
    if isinstance(pixels, Segments):
        four = builder.bitcast(pixels.signed(), kind)
        return accumulators.like(dot_by_lane(builder, "sdot", accumulators.llvm, weights.bytes(), four, pixel.lane))
    left = builder.bitcast(pixels.signed_repeated(pixel.lane, accumulators.lanes), kind)
    return accumulators.like(_arm_dot(builder, "sdot", accumulators.llvm, weights.bytes(), left))


def missing_products(builder: Any, steps: Sequence[Weights], lanes: int, offset: int) -> Any:
    """What a row of accumulators lacks after products with the weights of some steps, for each of its lanes: nothing
    (None), 128 times the sum of all bytes where that was taken off, or less that where `offset` wants it taken off.
    """
    dot_add = best_dot_add(lanes)
    takes_off = SIGNED if dot_add is _by_sdot else 0
    if takes_off == offset:
        return None
    zeros = total = ir.Constant(ir.VectorType(_I32, lanes), None)
    if takes_off:
        least = ir.Constant(ir.VectorType(_I8, FOUR * lanes), [-SIGNED] * FOUR * lanes)
        for weights in steps:
            total = _arm_dot(builder, "sdot", total, weights.bytes(), least)
        return builder.sub(zeros, total)
    added = Value(builder, total, types.int32, lanes)
    signs = Pixel(Pixels(builder, ir.Constant(total.type, [_SIGNS] * lanes)), 0)
    for weights in steps:
        added = dot_add(added, signs, weights)
    return builder.sub(zeros, added.llvm)


def _by_quarters(accumulators: Value, pixel: Pixel, weights: Weights) -> Value:
    """Four products of 16-bit numbers, each added by one instruction (SMLAL) of 64-bit Arm."""
    builder, lanes = accumulators.builder, accumulators.lanes
    for byte, weight in enumerate(weights.quarters()):
        factor = pixel.pixels.wide_repeated(pixel.lane, byte, lanes)
        kind = ir.FunctionType(accumulators.llvm_type, [weight.type, factor.type])
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.aarch64.neon.smull.v{lanes}i32")
        accumulators = accumulators.like(builder.add(accumulators.llvm, builder.call(function, [weight, factor])))
    return accumulators


def _by_pairs(accumulators: Value, pixel: Pixel, weights: Weights) -> Value:
    """Pairs of 16-bit products, which many processors add in one instruction: they cannot overflow."""
    builder, lanes = accumulators.builder, accumulators.lanes
    pixels = pixel.pixels.repeated(pixel.lane, lanes)
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
    is_register = lanes == _NEON_LANES or fills_register(ir.VectorType(_I32, lanes))
    if is_register and has_feature("i8mm"):
        return _by_usdot
    if is_register and has_feature("dotprod"):
        return _by_sdot
    if lanes == _NEON_LANES and not is_x86():
        return _by_quarters
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


def first_lane(builder: Any, word: Any, lanes: int) -> Any:
    """A vector with a word in its first lane."""
    return builder.insert_element(ir.Constant(ir.VectorType(_I32, lanes), ir.Undefined), word, _I32(0))


def int8_words(builder: Any, memory: Memory, at: Any, count: int, lanes: int) -> Any:
    """A vector with the next word of four bytes in its first lane, or with the next `count` words."""
    if count == 1:
        return first_lane(builder, four_int8(builder, memory, at, FOUR), lanes)
    return builder.load(builder.bitcast(memory.at(at), ir.VectorType(_I32, count).as_pointer()), align=1)


def weights_at(builder: Any, memory: Memory, at: Any, lane: int, words: Any) -> Weights:
    place = builder.bitcast(memory.at(builder.add(at, _I64(FOUR * lane))), words.as_pointer())
    loaded = builder.load(place, align=1)
    if memory.pointer.constant:
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return Weights(builder, loaded, words.count)
