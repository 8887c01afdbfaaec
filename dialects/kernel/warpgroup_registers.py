"""Four warps that multiply what they have in registers with a tile in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, VectorType, f32, i32, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from mlirt.dialects.kernel.buffers import is_shared, memory
from mlirt.dialects.kernel.matrix_unit import MmaKind, MmaKindAttr
from mlirt.dialects.kernel.warpgroup import LINE
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import byte_width

STEPS = 4
"""Left fragments: one for each 16 elements of the depth of 64."""
_MOST_COLUMNS = 256


@irdl_op_definition
class WarpgroupMmaRegistersOp(IRDLOperation):
    """Start to add the product of a 64 x 64 matrix in registers and a 64 x `columns` tile of 16-bit elements.

    The left fragments, one for each 16 elements along the depth, are those of `kernel.mma` for the 16 rows of each
    warp. The tile lies by depth: 64 lines of 128 bytes for each 64 columns, swizzled. The product goes on until
    `kernel.warpgroup_accumulators`, which comes next.

    Example: `%d = kernel.warpgroup_mma_registers f16 %c, (%p0, %p1, %p2, %p3), %v[%i] {columns = 64 : i64}
    : vector<32xf32>, (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xi32>), memref<4096xf16, "shared">
    -> vector<32xf32>`
    """

    name = "kernel.warpgroup_mma_registers"

    kind = prop_def(MmaKindAttr)
    accumulator = operand_def(VectorType)
    left = var_operand_def(VectorType)
    right = operand_def(MemRefType)
    right_index = operand_def(IndexType())
    columns = prop_def(IntegerAttr)
    result = result_def(VectorType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$kind $accumulator `,` `(` $left `)` `,` $right `[` $right_index `]` attr-dict `:` "
        "type($accumulator) `,` `(` type($left) `)` `,` type($right) `->` type($result)"
    )

    def __init__(
        self,
        kind: MmaKind,
        accumulator: SSAValue,
        left: Sequence[SSAValue],
        right: tuple[SSAValue, SSAValue],
        columns: int,
    ) -> None:
        super().__init__(
            operands=[accumulator, left, *right],
            properties={"kind": MmaKindAttr(kind), "columns": IntegerAttr(columns, i64)},
            result_types=[accumulator.type],
        )

    def verify_(self) -> None:
        columns = self.columns.value.data
        depth = LINE // byte_width(memory(self.right).get_element_type())
        require(is_shared(self.right), f"{self.name}: the tile lies in shared memory")
        require(self.kind.data in (MmaKind.F16, MmaKind.BF16), f"{self.name}: f16 or bf16, not {self.kind.data}")
        fits = columns % depth == 0 and 0 < columns <= _MOST_COLUMNS
        require(fits, f"{self.name}: columns are a multiple of {depth} up to {_MOST_COLUMNS}, not {columns}")
        expected = VectorType(f32, [columns // 2])
        require(self.accumulator.type == expected, f"{self.name}: the sums are {expected}, not {self.accumulator.type}")
        fragments = [value.type for value in self.left]
        require(fragments == [VectorType(i32, [4])] * STEPS, f"{self.name}: takes {STEPS} left fragments of four i32")
