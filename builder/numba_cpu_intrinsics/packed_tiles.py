"""Register tiles of weights of few bits: codes become numbers in registers, to be kept or multiplied at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_types import Tile
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value
from mlirt.builder.numba_cpu_intrinsics.memory import Memory
from mlirt.builder.numba_cpu_intrinsics.processor import code_processor
from mlirt.builder.numba_cpu_intrinsics.tiles import offset_of, pack_vectors, shape_of, unpack_vectors
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, intrinsic, ir, types

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_BYTE, _WORD_BYTES = 8, 4
# So many sums that do not wait for each other keep the units for multiplication busy.
_INDEPENDENT = 4


class _Weights:
    """Vectors of weights: word `j * lanes + l` has the codes of a lane, a byte only one.

    A code is looked up in a table of 16 numbers where the processor has such an instruction, else masked and converted.
    Both give it without `middle`, so that most zero points are 0 from here on.
    """

    def __init__(self, context: Any, builder: Any, bits: int, columns: int, lanes: int, given: Sequence[Any]) -> None:
        self.builder, self.bits, self.columns, self.lanes = builder, bits, columns, lanes
        (self._w, self._w_at), scale, zero = given
        features = code_processor().features
        self._has_table = bits == 4 and lanes == 16 and "+avx512f" in features
        self._middle = float(1 << (bits - 1)) if self._has_table else 0.0
        self._scales = self._vectors(*scale)
        zeros = self._vectors(*zero)
        self._shifts = [-((z - self._middle) * s) for z, s in zip(zeros, self._scales, strict=True)]
        self._words = [] if bits == _BYTE else [self._word(j) for j in range(columns)]

    def _vectors(self, memory: Memory, at: Any) -> list[Value]:
        places = [self.builder.add(at, _I64(j * self.lanes)) for j in range(self.columns)]
        return [memory.read(place, self.lanes).to(types.float32) for place in places]

    def _word(self, j: int) -> Value:
        kind = ir.VectorType(_I32, self.lanes)
        place = self.builder.add(self._w_at, _I64(_WORD_BYTES * j * self.lanes))
        loaded = self.builder.load(self.builder.bitcast(self._w.at(place), kind.as_pointer()), align=1)
        if self._w.pointer.constant:
            loaded.set_metadata("invariant.load", self.builder.module.add_metadata([]))
        return Value(self.builder, loaded, types.uint32, self.lanes)

    def at(self, u: int, j: int) -> Value:
        """The weights of step `u` in vector `j`."""
        return self._code(u, j).multiply_add(self._scales[j], self._shifts[j])

    def _code(self, u: int, j: int) -> Value:
        if self.bits == _BYTE:
            place = self.builder.add(self._w_at, _I64((u * self.columns + j) * self.lanes))
            return self._w.read(place, self.lanes).to(types.int32).to(types.float32)
        shifted = self._words[j] >> (u * self.bits) if u else self._words[j]
        if self._has_table:
            return self._looked_up(shifted)
        masked = shifted & ((1 << self.bits) - 1)
        return masked.like(masked.llvm, types.int32).to(types.float32)

    def _looked_up(self, places: Value) -> Value:
        """Of each place its lowest four bits count."""
        numbers = ir.VectorType(ir.FloatType(), self.lanes)
        kind = ir.FunctionType(numbers, [numbers, places.llvm_type])
        function = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.x86.avx512.permvar.sf.512")
        table = ir.Constant(numbers, [number - self._middle for number in range(self.lanes)])
        return places.like(self.builder.call(function, [table, places.llvm]), types.float32)


def _pairs(builder: Any, sig: Any, operands: Sequence[Any], first: int) -> list[tuple[Memory, Any]]:
    """Codes, scale and zero point as memory and a place in it, of the operands from number `first` on."""
    return [(Memory(builder, sig.args[k], operands[k]), operands[k + 1]) for k in range(first, first + 6, 2)]


@intrinsic(prefer_literal=True)
def tile_load_packed(
    context: Any,
    w: Any,
    w_at: Any,
    scale: Any,
    scale_at: Any,
    zero: Any,
    zero_at: Any,
    bits: Any,
    depth: Any,
    columns: Any,
    lanes: Any,
) -> Any:
    """`tile[u, j] = (code(u, j) - zero[zero_at + j * lanes ..]) * scale[scale_at + j * lanes ..]`."""
    tile, number = Tile(depth.literal_value, columns.literal_value, lanes.literal_value), types.int64

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        rows, columns, lanes = shape_of(tile)
        weights = _Weights(context, builder, bits.literal_value, columns, lanes, _pairs(builder, sig, operands, 0))
        return pack_vectors(builder, [weights.at(u, j) for u in range(rows) for j in range(columns)])

    return tile(w, number, scale, number, zero, number, bits, depth, columns, lanes), codegen


@intrinsic(prefer_literal=True)
def tile_multiply_add_packed(
    context: Any,
    tile: Any,
    x: Any,
    at: Any,
    row_step: Any,
    step: Any,
    w: Any,
    w_at: Any,
    scale: Any,
    scale_at: Any,
    zero: Any,
    zero_at: Any,
    bits: Any,
    depth: Any,
) -> Any:
    """`tile[i, j] += x[at + i * row_step + u * step] * weight(u, j)` for `u < depth`."""
    number = types.int64

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        rows, columns, lanes = shape_of(tile)
        weights = _Weights(context, builder, bits.literal_value, columns, lanes, _pairs(builder, sig, operands, 5))
        left = Memory(builder, x, operands[1])
        accumulators = unpack_vectors(builder, tile, operands[0])
        waits = len(accumulators) < _INDEPENDENT
        parts = [accumulators[0].number(0.0)] * len(accumulators) if waits else list(accumulators)
        for u in range(depth.literal_value):
            deep = offset_of(builder, operands[2], operands[4], u)
            factors = [
                left.read(offset_of(builder, deep, operands[3], i)).to(types.float32).splat(lanes) for i in range(rows)
            ]
            for j in range(columns):
                weight = weights.at(u, j)
                for i, factor in enumerate(factors):
                    parts[i * columns + j] = factor.multiply_add(weight, parts[i * columns + j])
        return pack_vectors(builder, [a + b for a, b in zip(accumulators, parts, strict=True)] if waits else parts)

    return (
        tile(tile, x, number, number, number, w, number, scale, number, zero, number, bits, depth),
        codegen,
    )
