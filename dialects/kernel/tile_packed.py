"""Register tiles and weights of few bits, which become numbers in registers as they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr, IntegerType, Signedness, VectorType, f32
from xdsl.ir import OpResult, SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import READS, Rule, Text
from mlirt.dialects.kernel.tile import is_tile, shape_text, tile_shape, tile_type
from mlirt.dialects.packed_codes import WORD_BITS

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

_UNSIGNED = IntegerType(8, Signedness.UNSIGNED)


def codes_per_word(bits: int) -> int:
    """How many codes of a lane lie side by side in memory: those of a word of 32 bits, of bytes each for itself."""
    return 1 if bits == 8 else WORD_BITS // bits


_CODES = "`codes` $w `[` $w_at `]` `scale` $scale `[` $scale_at `]` `zero` $zero `[` $zero_at `]`"
_WEIGHTS = ("w", "w_at", "scale", "scale_at", "zero", "zero_at")
_RULES = (
    Rule("the codes are bytes", lambda x: x.W.type == _UNSIGNED, "reads codes from bytes, not from {W.type}"),
    Rule("codes have 2, 4 or 8 bits", lambda x: x.bits in (2, 4, 8), lambda x: f"codes of {x.bits} bits"),
    Rule(
        "`depth` is at most the codes of a word, or any number for bytes",
        lambda x: 1 <= x.depth <= (codes_per_word(x.bits) if x.bits < 8 else 64),
        lambda x: f"a word of codes does not have {x.depth}",
    ),
)


def _numbers(x: Any, columns: int, lanes: int) -> Any:
    """`depth` x columns x lanes of weights for each active lane."""
    import numpy as np

    depth, bits = int(x.depth), int(x.bits)
    u, j, lane = np.ogrid[:depth, :columns, :lanes]
    if bits == 8:
        codes = x.w.read(x.w_at[:, None, None, None] + (u * columns + j) * lanes + lane)
    else:
        at = x.w_at[:, None, None, None] + 4 * (j * lanes + lane) + u * bits // 8
        codes = (x.w.read(at) >> (u * bits % 8)) & ((1 << bits) - 1)
    beside = np.arange(columns * lanes).reshape(columns, lanes)
    scale, zero = (
        memory.read(at[:, None, None] + beside).astype(np.float32)[:, None]
        for memory, at in ((x.scale, x.scale_at), (x.zero, x.zero_at))
    )
    return (codes.astype(np.float32) - zero) * scale


@instruction
class TileLoadPackedOp(Instruction):
    """`tile[u, j, l] = (code(u, j, l) - zero[zero_at + j * lanes + l]) * scale[scale_at + j * lanes + l]`.

    The codes of a lane lie in a word of 32 bits from byte `w_at + 4 * (j * lanes + l)` on, number `u` in its bits
    from `u * bits` on; codes of 8 bits at byte `w_at + (u * columns + j) * lanes + l`.

    Example: `%t = kernel.tile_load_packed codes %w[%i] scale %s[%j] zero %z[%j] {bits = 4 : i64, depth = 8 : i64}
    : memref<?xui8>, memref<?xf32>, memref<?xui8> -> vector<8x2x16xf32>`
    """

    name = "kernel.tile_load_packed"

    w: SSAValue = fields.memref("W")
    w_at: SSAValue = fields.index()
    scale: SSAValue = fields.memref("S")
    scale_at: SSAValue = fields.index()
    zero: SSAValue = fields.memref("Z")
    zero_at: SSAValue = fields.index()
    bits: IntegerAttr = fields.attribute(converter=fields.number)
    depth: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(VectorType)

    syntax = _CODES
    effects = READS
    rules = (
        *_RULES,
        is_tile("result"),
        Rule("the tile has a row for each code", lambda x: tile_shape(x.result)[0] == x.depth, "{result} has others"),
    )
    cpu = Text("tile_load_packed", lambda x: f"{x.bits}, {shape_text(x)}")

    def __init__(
        self,
        codes: tuple[SSAValue, SSAValue],
        scale: tuple[SSAValue, SSAValue],
        zero: tuple[SSAValue, SSAValue],
        bits: int,
        shape: tuple[int, int, int],
    ) -> None:
        self.fill(*codes, *scale, *zero, bits, shape[0], result=tile_type(f32, *shape))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        _, columns, lanes = tile_shape(x.op.result.type)
        return _numbers(x, columns, lanes)


@instruction
class TileMultiplyAddPackedOp(Instruction):
    """`tile[i, j, :] += x[x_at + i * row_step + u * step] * weight[u, j, :]` for `u < depth`, with the weights that
    `kernel.tile_load_packed` would load.

    The inner loop of products with few rows, which read each weight from memory once.

    Example: `%t1 = kernel.tile_multiply_add_packed %t, %x[%i] rows %r step %c1 codes %w[%k] scale %s[%j] zero %z[%j]
    {bits = 4 : i64, depth = 8 : i64} : vector<1x2x16xf32>, memref<?xf32>, memref<?xui8>, memref<?xf32>, memref<?xui8>
    -> vector<1x2x16xf32>`
    """

    name = "kernel.tile_multiply_add_packed"

    tile: SSAValue = fields.tile("T")
    x: SSAValue = fields.memref("X")
    x_at: SSAValue = fields.index()
    row_step: SSAValue = fields.index()
    step: SSAValue = fields.index()
    w: SSAValue = fields.memref("W")
    w_at: SSAValue = fields.index()
    scale: SSAValue = fields.memref("S")
    scale_at: SSAValue = fields.index()
    zero: SSAValue = fields.memref("Z")
    zero_at: SSAValue = fields.index()
    bits: IntegerAttr = fields.attribute(converter=fields.number)
    depth: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(VectorType, like="tile")

    syntax = f"$tile `,` $x `[` $x_at `]` `rows` $row_step `step` $step {_CODES}"
    effects = READS
    rules = (*_RULES, is_tile("tile"))
    cpu = Text(
        "tile_multiply_add_packed",
        "{bits}, {depth}",
        operands=("tile", "x", "x_at", "row_step", "step", *_WEIGHTS),
    )

    def __init__(
        self,
        tile: SSAValue,
        x: tuple[SSAValue, SSAValue],
        steps: tuple[SSAValue, SSAValue],
        codes: tuple[SSAValue, SSAValue],
        scale: tuple[SSAValue, SSAValue],
        zero: tuple[SSAValue, SSAValue],
        bits: int,
        depth: int,
    ) -> None:
        self.fill(tile, *x, *steps, *codes, *scale, *zero, bits, depth)

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        _, rows, columns, lanes = x.tile.shape
        i, u = np.ogrid[:rows, : int(x.depth)]
        left = x.x.read(x.x_at[:, None, None] + i * x.row_step[:, None, None] + u * x.step[:, None, None])
        left = left.astype(np.float32)
        return x.tile + np.einsum("nru,nucl->nrcl", left, _numbers(x, columns, lanes))
