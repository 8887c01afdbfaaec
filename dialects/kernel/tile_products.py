"""Register tiles that take up what lies in memory: products, dot products of int8, extremes of windows.

They are one instruction: each vector `tile[i, j, :]` becomes a combination of itself with what row `i` of `x` and a
panel of weights have for it. Rows from number `rows` on read what the last row before them reads, so that nothing
beyond the edge is touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr, IntegerType, Signedness, UnitAttr, VectorType, f16, f32, i8, i32
from xdsl.ir import OpResult, SSAValue

from mlirt.dialects.combine import COMBINES, ReduceKind
from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.core import ReduceKindAttr
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import READS, Rule, Text
from mlirt.dialects.kernel.tile import is_tile

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

# Bytes whose products fall into one lane.
FOUR = 4
# What makes uint8 signed when it is taken off.
SIGNED = 128
# Features of processors that have an instruction for `kernel.tile_dot_add`.
INT8_PRODUCTS = frozenset({"avx512vnni", "avxvnni", "dotprod", "i8mm"})
# Features of processors that have one for `kernel.tile_multiply_add` with `halves`, on vectors of NEON alone.
HALF_PRODUCTS, NEON_BITS = frozenset({"fp16fml"}), 128
_UNSIGNED = IntegerType(8, Signedness.UNSIGNED)
_FROM_MEMORY = ("tile", "x", "x_at", "row_step")
_ROWS = "$tile `,` $x `[` $x_at `]` `rows` $row_step (`first` $rows^)?"
_WEIGHTS = "`,` $w `[` $w_at `]`"


class _TileUpdate(Instruction):
    tile: SSAValue = fields.tile("T")
    x: SSAValue = fields.memref("X")
    x_at: SSAValue = fields.index()
    row_step: SSAValue = fields.index()
    result: OpResult = fields.result(VectorType, like="tile")

    effects = READS
    rules = (is_tile("tile"),)


def _row_starts(x: Any) -> Any:
    """Where each row of `x` starts: one row for each active lane."""
    import numpy as np

    count: int = x.tile.shape[1]
    row: Any = np.arange(count)
    row = row if x.rows is None else np.minimum(row, x.rows[:, None] - 1)
    return x.x_at[:, None] + row * x.row_step[:, None]


def _vectors(x: Any) -> Any:
    """What lies in memory for each vector of the tile."""
    import numpy as np

    _, rows, columns, lanes = x.tile.shape
    found = x.x.read(_row_starts(x)[:, :, None] + np.arange(columns * lanes))
    return found.reshape(-1, rows, columns, lanes).astype(x.tile.dtype)


def _weights(x: Any, count: int) -> Any:
    import numpy as np

    return x.w.read(x.w_at[:, None] + np.arange(count))


def _multiplies_halves(x: Any) -> bool:
    return not x.halves or (x.T.type, x.X.type, x.W.type) == (f32, f32, f16)


@instruction
class TileMultiplyAddOp(_TileUpdate):
    """`tile[i, j, :] += x[x_at + i * row_step + u * step] * w[w_at + (u * columns + j) * lanes + :]` for `u < depth`.

    The inner loop of matrix products and convolutions: `w` is packed so that one step's vectors lie side by side. Rows
    from number `rows` on read what the last row before them reads, so that nothing beyond the edge is touched. With
    `halves` the numbers of `x` are rounded to float16, for processors that add products of halves to float32.

    Example: `%t1 = kernel.tile_multiply_add %t, %x[%i] rows %s first %n step %c1, %w[%k] {depth = 4 : i64}
    : vector<14x2x16xf32>, memref<?xf32>, memref<?xf32> -> vector<14x2x16xf32>`
    """

    name = "kernel.tile_multiply_add"

    step: SSAValue = fields.index()
    w: SSAValue = fields.memref("W")
    w_at: SSAValue = fields.index()
    depth: IntegerAttr = fields.attribute(converter=fields.number)
    rows: SSAValue | None = fields.index(default=None)
    halves: UnitAttr | None = fields.attribute(converter=fields.unit, default=None)

    syntax = f"{_ROWS} `step` $step {_WEIGHTS}"
    rules = (
        is_tile("tile"),
        Rule("with `halves` the tile and `x` have f32, `w` f16", _multiplies_halves, "has no halves to multiply"),
    )
    cpu = Text(
        lambda x: "tile_multiply_add_halves" if x.halves else "tile_multiply_add",
        "{depth}",
        operands=(*_FROM_MEMORY, "step", "w", "w_at"),
        limits=("rows",),
        words=("tile_multiply_add", "tile_multiply_add_halves"),
    )

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        _, _, columns, lanes = x.tile.shape
        left = x.x.read(_row_starts(x)[:, :, None] + np.arange(int(x.depth)) * x.step[:, None, None])
        right = _weights(x, x.depth * columns * lanes).reshape(-1, x.depth, columns, lanes)
        kept = x.tile.dtype
        left = left.astype(np.float16) if x.halves else left
        return x.tile + np.einsum("nru,nucl->nrcl", left.astype(kept), right.astype(kept))


@instruction
class TileMultiplyAddLanesOp(_TileUpdate):
    """`tile[i, j, :] += x[x_at + i * row_step + j * lanes + :] * w[w_at + j * lanes + :]`, a step of a
    depthwise convolution; `rows` as in `kernel.tile_multiply_add`.

    Example: `%t1 = kernel.tile_multiply_add_lanes %t, %x[%i] rows %s, %w[%k]
    : vector<8x1x16xf32>, memref<?xf32>, memref<?xf32> -> vector<8x1x16xf32>`
    """

    name = "kernel.tile_multiply_add_lanes"

    w: SSAValue = fields.memref("W")
    w_at: SSAValue = fields.index()
    rows: SSAValue | None = fields.index(default=None)

    syntax = f"{_ROWS} {_WEIGHTS}"
    cpu = Text("tile_multiply_add_lanes", operands=(*_FROM_MEMORY, "w", "w_at"), limits=("rows",))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        _, _, columns, lanes = x.tile.shape
        right = _weights(x, columns * lanes).reshape(-1, 1, columns, lanes)
        return x.tile + _vectors(x) * right.astype(x.tile.dtype)


@instruction
class TileDotAddOp(_TileUpdate):
    """`tile[i, j, l] += sum over b < 4 of (x[x_at + i * row_step + 4 * u + b] - offset)
    * w[w_at + 4 * ((u * columns + j) * lanes + l) + b]` for `u < depth`, exactly.

    The inner loop of quantised products and convolutions, on packed int8 (VNNI): the four weights of a lane lie side by
    side. Of the last four bytes of `x` only the first `last` are read, the others count as zero; rows from number
    `rows` on read what the last row before them reads. An `offset` of 128 makes the numbers of `x` signed, for
    processors that multiply such alone; the tile starts with what that takes off.

    Example: `%t1 = kernel.tile_dot_add %t, %x[%i] rows %s first %n, %w[%k] {depth = 4 : i64}
    : vector<14x2x16xi32>, memref<?xui8>, memref<?xi8> -> vector<14x2x16xi32>`
    """

    name = "kernel.tile_dot_add"

    w: SSAValue = fields.memref("W")
    w_at: SSAValue = fields.index()
    depth: IntegerAttr = fields.attribute(converter=fields.number)
    rows: SSAValue | None = fields.index(default=None)
    last: IntegerAttr = fields.attribute(converter=fields.number, default=FOUR)
    offset: IntegerAttr = fields.attribute(converter=fields.number, default=0)

    syntax = f"{_ROWS} {_WEIGHTS}"
    rules = (
        is_tile("tile"),
        Rule(
            "the tile has i32, `x` ui8 and `w` i8",
            lambda x: (x.T.type, x.X.type, x.W.type) == (i32, _UNSIGNED, i8),
            "adds ui8 times i8 to i32, not {T.type}, {X.type}, {W.type}",
        ),
        Rule(
            "`last` is from 1 to 4", lambda x: 1 <= x.last <= FOUR, lambda x: f"{x.last} of {FOUR} bytes cannot be read"
        ),
        Rule("`offset` is 0 or 128", lambda x: x.offset in (0, SIGNED), lambda x: f"the offset {x.offset} is unknown"),
    )
    cpu = Text(
        lambda x: "tile_dot_add_signed" if x.offset else "tile_dot_add",
        "{depth}, {last}",
        operands=(*_FROM_MEMORY, "w", "w_at"),
        limits=("rows",),
        words=("tile_dot_add", "tile_dot_add_signed"),
    )

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        _, rows, columns, lanes = x.tile.shape
        b = np.arange(FOUR * int(x.depth))
        left = x.x.read(_row_starts(x)[:, :, None] + b, b < FOUR * (x.depth - 1) + x.last)
        left = left.reshape(-1, rows, x.depth, FOUR).astype(np.int32) - int(x.offset)
        right = _weights(x, FOUR * x.depth * columns * lanes).reshape(-1, x.depth, columns, lanes, FOUR)
        return x.tile + np.einsum("nrub,nuclb->nrcl", left, right.astype(np.int32))


_ARITHMETIC = (ReduceKind.ADD, ReduceKind.MUL, ReduceKind.MAX, ReduceKind.MIN)
_COMBINERS = {kind: COMBINES[kind].function for kind in _ARITHMETIC}
"""What generated text and NumPy call a kind."""


@instruction
class TileCombineOp(_TileUpdate):
    """`tile[i, j, :] = kind(tile[i, j, :], x[x_at + i * row_step + j * lanes + :])`, the step of a pooling window;
    `rows` as in `kernel.tile_multiply_add`.

    Example: `%t1 = kernel.tile_combine max %t, %x[%i] rows %s
    : vector<8x1x16xf32>, memref<?xf32> -> vector<8x1x16xf32>`
    """

    name = "kernel.tile_combine"

    kind: ReduceKindAttr = fields.attribute(converter=ReduceKindAttr)
    rows: SSAValue | None = fields.index(default=None)

    syntax = f"$kind {_ROWS}"
    rules = (is_tile("tile"), Rule("it adds, multiplies or finds extremes", lambda x: x.kind in _COMBINERS))
    cpu = Text(
        lambda x: f"tile_{_COMBINERS[x.kind]}",
        operands=_FROM_MEMORY,
        limits=("rows",),
        words=[f"tile_{word}" for word in _COMBINERS.values()],
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
        self.fill(tile, x, x_at, row_step, kind, rows)

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        return getattr(np, _COMBINERS[x.kind])(x.tile, _vectors(x))
