"""Register tiles of CPU kernels, vectors of rows x columns x lanes: their type, and ops on their own elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IndexType, VectorType, f64
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
from xdsl.traits import Pure, RecursiveMemoryEffect

from mlirt.dialects.kernel.buffers import fragment
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.tensor_op import require


def tile_type(element: Attribute, rows: int, columns: int, lanes: int) -> VectorType[Attribute]:
    """The type of a register tile."""
    return VectorType(element, [rows, columns, lanes])


def tile_shape(of: Attribute) -> tuple[int, int, int]:
    """Rows, columns and lanes of a register tile."""
    assert isinstance(of, VectorType)
    rows, columns, lanes = of.get_shape()
    return rows, columns, lanes


def check_tile(op: IRDLOperation, type_: Attribute, result: Attribute | None = None) -> None:
    """Raise where a type is no tile, or a result has another one."""
    is_tile = isinstance(type_, VectorType) and len(type_.get_shape()) == 3
    require(is_tile, f"{op.name}: a tile is a vector of rows x columns x lanes, not {type_}")
    require(result in (None, type_), f"{op.name}: the result is {result}, the tile {type_}")


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
        check_tile(self, self.result.type)


@irdl_op_definition
class TileTransformOp(IRDLOperation):
    """`M * tile * transpose(M)` in each lane, for a matrix `M` of numbers of 64 bits, given row by row.

    The transforms around the products of a fast convolution.

    Example: `%d = kernel.tile_transform %t {matrix = array<f64: 1.0, 1.0, 0.0, 1.0>}
    : vector<2x2x16xf32> -> vector<2x2x16xf32>`
    """

    name = "kernel.tile_transform"

    tile = operand_def(VectorType)
    matrix = prop_def(DenseArrayBase.constr(f64))
    result = result_def(VectorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$tile attr-dict `:` type($tile) `->` type($result)"

    def __init__(self, tile: SSAValue, matrix: Sequence[Sequence[float]]) -> None:
        lanes = tile_shape(tile.type)[2]
        result = tile_type(fragment(tile).element_type, len(matrix), len(matrix), lanes)
        flat = [number for row in matrix for number in row]
        super().__init__(
            operands=[tile], properties={"matrix": DenseArrayBase.from_list(f64, flat)}, result_types=[result]
        )

    def matrix_rows(self) -> list[list[float]]:
        """The rows of the matrix."""
        flat, width = [float(number) for number in self.matrix.iter_values()], tile_shape(self.tile.type)[0]
        return [flat[start : start + width] for start in range(0, len(flat), width)]

    def verify_(self) -> None:
        check_tile(self, self.tile.type)
        check_tile(self, self.result.type)
        rows, columns, lanes = tile_shape(self.tile.type)
        size = tile_shape(self.result.type)[0]
        fits = rows == columns and tile_shape(self.result.type) == (size, size, lanes)
        require(
            fits, f"{self.name}: squares are transformed into squares, not {self.tile.type} into {self.result.type}"
        )
        require(len(list(self.matrix.iter_values())) == size * rows, f"{self.name}: the matrix is {size} x {rows}")


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
        check_tile(self, self.tile.type)
        given = [arg.type for arg in self.body.block.args[1:]]
        require(given == [IndexType()] * 3, f"{self.name}: the body takes the element, its row, column and lane")
        require(isinstance(self.body.block.last_op, YieldOp), f"{self.name}: the body does not end with kernel.yield")
