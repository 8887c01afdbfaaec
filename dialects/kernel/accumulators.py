"""Rows of the accumulators that the matrix units of a warp leave in registers: what softmax does between two products.

`rows` x `columns` tiles of 16 x 8 accumulators lie as `kernel.mma` documents it: a thread has elements of `2 * rows`
rows, number `2 * i + h` being row `16 * i + 8 * h + lane / 4`, and of each row the columns `8 * j + 2 * (lane % 4)` and
the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr, VectorType, f32, i32
from xdsl.ir import OpResult, SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.core import ReduceKind, ReduceKindAttr
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import PURE, Rule, Text
from mlirt.dialects.kernel.matrix_unit import MmaKind, MmaKindAttr

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site


def rows_of(positions: int, rows: int) -> list[int]:
    """For each of a thread's accumulators, which of its `2 * rows` rows it belongs to."""
    per_tile_row = positions // rows
    return [2 * (position // per_tile_row) + position % 4 // 2 for position in range(positions)]


def columns_of(positions: int, rows: int) -> list[int]:
    """For each of a thread's accumulators, how far its column is from the thread's first one."""
    per_tile_row = positions // rows
    return [8 * (position % per_tile_row // 4) + position % 2 for position in range(positions)]


_WHOLE_TILES = Rule(
    "the accumulators are `rows` rows of tiles",
    lambda x: x.rows > 0 and x.n % (4 * x.rows) == 0,
    "{accumulators} is no {rows} rows of tiles",
)


def _per_row(name: str) -> Rule:
    return Rule(
        f"there are {name} for `2 * rows` rows",
        lambda x: getattr(x, name).get_shape()[0] == 2 * x.rows,
        lambda x: f"{2 * x.rows} rows for each thread, not {getattr(x, name)}",
    )


def _text(word: str) -> Text:
    return Text(word, lambda x: f"{x.n}, {rows_of(x.n, x.rows)}", hint=word.partition("_")[0])


def _in_rows(x: Any, per_row: Any) -> Any:
    """For each accumulator the number of its row."""
    return per_row[:, rows_of(x.accumulators.shape[1], x.rows)]


@instruction
class ReduceRowsOp(Instruction):
    """The sum or the largest of a thread's own accumulators in each of its rows.

    Example: `%m = kernel.reduce_rows max %s {rows = 1 : i64} : vector<32xf32> -> vector<2xf32>`
    """

    name = "kernel.reduce_rows"

    kind: ReduceKindAttr = fields.attribute(converter=ReduceKindAttr)
    accumulators: SSAValue = fields.fragment(length="n")
    rows: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(VectorType, like=lambda x: VectorType(f32, [2 * x.rows]))

    syntax = "$kind $accumulators"
    effects = PURE
    rules = (
        _WHOLE_TILES,
        Rule(
            "it adds or takes the largest",
            lambda x: x.kind in (ReduceKind.ADD, ReduceKind.MAX),
            "adds or takes the largest, not {kind}",
        ),
    )
    cuda = Text("reduce_rows", lambda x: f'"{x.kind}", {x.n}, {rows_of(x.n, x.rows)}', hint="over_rows")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        rows = np.array(rows_of(x.accumulators.shape[1], x.rows))
        combine: Any = np.add if x.kind is ReduceKind.ADD else np.fmax
        parts = [combine.reduce(x.accumulators[:, rows == row], axis=1) for row in range(2 * x.rows)]
        return np.stack(parts, axis=1)


@instruction
class ScaleRowsOp(Instruction):
    """Each accumulator times its row's factor.

    Example: `%b = kernel.scale_rows %a, %f {rows = 1 : i64} : vector<32xf32>, vector<2xf32> -> vector<32xf32>`
    """

    name = "kernel.scale_rows"

    accumulators: SSAValue = fields.fragment(length="n")
    factors: SSAValue = fields.fragment()
    rows: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(VectorType, like="accumulators")

    syntax = "$accumulators `,` $factors"
    effects = PURE
    rules = (_WHOLE_TILES, _per_row("factors"))
    cuda = _text("scale_rows")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        return x.accumulators * _in_rows(x, x.factors)


@instruction
class ExponentialRowsOp(Instruction):
    """`2 ** (scale * (a - shift))` of each accumulator with its row's shift, to about 22 bits.

    Example: `%p = kernel.exponential_rows %s, %m, %c {rows = 1 : i64}
    : vector<32xf32>, vector<2xf32> -> vector<32xf32>`
    """

    name = "kernel.exponential_rows"

    accumulators: SSAValue = fields.fragment(length="n")
    shifts: SSAValue = fields.fragment()
    scale: SSAValue = fields.scalar(constraint=f32)
    rows: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(VectorType, like="accumulators")

    syntax = "$accumulators `,` $shifts `,` $scale"
    effects = PURE
    rules = (_WHOLE_TILES, _per_row("shifts"))
    cuda = _text("exponential_rows")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        scale = x.scale[:, None]
        return np.exp2(scale * x.accumulators - scale * _in_rows(x, x.shifts))


@instruction
class LimitColumnsOp(Instruction):
    """-inf in place of the accumulators from a column on: of each row, only columns below its limit stay.

    `first` is the column of the thread's first accumulator.

    Example: `%t = kernel.limit_columns %s, %first, %limits {rows = 1 : i64}
    : vector<32xf32>, vector<2xindex> -> vector<32xf32>`
    """

    name = "kernel.limit_columns"

    accumulators: SSAValue = fields.fragment(length="n")
    first: SSAValue = fields.index()
    limits: SSAValue = fields.fragment()
    rows: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(VectorType, like="accumulators")

    syntax = "$accumulators `,` $first `,` $limits"
    effects = PURE
    rules = (_WHOLE_TILES, _per_row("limits"))
    cuda = Text("limit_columns", lambda x: f"{x.n}, {rows_of(x.n, x.rows)}, {columns_of(x.n, x.rows)}", hint="limit")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        column = x.first[:, None] + np.array(columns_of(x.accumulators.shape[1], x.rows))
        return np.where(column < _in_rows(x, x.limits), x.accumulators, np.float32(-np.inf))


def _packed(x: Any) -> list[int]:
    """The accumulators that are packed, two after each other into one register."""
    per_tile_row, first = x.n // x.rows, 8 * x.step
    return [i * per_tile_row + first + k for i in range(x.rows) for k in range(8)]


@instruction
class PackAccumulatorsOp(Instruction):
    """16 columns of accumulators, rounded, as the left fragments of the next product.

    `step` says which: columns `16 * step` and following.

    Example: `%a = kernel.pack_accumulators f16 %p {rows = 1 : i64, step = 0 : i64} : vector<32xf32> -> vector<4xi32>`
    """

    name = "kernel.pack_accumulators"

    kind: MmaKindAttr = fields.attribute(converter=MmaKindAttr)
    accumulators: SSAValue = fields.fragment(length="n")
    rows: IntegerAttr = fields.attribute(converter=fields.number)
    step: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(VectorType, like=lambda x: VectorType(i32, [4 * x.rows]))

    syntax = "$kind $accumulators"
    effects = PURE
    rules = (
        _WHOLE_TILES,
        Rule("it packs f16 or bf16", lambda x: x.kind in (MmaKind.F16, MmaKind.BF16), "packs f16 or bf16, not {kind}"),
        Rule(
            "`step` is one of the accumulators' columns",
            lambda x: 0 <= x.step < x.n // (8 * x.rows),
            lambda x: f"there is no step {x.step} of {x.n // (8 * x.rows)}",
        ),
    )
    cuda = Text("pack_accumulators", lambda x: f'"{x.kind}", {x.n}, {_packed(x)}', hint="pack")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import ml_dtypes
        import numpy as np

        dtype = np.dtype(np.float16) if x.kind is MmaKind.F16 else np.dtype(ml_dtypes.bfloat16)
        return np.ascontiguousarray(x.accumulators[:, _packed(x)].astype(dtype)).view(np.int32)
