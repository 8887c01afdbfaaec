"""Register tiles of 32-bit sums to which int8 products are added, four in each lane at a time."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, MemRefType, Signedness, VectorType, i8, i32, i64
from xdsl.ir import Attribute, SSAValue
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

from mlirt.dialects.kernel.buffers import fragment
from mlirt.dialects.kernel.core import element_of_buffer
from mlirt.dialects.tensor_op import require

# Bytes whose products fall into one lane.
FOUR = 4
# Features of processors that have one instruction for `kernel.tile_dot_add`.
INT8_PRODUCTS = frozenset({"avx512vnni", "avxvnni"})
_UNSIGNED: Attribute = IntegerType(8, Signedness.UNSIGNED)


@irdl_op_definition
class TileDotAddOp(IRDLOperation):
    """`tile[i, j, l] += sum over b < 4 of x[x_at + i * row_step + 4 * u + b]
    * w[w_at + 4 * ((u * columns + j) * lanes + l) + b]` for `u < depth`, exactly.

    The inner loop of quantised products and convolutions. `w` is packed so that the four weights of a lane lie side by
    side. Of the last four bytes of `x` only the first `last` are read, the others count as zero; rows from number
    `rows` on read what the last row before them reads. C1: the tile has i32, `x` ui8 and `w` i8. C2: `last` is from 1
    to 4.

    Example: `%t1 = kernel.tile_dot_add %t, %x[%i] rows %s first %n, %w[%k] {depth = 4 : i64}
    : vector<14x2x16xi32>, memref<?xui8>, memref<?xi8> -> vector<14x2x16xi32>`
    """

    name = "kernel.tile_dot_add"

    tile = operand_def(VectorType)
    x = operand_def(MemRefType)
    x_at = operand_def(IndexType())
    row_step = operand_def(IndexType())
    rows = opt_operand_def(IndexType())
    w = operand_def(MemRefType)
    w_at = operand_def(IndexType())
    depth = prop_def(IntegerAttr)
    last = prop_def(IntegerAttr, default_value=IntegerAttr(FOUR, i64))
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
        depth: int,
        rows: SSAValue | None = None,
        last: int = FOUR,
    ) -> None:
        super().__init__(
            operands=[tile, x, x_at, row_step, rows, w, w_at],
            properties={"depth": IntegerAttr(depth, i64), "last": IntegerAttr(last, i64)},
            result_types=[tile.type],
        )

    def verify_(self) -> None:
        tile = fragment(self.tile)
        require(len(tile.get_shape()) == 3 and self.result.type == tile, f"{self.name}: {tile} is no tile to add to")
        elements = (tile.get_element_type(), element_of_buffer(self.x), element_of_buffer(self.w))
        given = ", ".join(map(str, elements))
        require(elements == (i32, _UNSIGNED, i8), f"C1: {self.name} adds ui8 times i8 to i32, not {given}")
        last = self.last.value.data
        require(1 <= last <= FOUR, f"C2: {self.name}: {last} of {FOUR} bytes cannot be read")
