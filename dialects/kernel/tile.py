"""Register tiles of CPU kernels, vectors of rows x columns x lanes: their type, and ops on their own elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IndexType, VectorType
from xdsl.ir import Attribute, Block, OpResult, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    region_def,
    traits_def,
)
from xdsl.traits import RecursiveMemoryEffect

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.buffers import fragment
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import PURE, Rule, Text
from mlirt.dialects.tensor_op import require

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site


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


def is_tile(name: str) -> Rule:
    """The constraint that a field is a register tile."""
    return Rule(
        f"the {name} is a vector of rows x columns x lanes",
        lambda x: len(getattr(x, name).get_shape()) == 3,
        lambda x: f"a tile is a vector of rows x columns x lanes, not {getattr(x, name)}",
    )


def shape_text(x: Any) -> str:
    """The shape of the result, as words take it."""
    return ", ".join(map(str, tile_shape(x.result)))


@instruction
class TileFillOp(Instruction):
    """A tile whose elements are all the same number.

    Example: `%t = kernel.tile_fill %zero : f32 -> vector<14x2x16xf32>`
    """

    name = "kernel.tile_fill"

    value: SSAValue = fields.scalar("T")
    result: OpResult = fields.result(VectorType)

    syntax = "$value"
    effects = PURE
    rules = (is_tile("result"),)
    cpu = Text("tile_fill", shape_text)

    def __init__(self, value: SSAValue, rows: int, columns: int, lanes: int) -> None:
        self.fill(value, result=tile_type(value.type, rows, columns, lanes))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        return np.broadcast_to(x.value[:, None, None, None], (len(x.value), *tile_shape(x.result)))


def _rows_of(x: Any) -> list[list[float]]:
    width = tile_shape(x.op.tile.type)[0]
    return [x.matrix[start : start + width] for start in range(0, len(x.matrix), width)]


@instruction
class TileTransformOp(Instruction):
    """`M * tile * transpose(M)` in each lane, for a matrix `M` of numbers of 64 bits, given row by row.

    The transforms around the products of a fast convolution.

    Example: `%d = kernel.tile_transform %t {matrix = array<f64: 1.0, 1.0, 0.0, 1.0>}
    : vector<2x2x16xf32> -> vector<2x2x16xf32>`
    """

    name = "kernel.tile_transform"

    tile: SSAValue = fields.tile()
    matrix: fields.Floats = fields.attribute(converter=fields.floats)
    result: OpResult = fields.result(VectorType)

    syntax = "$tile"
    effects = PURE
    rules = (
        is_tile("tile"),
        is_tile("result"),
        Rule(
            "squares are transformed into squares",
            lambda x: _are_squares(tile_shape(x.tile), tile_shape(x.result)),
            "squares are transformed into squares, not {tile} into {result}",
        ),
        Rule(
            "the matrix has a row for each row of the result, of as many numbers as the tile has rows",
            lambda x: len(x.matrix) == tile_shape(x.result)[0] * tile_shape(x.tile)[0],
            lambda x: f"the matrix is {tile_shape(x.result)[0]} x {tile_shape(x.tile)[0]}",
        ),
    )
    cpu = Text("tile_transform", lambda x: f'"{_matrix_text(x)}"')

    def __init__(self, tile: SSAValue, matrix: Sequence[Sequence[float]]) -> None:
        lanes = tile_shape(tile.type)[2]
        result = tile_type(fragment(tile).element_type, len(matrix), len(matrix), lanes)
        self.fill(tile, [number for row in matrix for number in row], result=result)

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        matrix = np.array(_rows_of(x), x.tile.dtype)
        return np.einsum("ia,nabl,jb->nijl", matrix, x.tile, matrix)


def _are_squares(shape: tuple[int, int, int], result: tuple[int, int, int]) -> bool:
    return shape[0] == shape[1] and result == (result[0], result[0], shape[2])


def _matrix_text(x: Any) -> str:
    return ", ".join(" ".join(f"{number:.17g}" for number in row) for row in _rows_of(x))


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
