"""Register tiles from memory: rows as they lie, rows transposed into columns, patches of a picture."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, MemRefType, VectorType
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect

from mlirt.dialects.kernel.core import element_of_buffer
from mlirt.dialects.kernel.tile import check_tile, tile_shape, tile_type
from mlirt.dialects.tensor_op import require


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
        check_tile(self, self.result.type)


@irdl_op_definition
class TileLoadTransposedOp(IRDLOperation):
    """`tile[i, 0, l] = x[x_at + l * row_step + i]`: `lanes` rows of memory, transposed into a square tile.

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
        check_tile(self, self.result.type)
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
        check_tile(self, self.result.type)
        require((self.rows is None) == (self.columns is None), f"{self.name} has only one of its limits")
