"""CPU kernels: the share of a worker, and register tiles, which are vectors of rows x columns x lanes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, MemRefType, VectorType, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure, RecursiveMemoryEffect

from mlirt.dialects.kernel.buffers import fragment
from mlirt.dialects.kernel.core import ReduceKind, ReduceKindAttr, YieldOp, element_of_buffer
from mlirt.dialects.tensor_op import require


def tile_type(element: Attribute, rows: int, columns: int, lanes: int) -> VectorType[Attribute]:
    """The type of a register tile."""
    return VectorType(element, [rows, columns, lanes])


def tile_shape(of: Attribute) -> tuple[int, int, int]:
    """Rows, columns and lanes of a register tile."""
    assert isinstance(of, VectorType)
    rows, columns, lanes = of.get_shape()
    return rows, columns, lanes


def _check_tile(op: IRDLOperation, type_: Attribute, result: Attribute | None = None) -> None:
    is_tile = isinstance(type_, VectorType) and len(type_.get_shape()) == 3
    require(is_tile, f"{op.name}: a tile is a vector of rows x columns x lanes, not {type_}")
    require(result in (None, type_), f"{op.name}: the result is {result}, the tile {type_}")


@irdl_op_definition
class WorkerShareOp(IRDLOperation):
    """The tasks `first`, .., `last - 1` of `tasks` that this worker does; workers get equally many, give or take one.

    Example: `%first, %last = kernel.worker_share %n`
    """

    name = "kernel.worker_share"

    tasks = operand_def(IndexType())
    first = result_def(IndexType())
    last = result_def(IndexType())

    traits = traits_def(Pure())
    assembly_format = "$tasks attr-dict"

    def __init__(self, tasks: SSAValue) -> None:
        super().__init__(operands=[tasks], result_types=[IndexType(), IndexType()])


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Ask for the memory around an element to be brought near; nothing waits for it, and any address will do.

    Example: `kernel.prefetch %w[%at] : memref<?xf32>`
    """

    name = "kernel.prefetch"

    buffer = operand_def(MemRefType)
    at = operand_def(IndexType())

    # Not a read: it never fails, and has to stay where it is.
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$buffer `[` $at `]` attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, at: SSAValue) -> None:
        super().__init__(operands=[buffer, at])


@irdl_op_definition
class TileFillOp(IRDLOperation):
    """A tile whose elements are all the same number.

    Example: `%t = kernel.tile_fill %zero : f32 -> vector<14x2x16xf32>`
    """

    name = "kernel.tile_fill"

    value = operand_def()
    result = result_def(VectorType)

    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, rows: int, columns: int, lanes: int) -> None:
        super().__init__(operands=[value], result_types=[tile_type(value.type, rows, columns, lanes)])

    def verify_(self) -> None:
        _check_tile(self, self.result.type)


@irdl_op_definition
class TileLoadOp(IRDLOperation):
    """`tile[i, j, :] = x[x_at + i * row_step + j * lanes + :]`; zeros beyond the first `valid` elements of a row, which
    are not read.

    Example: `%t = kernel.tile_load %x[%i] rows %s valid %n : memref<?xf32> -> vector<1x4x16xf32>`
    """

    name = "kernel.tile_load"

    x = operand_def(MemRefType)
    x_at = operand_def(IndexType())
    row_step = operand_def(IndexType())
    valid = opt_operand_def(IndexType())
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())
    assembly_format = "$x `[` $x_at `]` `rows` $row_step (`valid` $valid^)? attr-dict `:` type($x) `->` type($result)"

    def __init__(
        self, x: SSAValue, x_at: SSAValue, row_step: SSAValue, shape: tuple[int, int, int], valid: SSAValue | None
    ) -> None:
        result = tile_type(element_of_buffer(x), *shape)
        super().__init__(operands=[x, x_at, row_step, valid], result_types=[result])

    def verify_(self) -> None:
        _check_tile(self, self.result.type)


@irdl_op_definition
class TileLoadTransposedOp(IRDLOperation):
    """`tile[i, 0, l] = x[x_at + l * row_step + i]`: `lanes` rows of memory, turned into the columns of a square tile.

    Only `rows` rows and of each the first `valid` elements are read: rows beyond repeat the last one, other elements
    are zero. Both are at least 1.

    Example: `%t = kernel.tile_load_transposed %x[%i] rows %s only %n valid %m : memref<?xf32> -> vector<16x1x16xf32>`
    """

    name = "kernel.tile_load_transposed"

    x = operand_def(MemRefType)
    x_at = operand_def(IndexType())
    row_step = operand_def(IndexType())
    rows = opt_operand_def(IndexType())
    valid = opt_operand_def(IndexType())
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$x `[` $x_at `]` `rows` $row_step (`only` $rows^)? (`valid` $valid^)? attr-dict "
        "`:` type($x) `->` type($result)"
    )

    def __init__(
        self,
        x: SSAValue,
        x_at: SSAValue,
        row_step: SSAValue,
        lanes: int,
        rows: SSAValue | None = None,
        valid: SSAValue | None = None,
    ) -> None:
        result = tile_type(element_of_buffer(x), lanes, 1, lanes)
        super().__init__(operands=[x, x_at, row_step, rows, valid], result_types=[result])

    def verify_(self) -> None:
        _check_tile(self, self.result.type)
        rows, columns, lanes = tile_shape(self.result.type)
        require(rows == lanes and columns == 1, f"{self.name}: the tile is lanes x 1 x lanes, not {self.result.type}")


@irdl_op_definition
class TileLoadPatchOp(IRDLOperation):
    """`tile[i, j, :] = x[x_at + i * row_step + j * column_step + :]` for `i < rows` and `j < columns`.

    Elsewhere it is zero, and nothing is read. Both limits are at least 1; without them there is none.

    Example: `%t = kernel.tile_load_patch %x[%i] rows %s columns %c : memref<?xf32> -> vector<6x6x16xf32>`
    """

    name = "kernel.tile_load_patch"

    x = operand_def(MemRefType)
    x_at = operand_def(IndexType())
    row_step = operand_def(IndexType())
    column_step = operand_def(IndexType())
    rows = opt_operand_def(IndexType())
    columns = opt_operand_def(IndexType())
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$x `[` $x_at `]` `rows` $row_step `columns` $column_step (`only` $rows^)? (`by` $columns^)? attr-dict "
        "`:` type($x) `->` type($result)"
    )

    def __init__(
        self,
        x: SSAValue,
        x_at: SSAValue,
        steps: tuple[SSAValue, SSAValue],
        shape: tuple[int, int, int],
        limits: tuple[SSAValue, SSAValue] | None = None,
    ) -> None:
        result = tile_type(element_of_buffer(x), *shape)
        super().__init__(operands=[x, x_at, *steps, *(limits or (None, None))], result_types=[result])

    def verify_(self) -> None:
        _check_tile(self, self.result.type)
        require((self.rows is None) == (self.columns is None), f"{self.name} has only one of its limits")


@irdl_op_definition
class TileTransformOp(IRDLOperation):
    """`M * tile * transpose(M)` in each lane, for a matrix `M` of whole numbers, given row by row.

    The transforms around the products of a fast convolution.

    Example: `%d = kernel.tile_transform %t {matrix = array<i64: 1, 1, 0, 1>}
    : vector<2x2x16xf32> -> vector<2x2x16xf32>`
    """

    name = "kernel.tile_transform"

    tile = operand_def(VectorType)
    matrix = prop_def(DenseArrayBase.constr(i64))
    result = result_def(VectorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$tile attr-dict `:` type($tile) `->` type($result)"

    def __init__(self, tile: SSAValue, matrix: Sequence[Sequence[int]]) -> None:
        lanes = tile_shape(tile.type)[2]
        result = tile_type(fragment(tile).element_type, len(matrix), len(matrix), lanes)
        flat = [number for row in matrix for number in row]
        super().__init__(
            operands=[tile], properties={"matrix": DenseArrayBase.from_list(i64, flat)}, result_types=[result]
        )

    def matrix_rows(self) -> list[list[int]]:
        """The rows of the matrix."""
        flat, width = [int(number) for number in self.matrix.iter_values()], tile_shape(self.tile.type)[0]
        return [flat[start : start + width] for start in range(0, len(flat), width)]

    def verify_(self) -> None:
        _check_tile(self, self.tile.type)
        _check_tile(self, self.result.type)
        rows, columns, lanes = tile_shape(self.tile.type)
        size = tile_shape(self.result.type)[0]
        fits = rows == columns and tile_shape(self.result.type) == (size, size, lanes)
        require(
            fits, f"{self.name}: squares are transformed into squares, not {self.tile.type} into {self.result.type}"
        )
        require(len(list(self.matrix.iter_values())) == size * rows, f"{self.name}: the matrix is {size} x {rows}")


@irdl_op_definition
class TileMultiplyAddOp(IRDLOperation):
    """`tile[i, j, :] += x[x_at + i * row_step + u * step] * w[w_at + (u * columns + j) * lanes + :]` for `u < depth`.

    The inner loop of matrix products and convolutions: `w` is packed so that one step's vectors lie side by side. Rows
    from number `rows` on read what the last row before them reads, so that nothing beyond the edge is touched.

    Example: `%t1 = kernel.tile_multiply_add %t, %x[%i] rows %s first %n step %c1, %w[%k] {depth = 4 : i64}
    : vector<14x2x16xf32>, memref<?xf32>, memref<?xf32> -> vector<14x2x16xf32>`
    """

    name = "kernel.tile_multiply_add"

    tile = operand_def(VectorType)
    x = operand_def(MemRefType)
    x_at = operand_def(IndexType())
    row_step = operand_def(IndexType())
    rows = opt_operand_def(IndexType())
    step = operand_def(IndexType())
    w = operand_def(MemRefType)
    w_at = operand_def(IndexType())
    depth = prop_def(IntegerAttr)
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$tile `,` $x `[` $x_at `]` `rows` $row_step (`first` $rows^)? `step` $step `,` $w `[` $w_at `]` attr-dict "
        "`:` type($tile) `,` type($x) `,` type($w) `->` type($result)"
    )

    def __init__(
        self,
        tile: SSAValue,
        x: SSAValue,
        x_at: SSAValue,
        row_step: SSAValue,
        step: SSAValue,
        w: SSAValue,
        w_at: SSAValue,
        depth: int,
        rows: SSAValue | None = None,
    ) -> None:
        super().__init__(
            operands=[tile, x, x_at, row_step, rows, step, w, w_at],
            properties={"depth": IntegerAttr(depth, i64)},
            result_types=[tile.type],
        )

    def verify_(self) -> None:
        _check_tile(self, self.tile.type, self.result.type)


@irdl_op_definition
class TileMultiplyAddLanesOp(IRDLOperation):
    """`tile[i, j, :] += x[x_at + i * row_step + j * lanes + :] * w[w_at + j * lanes + :]`, a step of a
    depthwise convolution; `rows` as in `kernel.tile_multiply_add`.

    Example: `%t1 = kernel.tile_multiply_add_lanes %t, %x[%i] rows %s, %w[%k]
    : vector<8x1x16xf32>, memref<?xf32>, memref<?xf32> -> vector<8x1x16xf32>`
    """

    name = "kernel.tile_multiply_add_lanes"

    tile = operand_def(VectorType)
    x = operand_def(MemRefType)
    x_at = operand_def(IndexType())
    row_step = operand_def(IndexType())
    rows = opt_operand_def(IndexType())
    w = operand_def(MemRefType)
    w_at = operand_def(IndexType())
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$tile `,` $x `[` $x_at `]` `rows` $row_step (`first` $rows^)? `,` $w `[` $w_at `]` attr-dict "
        "`:` type($tile) `,` type($x) `,` type($w) `->` type($result)"
    )

    def __init__(
        self,
        tile: SSAValue,
        x: SSAValue,
        x_at: SSAValue,
        row_step: SSAValue,
        w: SSAValue,
        w_at: SSAValue,
        rows: SSAValue | None = None,
    ) -> None:
        super().__init__(operands=[tile, x, x_at, row_step, rows, w, w_at], result_types=[tile.type])

    def verify_(self) -> None:
        _check_tile(self, self.tile.type, self.result.type)


@irdl_op_definition
class TileCombineOp(IRDLOperation):
    """`tile[i, j, :] = kind(tile[i, j, :], x[x_at + i * row_step + j * lanes + :])`, the step of a pooling window;
    `rows` as in `kernel.tile_multiply_add`.

    Example: `%t1 = kernel.tile_combine max %t, %x[%i] rows %s
    : vector<8x1x16xf32>, memref<?xf32> -> vector<8x1x16xf32>`
    """

    name = "kernel.tile_combine"

    kind = prop_def(ReduceKindAttr)
    tile = operand_def(VectorType)
    x = operand_def(MemRefType)
    x_at = operand_def(IndexType())
    row_step = operand_def(IndexType())
    rows = opt_operand_def(IndexType())
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$kind $tile `,` $x `[` $x_at `]` `rows` $row_step (`first` $rows^)? attr-dict "
        "`:` type($tile) `,` type($x) `->` type($result)"
    )

    def __init__(
        self,
        kind: ReduceKind,
        tile: SSAValue,
        x: SSAValue,
        x_at: SSAValue,
        row_step: SSAValue,
        rows: SSAValue | None = None,
    ) -> None:
        super().__init__(
            operands=[tile, x, x_at, row_step, rows],
            properties={"kind": ReduceKindAttr(kind)},
            result_types=[tile.type],
        )

    def verify_(self) -> None:
        _check_tile(self, self.tile.type, self.result.type)


@irdl_op_definition
class TileForEachOp(IRDLOperation):
    """Do something with each element of a tile: the region gets the element, its row, its column and its lane.

    Only the first `rows` rows count, and of each row the first `valid` elements, counted over columns and lanes: the
    region is not executed for others. So the tile at the edge of a matrix is computed whole and stored in part.

    Example: `kernel.tile_for_each %t rows %n valid %m : vector<6x4x16xf32>
    { ^bb0(%v: f32, %i: index, %j: index, %lane: index): .. kernel.yield }`
    """

    name = "kernel.tile_for_each"

    tile = operand_def(VectorType)
    rows = opt_operand_def(IndexType())
    valid = opt_operand_def(IndexType())
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = "$tile (`rows` $rows^)? (`valid` $valid^)? attr-dict-with-keyword `:` type($tile) $body"

    def __init__(self, tile: SSAValue, rows: SSAValue | None = None, valid: SSAValue | None = None) -> None:
        index = IndexType()
        body = Region(Block(arg_types=[fragment(tile).element_type, index, index, index]))
        super().__init__(operands=[tile, rows, valid], regions=[body])

    def verify_(self) -> None:
        _check_tile(self, self.tile.type)
        given = [arg.type for arg in self.body.block.args[1:]]
        require(given == [IndexType()] * 3, f"{self.name}: the body takes the element, its row, column and lane")
        require(isinstance(self.body.block.last_op, YieldOp), f"{self.name}: the body does not end with kernel.yield")
