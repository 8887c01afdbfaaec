"""Register tiles: the innermost blocks of products and convolutions, each step one call in the generated text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_types import Tile
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value, maximum, minimum
from mlirt.builder.numba_cpu_intrinsics.memory import Memory
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, intrinsic, ir, types

_I64 = ir.IntType(64)


def _shape(tile: Tile) -> tuple[int, int, int]:
    return tile.rows, tile.columns, tile.lanes


def _unpack(builder: Any, tile: Tile, llvm: Any) -> list[Value]:
    return [
        Value(builder, builder.extract_value(llvm, number), types.float32, tile.lanes)
        for number in range(tile.rows * tile.columns)
    ]


def _pack(builder: Any, vectors: Sequence[Value]) -> Any:
    array = ir.Constant(ir.ArrayType(vectors[0].llvm_type, len(vectors)), ir.Undefined)
    for number, vector in enumerate(vectors):
        array = builder.insert_value(array, vector.llvm, number)
    return array


def _offset(builder: Any, base: Any, stride: Any, count: int) -> Any:
    return base if count == 0 else builder.add(base, builder.mul(stride, _I64(count)))


@intrinsic(prefer_literal=True)
def tile_fill(context: Any, value: Any, rows: Any, columns: Any, lanes: Any) -> Any:
    """A tile whose elements are all the same."""
    tile = Tile(rows.literal_value, columns.literal_value, lanes.literal_value)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        vector = Value(builder, operands[0], types.float32).splat(tile.lanes)
        return _pack(builder, [vector] * (tile.rows * tile.columns))

    return tile(types.float32, rows, columns, lanes), codegen


def _load(valid_type: Any) -> Any:
    """`tile_load`, of whole rows or of the first `valid` elements of each."""

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        memory, at, row_step = Memory(builder, sig.args[0], operands[0]), operands[1], operands[2]
        rows, columns, lanes = _shape(sig.return_type)
        vectors: list[Value] = []
        for i, j in ((i, j) for i in range(rows) for j in range(columns)):
            place = builder.add(_offset(builder, at, row_step, i), _I64(j * lanes))
            if valid_type is None:
                vectors.append(memory.read(place, lanes).to(types.float32))
            else:
                count = builder.sub(operands[3], _I64(j * lanes))
                vectors.append(memory.read_first(place, lanes, count).to(types.float32))
        return _pack(builder, vectors)

    return codegen


@intrinsic(prefer_literal=True)
def tile_load(context: Any, x: Any, at: Any, row_step: Any, rows: Any, columns: Any, lanes: Any) -> Any:
    """`tile[i, j] = x[at + i * row_step + j * lanes ..]`."""
    tile, number = Tile(rows.literal_value, columns.literal_value, lanes.literal_value), types.int64
    return tile(x, number, number, rows, columns, lanes), _load(None)


@intrinsic(prefer_literal=True)
def tile_load_first(
    context: Any, x: Any, at: Any, row_step: Any, valid: Any, rows: Any, columns: Any, lanes: Any
) -> Any:
    """As `tile_load`, zeros in place of all but the first `valid` elements of a row."""
    tile, number = Tile(rows.literal_value, columns.literal_value, lanes.literal_value), types.int64
    return tile(x, number, number, number, rows, columns, lanes), _load(number)


def _transposed(vectors: Sequence[Value]) -> list[Value]:
    """Vectors that hold the rows of a square as its columns: swap off-diagonal blocks of 1, 2, 4, .. elements."""
    current, lanes, index = list(vectors), len(vectors), ir.IntType(32)
    builder = current[0].builder
    block = 1
    while block < lanes:
        following = list(current)
        for i in (i for i in range(lanes) if not i & block):
            upper, lower = current[i].llvm, current[i + block].llvm
            kept = [lane if not lane & block else lanes + lane - block for lane in range(lanes)]
            moved = [lane + block if not lane & block else lanes + lane for lane in range(lanes)]
            for place, lanes_of_pair in ((i, kept), (i + block, moved)):
                mask = ir.Constant(ir.VectorType(index, lanes), lanes_of_pair)
                following[place] = current[i].like(builder.shuffle_vector(upper, lower, mask))
        current, block = following, 2 * block
    return current


@intrinsic(prefer_literal=True)
def tile_load_transposed(context: Any, x: Any, at: Any, row_step: Any, lanes: Any) -> Any:
    """`tile[i, 0][l] = x[at + l * row_step + i]`, a square of `lanes` x `lanes` elements."""
    size, number = lanes.literal_value, types.int64

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        memory, at, row_step = Memory(builder, x, operands[0]), operands[1], operands[2]
        places = [_offset(builder, at, row_step, row) for row in range(size)]
        return _pack(builder, _transposed([memory.read(place, size).to(types.float32) for place in places]))

    return Tile(size, 1, size)(x, number, number, lanes), codegen


@intrinsic(prefer_literal=True)
def tile_load_transposed_first(
    context: Any, x: Any, at: Any, row_step: Any, rows: Any, valid: Any, lanes: Any
) -> Any:
    """As `tile_load_transposed`, of `rows` rows with `valid` elements each; rows beyond repeat the last one."""
    size, number = lanes.literal_value, types.int64

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        memory, at, row_step, valid = Memory(builder, x, operands[0]), operands[1], operands[2], operands[4]
        last = builder.sub(operands[3], _I64(1))
        vectors: list[Value] = []
        for row in range(size):
            clamped = builder.select(builder.icmp_signed("<", _I64(row), last), _I64(row), last)
            place = builder.add(at, builder.mul(clamped, row_step))
            vectors.append(memory.read_first(place, size, valid).to(types.float32))
        return _pack(builder, _transposed(vectors))

    return Tile(size, 1, size)(x, number, number, number, number, lanes), codegen


@intrinsic(prefer_literal=True)
def tile_multiply_add(
    context: Any, tile: Any, x: Any, at: Any, row_step: Any, step: Any, w: Any, w_at: Any, depth: Any
) -> Any:
    """`tile[i, j] += x[at + i * row_step + u * step] * w[w_at + (u * columns + j) * lanes ..]` for `u < depth`."""
    count = depth.literal_value
    number = types.int64

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        llvm_tile, x_address, at, row_step, step, w_address, w_at, _ = operands
        x_memory, w_memory = Memory(builder, x, x_address), Memory(builder, w, w_address)
        sums = _unpack(builder, tile, llvm_tile)
        rows, columns, lanes = _shape(tile)
        for u in range(count):
            places = [builder.add(w_at, _I64((u * columns + j) * lanes)) for j in range(columns)]
            weights = [w_memory.read(place, lanes).to(types.float32) for place in places]
            deep = _offset(builder, at, step, u)
            for i in range(rows):
                factor = x_memory.read(_offset(builder, deep, row_step, i)).to(types.float32).splat(lanes)
                for j, weight in enumerate(weights):
                    sums[i * columns + j] = factor.multiply_add(weight, sums[i * columns + j])
        return _pack(builder, sums)

    return tile(tile, x, number, number, number, w, number, depth), codegen


@intrinsic
def tile_multiply_add_lanes(context: Any, tile: Any, x: Any, at: Any, row_step: Any, w: Any, w_at: Any) -> Any:
    """`tile[i, j] += x[at + i * row_step + j * lanes ..] * w[w_at + j * lanes ..]`, lane by lane (depthwise)."""
    number = types.int64

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        llvm_tile, x_address, at, row_step, w_address, w_at = operands
        x_memory, w_memory = Memory(builder, x, x_address), Memory(builder, w, w_address)
        sums = _unpack(builder, tile, llvm_tile)
        rows, columns, lanes = _shape(tile)
        for j in range(columns):
            weight = w_memory.read(builder.add(w_at, _I64(j * lanes)), lanes).to(types.float32)
            for i in range(rows):
                place = builder.add(_offset(builder, at, row_step, i), _I64(j * lanes))
                factor = x_memory.read(place, lanes).to(types.float32)
                sums[i * columns + j] = factor.multiply_add(weight, sums[i * columns + j])
        return _pack(builder, sums)

    return tile(tile, x, number, number, w, number), codegen


def _combination(combine: Callable[[Value, Value], Value]) -> Any:
    """`tile[i, j] = combine(tile[i, j], x[at + i * row_step + j * lanes ..])`."""

    def typed(context: Any, tile: Any, x: Any, at: Any, row_step: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
            llvm_tile, x_address, at, row_step = operands
            memory = Memory(builder, x, x_address)
            results: list[Value] = []
            for number, old in enumerate(_unpack(builder, tile, llvm_tile)):
                i, j = divmod(number, tile.columns)
                place = builder.add(_offset(builder, at, row_step, i), _I64(j * tile.lanes))
                results.append(combine(old, memory.read(place, tile.lanes).to(types.float32)))
            return _pack(builder, results)

        return tile(tile, x, types.int64, types.int64), codegen

    return intrinsic(typed)


tile_add = _combination(lambda a, b: a + b)
tile_multiply = _combination(lambda a, b: a * b)
tile_maximum = _combination(maximum)
tile_minimum = _combination(minimum)


@intrinsic
def tile_for_each(context: Any, tile: Any, function: Any, captured: Any) -> Any:
    """Call `function(vector, i, j, *captured)` for each vector of the tile, inlined with `i` and `j` as numbers."""
    captures = tuple(captured)
    args = (tile.vector, types.int64, types.int64, *captures)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        values = cgutils.unpack_tuple(builder, operands[2])
        body = function.dispatcher.py_func
        inner = types.void(*args)
        for number, vector in enumerate(_unpack(builder, tile, operands[0])):
            i, j = divmod(number, tile.columns)
            context.compile_internal(builder, body, inner, (vector.llvm, _I64(i), _I64(j), *values))
        return context.get_dummy_value()

    return types.void(tile, function, captured), codegen
