"""Register tiles as sums: what is multiplied or combined with what lies in memory and taken up by the tile."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, VectorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect

from mlirt.dialects.kernel.core import ReduceKind, ReduceKindAttr
from mlirt.dialects.kernel.tile import check_tile


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
        check_tile(self, self.tile.type, self.result.type)


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
        check_tile(self, self.tile.type, self.result.type)


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
        check_tile(self, self.tile.type, self.result.type)
