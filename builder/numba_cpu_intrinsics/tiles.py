"""Register tiles: the innermost blocks of products and convolutions, each step one call in the generated text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_types import REGISTER_TYPES, Tile, Vector
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value, maximum, minimum
from mlirt.builder.numba_cpu_intrinsics.memory import Memory
from mlirt.builder.numba_cpu_intrinsics.processor import is_x86
from mlirt.builder.numba_cpu_intrinsics.scalable import bits_of, exchanged_halves, fills_register
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, intrinsic, ir, types

_I32, _I64 = ir.IntType(32), ir.IntType(64)
ROWS_AT_ONCE = 4
"""How many rows of a tile a word for several of them takes."""


def shape_of(tile: Tile) -> tuple[int, int, int]:
    return tile.rows, tile.columns, tile.lanes


def unpack_vectors(builder: Any, tile: Tile, llvm: Any) -> list[Value]:
    """The vectors of a tile, row by row."""
    return [
        Value(builder, builder.extract_value(llvm, number), tile.element, tile.lanes)
        for number in range(tile.rows * tile.columns)
    ]


def pack_vectors(builder: Any, vectors: Sequence[Value]) -> Any:
    """A tile made from its vectors."""
    array = ir.Constant(ir.ArrayType(vectors[0].llvm_type, len(vectors)), ir.Undefined)
    for number, vector in enumerate(vectors):
        array = builder.insert_value(array, vector.llvm, number)
    return array


def joined(builder: Any, vectors: Sequence[Any]) -> Any:
    """The lanes of vectors, a power of two of them, one vector behind the other."""
    if len(vectors) == 1:
        return vectors[0]
    half = len(vectors) // 2
    low, high = joined(builder, vectors[:half]), joined(builder, vectors[half:])
    order = list(range(2 * low.type.count))
    return builder.shuffle_vector(low, high, ir.Constant(ir.VectorType(_I32, len(order)), order))


def offset_of(builder: Any, base: Any, stride: Any, count: int) -> Any:
    return base if count == 0 else builder.add(base, builder.mul(stride, _I64(count)))


@intrinsic(prefer_literal=True)
def tile_fill(context: Any, value: Any, rows: Any, columns: Any, lanes: Any) -> Any:
    """A tile whose elements are all the same."""
    element = types.unliteral(value)
    tile = Tile(rows.literal_value, columns.literal_value, lanes.literal_value, element)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        vector = Value(builder, operands[0], element).splat(tile.lanes)
        return pack_vectors(builder, [vector] * (tile.rows * tile.columns))

    return tile(element, rows, columns, lanes), codegen


def _load(valid_type: Any) -> Any:
    """`tile_load`, of whole rows or of the first `valid` elements of each."""

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        memory, at, row_step = Memory(builder, sig.args[0], operands[0]), operands[1], operands[2]
        rows, columns, lanes = shape_of(sig.return_type)
        element = sig.return_type.element
        vectors: list[Value] = []
        for i, j in ((i, j) for i in range(rows) for j in range(columns)):
            place = builder.add(offset_of(builder, at, row_step, i), _I64(j * lanes))
            if valid_type is None:
                vectors.append(memory.read(place, lanes).to(element))
            else:
                count = builder.sub(operands[3], _I64(j * lanes))
                vectors.append(memory.read_first(place, lanes, count).to(element))
        return pack_vectors(builder, vectors)

    return codegen


@intrinsic(prefer_literal=True)
def tile_load(context: Any, x: Any, at: Any, row_step: Any, rows: Any, columns: Any, lanes: Any) -> Any:
    """`tile[i, j] = x[at + i * row_step + j * lanes ..]`."""
    # Sums of int8 stay whole numbers.
    element = types.int32 if x.element == "int32" else types.float32
    tile, number = Tile(rows.literal_value, columns.literal_value, lanes.literal_value, element), types.int64
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
    current, lanes = list(vectors), len(vectors)
    builder = current[0].builder
    block = 1
    while block < lanes:
        following = list(current)
        for i in (i for i in range(lanes) if not i & block):
            upper, lower = current[i].llvm, current[i + block].llvm
            pair = _exchanged(builder, upper, lower, block)
            following[i], following[i + block] = (current[i].like(one) for one in pair)
        current, block = following, 2 * block
    return current


def _exchanged(builder: Any, upper: Any, lower: Any, block: int) -> tuple[Any, Any]:
    """Two vectors whose blocks of so many lanes that are off the diagonal are exchanged."""
    kind = upper.type
    if fills_register(kind) and 2 * block == kind.count:
        return exchanged_halves(builder, upper, lower)
    wide = ir.VectorType(_I64, bits_of(kind) // _I64.width) if fills_register(kind) else kind
    if wide.count < kind.count and block * wide.count == kind.count:
        # LLVM knows the instruction by lanes that are as wide as the blocks.
        first, second = _exchanged(builder, builder.bitcast(upper, wide), builder.bitcast(lower, wide), 1)
        return builder.bitcast(first, kind), builder.bitcast(second, kind)
    lanes = kind.count
    kept = [lane if not lane & block else lanes + lane - block for lane in range(lanes)]
    moved = [lane + block if not lane & block else lanes + lane for lane in range(lanes)]
    masks = [ir.Constant(ir.VectorType(ir.IntType(32), lanes), order) for order in (kept, moved)]
    return builder.shuffle_vector(upper, lower, masks[0]), builder.shuffle_vector(upper, lower, masks[1])


@intrinsic(prefer_literal=True)
def tile_load_transposed(context: Any, x: Any, at: Any, row_step: Any, lanes: Any) -> Any:
    """`tile[i, 0][l] = x[at + l * row_step + i]`, a square of `lanes` x `lanes` elements."""
    size, number = lanes.literal_value, types.int64

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        memory, at, row_step = Memory(builder, x, operands[0]), operands[1], operands[2]
        places = [offset_of(builder, at, row_step, row) for row in range(size)]
        return pack_vectors(builder, _transposed([memory.read(place, size) for place in places]))

    return Tile(size, 1, size, REGISTER_TYPES[x.element])(x, number, number, lanes), codegen


@intrinsic(prefer_literal=True)
def tile_load_transposed_first(context: Any, x: Any, at: Any, row_step: Any, rows: Any, valid: Any, lanes: Any) -> Any:
    """As `tile_load_transposed`, of `rows` rows with `valid` elements each; rows beyond repeat the last one."""
    size, number = lanes.literal_value, types.int64

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        memory, at, row_step, valid = Memory(builder, x, operands[0]), operands[1], operands[2], operands[4]
        last = builder.sub(operands[3], _I64(1))
        vectors: list[Value] = []
        for row in range(size):
            clamped = builder.select(builder.icmp_signed("<", _I64(row), last), _I64(row), last)
            place = builder.add(at, builder.mul(clamped, row_step))
            vectors.append(memory.read_first(place, size, valid))
        return pack_vectors(builder, _transposed(vectors))

    tile = Tile(size, 1, size, REGISTER_TYPES[x.element])
    return tile(x, number, number, number, number, lanes), codegen


def _patch(tile: Tile, memory: Memory, at: Any, steps: Sequence[Any], limits: Sequence[Any]) -> Any:
    """The vectors of a patch; those beyond the limits are zero, and the first one is read in their place."""
    builder, vectors = memory.builder, list[Value]()
    for number in range(tile.rows * tile.columns):
        i, j = divmod(number, tile.columns)
        place = offset_of(builder, offset_of(builder, at, steps[0], i), steps[1], j)
        if not limits or number == 0:
            vectors.append(memory.read(place, tile.lanes).to(types.float32))
            continue
        bounds = [builder.icmp_signed("<", _I64(at), limit) for at, limit in zip((i, j), limits, strict=True)]
        inside = builder.and_(*bounds)
        found = memory.read(builder.select(inside, place, at), tile.lanes).to(types.float32)
        vectors.append(found.like(builder.select(inside, found.llvm, found.number(0.0).llvm)))
    return pack_vectors(builder, vectors)


@intrinsic(prefer_literal=True)
def tile_load_patch(
    context: Any, x: Any, at: Any, row_step: Any, column_step: Any, rows: Any, columns: Any, lanes: Any
) -> Any:
    """`tile[i, j] = x[at + i * row_step + j * column_step ..]`."""
    tile, number = Tile(rows.literal_value, columns.literal_value, lanes.literal_value), types.int64

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        return _patch(tile, Memory(builder, x, operands[0]), operands[1], operands[2:4], ())

    return tile(x, number, number, number, rows, columns, lanes), codegen


@intrinsic(prefer_literal=True)
def tile_load_patch_first(
    context: Any,
    x: Any,
    at: Any,
    row_step: Any,
    column_step: Any,
    row_limit: Any,
    column_limit: Any,
    rows: Any,
    columns: Any,
    lanes: Any,
) -> Any:
    """As `tile_load_patch`, zeros from row `row_limit` and from column `column_limit` on, which are not read."""
    tile, number = Tile(rows.literal_value, columns.literal_value, lanes.literal_value), types.int64

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        return _patch(tile, Memory(builder, x, operands[0]), operands[1], operands[2:4], operands[4:6])

    return tile(x, number, number, number, number, number, rows, columns, lanes), codegen


def _combined_by(matrix: Sequence[Sequence[float]], vectors: Sequence[Value]) -> list[Value]:
    """The product of a matrix with a column of vectors."""
    results: list[Value] = []
    for row in matrix:
        total: Value | None = None
        # Larger factors first: a product starts the sum, the others are added to it in one step each.
        for factor, vector in sorted(zip(row, vectors, strict=True), key=lambda pair: -abs(pair[0])):
            if factor:
                total = _added(total, factor, vector)
        results.append(vectors[0].number(0.0) if total is None else total)
    return results


def _added(total: Value | None, factor: float, vector: Value) -> Value:
    if total is None:
        return {1.0: vector, -1.0: -vector}.get(factor) or vector * factor
    if abs(factor) == 1:
        return total + vector if factor > 0 else total - vector
    return vector.multiply_add(vector.number(factor), total)


@intrinsic(prefer_literal=True)
def tile_transform(context: Any, tile: Any, matrix: Any) -> Any:
    """`M * tile * transpose(M)` in each lane; `matrix` has the rows of M, such as "1 1, 0 1"."""
    rows = [[float(number) for number in row.split()] for row in matrix.literal_value.split(",")]
    size = len(rows)
    result = Tile(size, size, tile.lanes)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        vectors, width = unpack_vectors(builder, tile, operands[0]), tile.columns
        columns = [_combined_by(rows, vectors[j::width]) for j in range(width)]
        lines = [_combined_by(rows, [column[i] for column in columns]) for i in range(size)]
        return pack_vectors(builder, [vector for line in lines for vector in line])

    return result(tile, matrix), codegen


@intrinsic
def tile_for_each(context: Any, tile: Any, function: Any, captured: Any) -> Any:
    """Call `function(vector, i, j, *captured)` for each vector of the tile, inlined with `i` and `j` as numbers."""
    captures = tuple(captured)
    args = (tile.vector, types.int64, types.int64, *captures)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        values = cgutils.unpack_tuple(builder, operands[2])
        body = function.dispatcher.py_func
        inner = types.void(*args)
        for number, vector in enumerate(unpack_vectors(builder, tile, operands[0])):
            i, j = divmod(number, tile.columns)
            context.compile_internal(builder, body, inner, (vector.llvm, _I64(i), _I64(j), *values))
        return context.get_dummy_value()

    return types.void(tile, function, captured), codegen


@intrinsic(prefer_literal=True)
def tile_for_each_rows(context: Any, tile: Any, function: Any, several: Any, captured: Any, rows: Any) -> Any:
    """As `tile_for_each`, and where the processor has words for vectors of several registers, `several` for four rows
    at a time: their vectors of a column one behind the other, and the number of the first. `rows` of them count.
    """
    captures = tuple(captured)
    known = getattr(rows, "literal_value", None)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        values = cgutils.unpack_tuple(builder, operands[3])
        vectors: list[Any] = [vector.llvm for vector in unpack_vectors(builder, tile, operands[0])]

        def call(body: Any, kind: Any, vector: Any, i: int, j: int) -> None:
            inner = types.void(kind, types.int64, types.int64, *captures)
            context.compile_internal(builder, body.dispatcher.py_func, inner, (vector, _I64(i), _I64(j), *values))

        def each(first: int, last: int, columns: Sequence[int]) -> None:
            for i, j in ((i, j) for i in range(first, last) for j in columns):
                call(function, tile.vector, vectors[i * tile.columns + j], i, j)

        def together(first: int, j: int) -> None:
            parts = [vectors[i * tile.columns + j] for i in range(first, first + ROWS_AT_ONCE)]
            call(several, Vector(tile.element, ROWS_AT_ONCE * tile.lanes), joined(builder, parts), first, j)

        whole = 0 if is_x86() else tile.rows // ROWS_AT_ONCE * ROWS_AT_ONCE
        for first in range(0, whole, ROWS_AT_ONCE):
            last = first + ROWS_AT_ONCE
            for j in range(tile.columns):
                if known is not None:
                    together(first, j)
                    continue
                with builder.if_else(builder.icmp_signed("<=", _I64(last), operands[4])) as (is_whole, is_part):
                    with is_whole:
                        together(first, j)
                    with is_part:
                        each(first, last, [j])
        each(whole, tile.rows, range(tile.columns))
        return context.get_dummy_value()

    return types.void(tile, function, several, captured, rows if known is not None else types.int64), codegen


@intrinsic
def tile_map(context: Any, tile: Any, function: Any, captured: Any) -> Any:
    """The tile of what `function(vector, i, j, *captured)` gives for each vector, inlined like `tile_for_each`."""
    captures = tuple(captured)
    args = (tile.vector, types.int64, types.int64, *captures)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        values = cgutils.unpack_tuple(builder, operands[2])
        body, inner = function.dispatcher.py_func, tile.vector(*args)
        results: list[Value] = []
        for number, vector in enumerate(unpack_vectors(builder, tile, operands[0])):
            i, j = divmod(number, tile.columns)
            made = context.compile_internal(builder, body, inner, (vector.llvm, _I64(i), _I64(j), *values))
            results.append(vector.like(made))
        return pack_vectors(builder, results)

    return tile(tile, function, captured), codegen


_COMBINATIONS: dict[str, Callable[[Value, Value], Value]] = {
    "add": lambda a, b: a + b,
    "max": maximum,
    "min": minimum,
}


@intrinsic(prefer_literal=True)
def tile_pool(context: Any, tile: Any, into: Any, kind: Any, rows: Any, columns: Any) -> Any:
    """`into[i, j]` combined with all of `tile[i * rows + r, j * columns + s]` for `r < rows` and `s < columns`."""
    combine, high, wide = _COMBINATIONS[kind.literal_value], rows.literal_value, columns.literal_value

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        results = unpack_vectors(builder, into, operands[1])
        for number, vector in enumerate(unpack_vectors(builder, tile, operands[0])):
            i, j = divmod(number, tile.columns)
            place = int(i // high * into.columns + j // wide)
            results[place] = combine(results[place], vector)
        return pack_vectors(builder, results)

    return into(tile, into, kind, rows, columns), codegen
