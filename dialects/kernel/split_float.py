"""Products of float32 on the matrix units of a warp, as accurate as multiply-adds: bf16x6.

A float32 has 24 bits in its mantissa, a bfloat16 eight: each number is the sum of three bfloat16, exactly. Of the nine
products of such parts the six largest are added up; the others together are below 2**-23 of the product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr, VectorType, f32, i1
from xdsl.ir import Attribute, OpResult, SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import PURE, SYNCHRONIZES, Rule, Text
from mlirt.dialects.kernel.matrix_unit import product_types
from mlirt.dialects.layout import arranged

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

QUAD = 4
"""Rows, columns and elements along the depth that a thread has side by side."""
PARTS = 3
TERMS = [(p, total - p) for total in range(PARTS)[::-1] for p in range(total + 1)]
"""Which parts of the left and the right factor are multiplied, the smallest products first."""


def _expected(x: Any) -> list[Attribute]:
    """The types of the accumulators and of both factors."""
    counts = 4 * x.rows * x.columns, 8 * x.rows, 4 * x.columns
    return [VectorType(f32, [count]) for count in counts]


@instruction
class SplitMmaOp(Instruction):
    """The warp's matrix unit on float32: `rows` x `columns` tiles of 16 x 8 accumulators, each plus a 16 x 16 times a 16 x 8 matrix.

    Factors are split into three bfloat16 each, and six products of these added up (bf16x6). What a 16 x 16 times 16 x 8
    product gives is summed by the matrix unit, and added to the accumulator with rounding to nearest. Where a factor is
    infinite or no number, results are no numbers; of one below 2**-110 the bits below 2**-133 do not count.

    Lane `4 * g + t` has of the left factor, for each 32 rows and each of its four elements e along the depth, the rows
    from `4 * g` on; of the right one the same of each 32 columns. It gets, row by row, the accumulators of the same
    rows and of the columns from `8 * t` on of each 32: eight of them.

    Example: `%d = kernel.split_mma %c, %a, %b {rows = 2 : i64, columns = 4 : i64} : vector<32xf32>, vector<16xf32>, vector<16xf32> -> vector<32xf32>`
    """  # noqa: E501

    name = "kernel.split_mma"

    accumulator: SSAValue = fields.fragment()
    left: SSAValue = fields.fragment()
    right: SSAValue = fields.fragment()
    rows: IntegerAttr = fields.attribute(converter=fields.number)
    columns: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(VectorType, like="accumulator")

    syntax = "$accumulator `,` $left `,` $right"
    effects = PURE
    scope = "warp"
    rules = (
        Rule(
            "quads are whole: two rows and four columns of tiles",
            lambda x: x.rows > 0 and x.rows % 2 == 0 and x.columns > 0 and x.columns % QUAD == 0,
            "{rows} x {columns} tiles are no whole quads",
        ),
        product_types("all are f32, as many as the tiles have", _expected),
    )
    cuda = Text("split_mma", "{rows}, {columns}", hint="multiply")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        left, right = (np.broadcast_to(value, (site.lanes.count, value.shape[1])) for value in (x.left, x.right))
        a = parts_of(arranged(left, "(w g t) (b e q)", "w (b q g) (t e)", g=8, t=4, e=QUAD, q=QUAD))
        b = parts_of(arranged(right, "(w g t) (b e q)", "w (t e) (b q g)", g=8, t=4, e=QUAD, q=QUAD))
        with np.errstate(invalid="ignore", over="ignore"):
            products: Any = sum(np.matmul(a[i], b[j]) for i, j in TERMS)
            order = ("w (i s g) (b q t p)", "(w g t) (i s b p q)")
            delta = arranged(products, *order, s=2, g=8, q=QUAD, t=4, p=2)
            return (x.accumulator + delta.astype(np.float32)).astype(np.float32)


def parts_of(array: Any) -> list[Any]:
    """Three arrays of float64, whose elements are bfloat16 and add up to those of an array of float32."""
    import numpy as np

    parts: list[Any] = []
    rest = np.ascontiguousarray(array, np.float32)
    with np.errstate(invalid="ignore"):
        for _ in range(PARTS):
            cut = (rest.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
            parts.append(cut.astype(np.float64))
            rest = rest - cut
    return parts


@instruction
class BlockIsFiniteOp(Instruction):
    """Whether all elements of this fragment are finite in all threads of the block, which wait for each other.

    Example: `%all = kernel.block_is_finite %v : vector<64xf32> -> i1`
    """

    name = "kernel.block_is_finite"

    fragment: SSAValue = fields.fragment("T", "n")
    result: OpResult = fields.result(like=i1)

    syntax = "$fragment"
    effects = SYNCHRONIZES
    scope = "block"
    rules = (Rule("the elements are f32", lambda x: x.T.type == f32, "elements of {fragment}"),)
    cuda = Text("block_is_finite", "{n}", hint="is_finite")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        site.lanes.epochs.start(site.blocks)
        block = site.lanes.block
        own = np.broadcast_to(np.isfinite(x.fragment).all(axis=1), block.shape)
        lost = np.unique(block[~own])
        return ~np.isin(block, lost)
