"""Register tiles that take up what lies in memory: one instruction, of which a combination gives two words.

`tile_<name>(tile, x, at, row_step, .., numbers)` reads all rows of `x`; `tile_<name>_first(.., rows)` only the first
`rows`, and for the others what the last one of them has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from mlirt.builder.numba_cpu_intrinsics.conversions import from_half_bits, half_bits
from mlirt.builder.numba_cpu_intrinsics.int8_tiles import (
    FOUR,
    SIGNED,
    Pixel,
    Pixels,
    Segments,
    Weights,
    best_dot_add,
    first_lane,
    four_int8,
    int8_words,
    missing_products,
    weights_at,
)
from mlirt.builder.numba_cpu_intrinsics.lane_types import Tile
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value, maximum, minimum
from mlirt.builder.numba_cpu_intrinsics.memory import Memory
from mlirt.builder.numba_cpu_intrinsics.processor import has_feature, is_x86
from mlirt.builder.numba_cpu_intrinsics.scalable import (
    fills_register,
    multiply_add_by_lane,
    repeated_bits,
    spread_bits,
)
from mlirt.builder.numba_cpu_intrinsics.tiles import offset_of, pack_vectors, shape_of, unpack_vectors
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, intrinsic, ir, types

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_NEON_LANES = 4
_TILE = ("tile", "x", "at", "row_step")


class _Rows:
    """Where the rows of a tile lie: `row_step` apart; from number `count` on all where the last one before lies."""

    def __init__(self, builder: Any, row_step: Any, count: Any = None) -> None:
        self._builder, self._row_step = builder, row_step
        self._last = None if count is None else builder.sub(count, _I64(1))
        self.is_limited = count is not None

    def at(self, start: Any, row: int) -> Any:
        """The place of a row, given that of row 0."""
        if self._last is None or row == 0:
            return offset_of(self._builder, start, self._row_step, row)
        inside = self._builder.icmp_signed("<", _I64(row), self._last)
        number = self._builder.select(inside, _I64(row), self._last)
        return self._builder.add(start, self._builder.mul(number, self._row_step))


@dataclass(frozen=True)
class _Update:
    """What an update is given: the operands of its word by name, memory as such and numbers as LLVM has them."""

    builder: Any
    tile: Tile
    rows: _Rows
    operands: Mapping[str, Any]

    @property
    def x(self) -> Memory:
        return self.operands["x"]

    @property
    def w(self) -> Memory:
        return self.operands["w"]

    def after(self, name: str, count: int) -> Any:
        """The place `count` elements after that of an operand."""
        return self.builder.add(self.operands[name], _I64(count))


class _Factors:
    """The numbers of a left factor by which the weights of a step are multiplied.

    Instructions of 64-bit Arm multiply by one lane of a register, those of SVE by one of four in each 128 bits. Numbers
    that lie side by side there, those of some steps of a row or of some rows, are read at once.
    """

    def __init__(self, update: _Update, depth: int, step: Any, size: int, read: Callable[[Any, int], Any]) -> None:
        """`read` has a vector with what lies at a place, or of some numbers that begin there; each takes `size`
        elements, and `step` is between those of a row, of which the first `depth` are whole.
        """
        self._update, self._depth, self._step, self._read = update, depth, step, read
        self._vectors: dict[tuple[int, int], Any] = {}
        in_segments = has_segments(update.tile)
        by_lanes = not is_x86() and (update.tile.lanes == _NEON_LANES or in_segments)
        self._counts = (_NEON_LANES, _NEON_LANES // 2)
        self._steps_beside = by_lanes and _is_number(step, size)
        self._rows_beside = by_lanes and not update.rows.is_limited and _is_number(update.operands["row_step"], size)

    def at(self, u: int, i: int) -> tuple[Any, int]:
        """The number of step `u` and row `i`: what `read` gave, and a lane of it."""
        for count in self._counts:
            first_step, first_row = (number // count * count for number in (u, i))
            if self._steps_beside and first_step + count <= self._depth:
                return self._at(first_step, i, count), u - first_step
            if self._rows_beside and u < self._depth and first_row + count <= self._update.tile.rows:
                return self._at(u, first_row, count), i - first_row
        return self._at(u, i, 1), 0

    def _at(self, u: int, i: int, count: int) -> Any:
        if (u, i) not in self._vectors:
            start = offset_of(self._update.builder, self._update.operands["at"], self._step, u)
            self._vectors[u, i] = self._read(self._update.rows.at(start, i), count)
        return self._vectors[u, i]


class _RowGroups:
    """The rows of a left factor by one address where the step between them is known, else by one for every four, from
    which the instructions of x86 reach the others by multiples of the step.

    Else LLVM keeps an address for each row, of which there are more than registers: it loads addresses from memory, or,
    to need them no longer, reads numbers ahead, for which there are no vector registers, and keeps these in memory.
    """

    _COUNT = 4

    def __init__(self, update: _Update) -> None:
        self._update, self._groups = update, dict[int, Memory]()
        is_known = isinstance(update.operands["row_step"], ir.Constant)
        self._count = update.tile.rows if is_known else self._COUNT

    @staticmethod
    def suit(update: _Update, step: Any) -> bool:
        """Whether code is for x86, with more rows than fit one address, and a known step between those of the sum."""
        is_known = isinstance(step, ir.Constant)
        return is_x86() and is_known and not update.rows.is_limited and update.tile.rows > _RowGroups._COUNT

    def read(self, u: int, i: int, step: Any) -> Value:
        """The number of step `u` and row `i`."""
        memory, beside = self.place(u, i, step)
        return memory.read(beside)

    def place(self, u: int, i: int, step: Any) -> tuple[Memory, Any]:
        """Where that is: memory that begins at an address of its own, and a place in it."""
        builder, row_step = self._update.builder, self._update.operands["row_step"]
        first = i // self._count * self._count
        if first not in self._groups:
            place = offset_of(builder, self._update.operands["at"], row_step, first)
            address = builder.gep(self._update.x.address, [place])
            # Behind an instruction that LLVM does not know it is an address of its own.
            kind = ir.FunctionType(address.type, [address.type])
            hidden = builder.asm(kind, "", "=r,0", [address], False)
            self._groups[first] = Memory(builder, self._update.x.pointer, hidden)
        return self._groups[first], offset_of(builder, builder.mul(row_step, _I64(i - first)), step, u)


def has_segments(tile: Tile) -> bool:
    """Whether a tile's vectors are registers of SVE, each of several parts with four lanes of their own."""
    return fills_register(ir.VectorType(_I32, tile.lanes))


def _is_number(value: Any, number: int) -> bool:
    return isinstance(value, ir.Constant) and value.constant == number


# (update, vectors of the tile, numbers) -> vectors
Emission: TypeAlias = "Callable[..., list[Value]]"


def _multiply_add(update: _Update, accumulators: list[Value], depth: int) -> list[Value]:
    """`tile[i, j] += x[at + i * row_step + u * step] * w[w_at + (u * columns + j) * lanes ..]` for `u < depth`."""
    count, columns, lanes = shape_of(update.tile)
    wide = has_segments(update.tile)

    def read(place: Any, count: int) -> Value:
        if count > 1 and wide:
            return _segments(update, place, count)
        return update.x.read(place, count if count > 1 else 0).to(types.float32)

    step = update.operands["step"]
    factors, groups = _Factors(update, depth, step, 1, read), _RowGroups(update)
    in_groups = groups.suit(update, step)
    for u in range(depth):
        places = [update.after("w_at", (u * columns + j) * lanes) for j in range(columns)]
        weights = [update.w.read(place, lanes).to(types.float32) for place in places]
        for i in range(count):
            vector, lane = (groups.read(u, i, step).to(types.float32), 0) if in_groups else factors.at(u, i)
            if vector.lanes and wide:
                for j, weight in enumerate(weights):
                    total = accumulators[i * columns + j]
                    llvm = multiply_add_by_lane(update.builder, total.llvm, weight.llvm, vector.llvm, lane)
                    accumulators[i * columns + j] = total.like(llvm)
                continue
            factor = vector.repeated(lane, lanes) if vector.lanes else vector.splat(lanes)
            for j, weight in enumerate(weights):
                accumulators[i * columns + j] = factor.multiply_add(weight, accumulators[i * columns + j])
    return accumulators


def _multiply_add_halves(update: _Update, accumulators: list[Value], depth: int) -> list[Value]:
    """The same with the numbers of `x` rounded to halves, in which `w` is: two vectors of a tile are a register of
    weights, whose lower half one instruction (FMLAL) multiplies by a lane and adds to float32, and another one (FMLAL2)
    the upper half.
    """
    builder, (count, columns, lanes) = update.builder, shape_of(update.tile)
    half = ir.HalfType()

    def read(place: Any, count: int) -> Value:
        """The rounded numbers, as they are in memory; a single one in a vector too."""
        found = half_bits(update.x.read(place, count if count > 1 else 0))
        return found if found.lanes else found.splat(_NEON_LANES)

    factors = _Factors(update, depth, update.operands["step"], 1, read)
    by_instructions = lanes == _NEON_LANES and has_feature("fp16fml")
    for u in range(depth):
        places = [update.after("w_at", (u * columns + j) * lanes) for j in range(columns)]
        if not by_instructions:
            weights = [update.w.read(place, lanes).to(types.float32) for place in places]
            for i in range(count):
                vector, lane = factors.at(u, i)
                factor = from_half_bits(Value(builder, vector.repeated(lane, lanes).llvm, types.uint16, lanes))
                for j, weight in enumerate(weights):
                    accumulators[i * columns + j] = factor.multiply_add(weight, accumulators[i * columns + j])
            continue
        pairs = [update.w.read_halves(places[j], lanes * min(2, columns - j)) for j in range(0, columns, 2)]
        for i in range(count):
            vector, lane = factors.at(u, i)
            four = builder.bitcast(vector.llvm, ir.VectorType(half, vector.lanes))
            order = ir.Constant(ir.VectorType(_I32, 2 * lanes), [lane] * 2 * lanes)
            factor = builder.shuffle_vector(four, ir.Constant(four.type, ir.Undefined), order)
            for j in range(columns):
                name = ("fmlal", "fmlal2")[j % 2]
                total = accumulators[i * columns + j]
                accumulators[i * columns + j] = total.like(
                    _half_products(builder, name, total.llvm, pairs[j // 2], factor)
                )
    return accumulators


def _half_products(builder: Any, name: str, total: Any, weights: Any, factor: Any) -> Any:
    """Add the products of the lower (`fmlal`) or upper parts (`fmlal2`) of two registers to float32, by instruction."""
    kind = ir.FunctionType(total.type, [total.type, weights.type, factor.type])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.aarch64.neon.{name}.v4f32.v8f16")
    return builder.call(function, [total, weights, factor])


def _segments(update: _Update, place: Any, count: int) -> Value:
    """Numbers that lie side by side, over and over in the lanes of a register."""
    builder, lanes = update.builder, update.tile.lanes
    kind = ir.VectorType(ir.FloatType(), lanes)
    if update.x.pointer.element == "float32":
        return Value(builder, repeated_bits(builder, update.x.at(place), 32 * count, kind), types.float32, lanes)
    some = update.x.read(place, count).to(types.float32)
    return Value(builder, spread_bits(builder, some.llvm, kind), types.float32, lanes)


def _multiply_add_lanes(update: _Update, accumulators: list[Value]) -> list[Value]:
    """`tile[i, j] += x[at + i * row_step + j * lanes ..] * w[w_at + j * lanes ..]`, lane by lane (depthwise)."""
    count, columns, lanes = shape_of(update.tile)
    for j in range(columns):
        weight = update.w.read(update.after("w_at", j * lanes), lanes).to(types.float32)
        for i in range(count):
            place = update.builder.add(update.rows.at(update.operands["at"], i), _I64(j * lanes))
            factor = update.x.read(place, lanes).to(types.float32)
            accumulators[i * columns + j] = factor.multiply_add(weight, accumulators[i * columns + j])
    return accumulators


def _dot_add(update: _Update, accumulators: list[Value], depth: int, last: int, offset: int = 0) -> list[Value]:
    """`tile[i, j][l] += (x[at + i * row_step + 4 * u + b] - offset)
    * w[w_at + 4 * ((u * columns + j) * lanes + l) + b]` for `u < depth`.
    """
    builder, (rows, columns, lanes) = update.builder, shape_of(update.tile)
    words, dot_add, whole = ir.VectorType(_I32, lanes), best_dot_add(lanes), depth - (last < FOUR)

    def read(place: Any, count: int) -> Pixels:
        if count > 1 and has_segments(update.tile):
            return Segments(builder, repeated_bits(builder, update.x.at(place), 32 * count, words))
        return Pixels(builder, int8_words(builder, update.x, place, count, lanes))

    factors, groups = _Factors(update, whole, _I64(FOUR), FOUR, read), _RowGroups(update)
    in_groups = groups.suit(update, _I64(FOUR))
    steps: list[list[Weights]] = []
    for u in range(depth):
        w_at = update.operands["w_at"]
        weights = [weights_at(builder, update.w, w_at, (u * columns + j) * lanes, words) for j in range(columns)]
        steps.append(weights)
        for i in range(rows):
            if u < whole and in_groups:
                word = four_int8(builder, *groups.place(u, i, _I64(FOUR)), FOUR)
                pixel = Pixel(Pixels(builder, first_lane(builder, word, lanes)), 0)
            elif u < whole:
                pixel = Pixel(*factors.at(u, i))
            else:
                four = four_int8(builder, update.x, update.rows.at(update.after("at", FOUR * u), i), last)
                pixel = Pixel(Pixels(builder, first_lane(builder, four, lanes)), 0)
            for j, weight in enumerate(weights):
                accumulators[i * columns + j] = dot_add(accumulators[i * columns + j], pixel, weight)
    for j, column in enumerate(zip(*steps, strict=True)):
        lacking = missing_products(builder, column, lanes, offset)
        for number in range(j, rows * columns, columns) if lacking is not None else ():
            accumulators[number] = accumulators[number].like(builder.add(accumulators[number].llvm, lacking))
    return accumulators


def _combined(combine: Callable[[Value, Value], Value]) -> Emission:
    """`tile[i, j] = combine(tile[i, j], x[at + i * row_step + j * lanes ..])`."""

    def emit(update: _Update, vectors: list[Value]) -> list[Value]:
        tile = update.tile
        results: list[Value] = []
        for number, old in enumerate(vectors):
            i, j = divmod(number, tile.columns)
            place = update.builder.add(update.rows.at(update.operands["at"], i), _I64(j * tile.lanes))
            results.append(combine(old, update.x.read(place, tile.lanes).to(tile.element)))
        return results

    return emit


def _word(emit: Emission, operands: Sequence[str], numbers: Sequence[str], limit: Sequence[str]) -> Any:
    """The intrinsic that takes a tile, operands, numbers that are known, and perhaps how many rows count."""
    names = [*_TILE, *operands, *numbers, *limit]

    def typed(context: Any, kinds: Sequence[Any]) -> Any:
        of = dict(zip(names, kinds, strict=True))
        tile, known = of["tile"], [of[name].literal_value for name in numbers]

        def codegen(context: Any, builder: Any, sig: Any, values: Sequence[Any]) -> Any:
            given = dict(zip(names, values, strict=True))
            memories = {name: Memory(builder, of[name], given[name]) for name in ("x", "w") if name in given}
            rows = _Rows(builder, given["row_step"], *(given[name] for name in limit))
            update = _Update(builder, tile, rows, given | memories)
            return pack_vectors(builder, emit(update, unpack_vectors(builder, tile, given["tile"]), *known))

        kept = {"tile", "x", "w", *numbers}
        return tile(*(of[name] if name in kept else types.int64 for name in names)), codegen

    namespace: dict[str, Any] = {"typed": typed}
    # numba reads the number of parameters off the function: it has to be spelled out.
    exec(f"def made(context, {', '.join(names)}):\n    return typed(context, [{', '.join(names)}])\n", namespace)
    return intrinsic(prefer_literal=True)(namespace["made"]) if numbers else intrinsic(namespace["made"])


# Of each combination its emission, its operands after the rows of `x`, and numbers that are known.
_COMBINATIONS: dict[str, tuple[Emission, Sequence[str], Sequence[str]]] = {
    "multiply_add": (_multiply_add, ("step", "w", "w_at"), ("depth",)),
    "multiply_add_halves": (_multiply_add_halves, ("step", "w", "w_at"), ("depth",)),
    "multiply_add_lanes": (_multiply_add_lanes, ("w", "w_at"), ()),
    "dot_add": (_dot_add, ("w", "w_at"), ("depth", "last")),
    "dot_add_signed": (partial(_dot_add, offset=SIGNED), ("w", "w_at"), ("depth", "last")),
    "add": (_combined(lambda a, b: a + b), (), ()),
    "multiply": (_combined(lambda a, b: a * b), (), ()),
    "maximum": (_combined(maximum), (), ()),
    "minimum": (_combined(minimum), (), ()),
}
TILE_UPDATES: dict[str, Any] = {
    f"tile_{name}{'_first' * len(limit)}": _word(*how, limit)
    for name, how in _COMBINATIONS.items()
    for limit in ((), ("rows",))
}
