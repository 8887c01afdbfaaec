"""Warpgroup matrix products (wgmma) whose left operand is in registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr, VectorType, f32, i32
from xdsl.ir import OpResult, SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.buffers import SHARED
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import SYNCHRONIZES, Rule, Text
from mlirt.dialects.kernel.matrix_unit import MmaKind, MmaKindAttr
from mlirt.dialects.kernel.simt import WARPGROUP
from mlirt.dialects.kernel.warpgroup import LINE
from mlirt.dialects.layout import arranged
from mlirt.dialects.tensor_types import byte_width

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

STEPS = 4
"""Left fragments: one for each 16 elements of the depth of 64."""
_MAX_COLUMNS = 256


def _depth(x: Any) -> int:
    """Elements of a line."""
    return LINE // byte_width(x.right.get_element_type())


def _accumulator_type(x: Any) -> VectorType:
    return VectorType(f32, [x.columns // 2])


@instruction
class WarpgroupMmaRegistersOp(Instruction):
    """Start to add the product of a 64 x 64 matrix in registers and a 64 x `columns` tile of 16-bit elements.

    The left fragments, one for each 16 elements along the depth, are those of `kernel.mma` for the 16 rows of each
    warp. The tile lies by depth: 64 lines of 128 bytes for each 64 columns, swizzled. The product goes on until
    `kernel.warpgroup_accumulators`, which comes next.

    Example: `%d = kernel.warpgroup_mma_registers f16 %c, (%p0, %p1, %p2, %p3), %v[%i] {columns = 64 : i64}
    : vector<32xf32>, (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xi32>), memref<4096xf16, "shared">
    -> vector<32xf32>`
    """

    name = "kernel.warpgroup_mma_registers"

    kind: MmaKindAttr = fields.attribute(converter=MmaKindAttr)
    accumulator: SSAValue = fields.fragment()
    left: Sequence[SSAValue] = fields.fragments()
    right: SSAValue = fields.memref()
    right_index: SSAValue = fields.index()
    columns: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(VectorType, like="accumulator")

    assembly_format = (
        "$kind $accumulator `,` `(` $left `)` `,` $right `[` $right_index `]` attr-dict `:` "
        "type($accumulator) `,` `(` type($left) `)` `,` type($right) `->` type($result)"
    )
    effects = SYNCHRONIZES
    is_asynchronous = True
    scope = "warpgroup"
    rules = (
        Rule("the tile lies in shared memory", lambda x: x.right.memory_space == SHARED),
        Rule("it multiplies f16 or bf16", lambda x: x.kind in (MmaKind.F16, MmaKind.BF16), "f16 or bf16, not {kind}"),
        Rule(
            "columns are whole pieces of a line, up to 256",
            lambda x: x.columns % _depth(x) == 0 and 0 < x.columns <= _MAX_COLUMNS,
            lambda x: f"columns are a multiple of {_depth(x)} up to {_MAX_COLUMNS}, not {x.columns}",
        ),
        Rule(
            "a thread has `columns / 2` accumulators of f32",
            lambda x: x.accumulator == _accumulator_type(x),
            lambda x: f"the accumulators are {_accumulator_type(x)}, not {x.accumulator}",
        ),
        Rule(f"takes {STEPS} left fragments of four i32", lambda x: x.left == [VectorType(i32, [4])] * STEPS),
    )
    cuda = Text("warpgroup_mma_registers", '"{kind}", {columns}', hint="multiply")

    def __init__(
        self,
        kind: MmaKind,
        accumulator: SSAValue,
        left: Sequence[SSAValue],
        right: tuple[SSAValue, SSAValue],
        columns: int,
    ) -> None:
        self.fill(kind, accumulator, left, *right, columns)

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import ml_dtypes
        import numpy as np

        from mlirt.dialects.kernel.interpreter_warpgroups import product_of_rows, read_tile

        dtype = np.dtype(np.float16) if x.kind is MmaKind.F16 else np.dtype(ml_dtypes.bfloat16)
        accumulators, fragments = x.accumulator.copy(), [np.ascontiguousarray(one) for one in x.left]
        for row in site.warpgroups:
            right, right_at = read_tile(site, row, (x.right, x.right_index), x.columns, True)
            parts = [one[row : row + WARPGROUP].view(dtype) for one in fragments]
            places = ("(w g t) (h s e)", "(w s g) (h t e)")
            left = np.concatenate([arranged(part, *places, g=8, t=4, h=2, s=2) for part in parts], axis=1)
            product = left.astype(np.float64) @ right.astype(np.float64).T
            accumulators[row : row + WARPGROUP] += product_of_rows(product).astype(accumulators.dtype)
            site.machine.stages.product(site.warpgroup(row), [right_at])
        return accumulators
