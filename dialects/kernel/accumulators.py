"""Rows of the accumulators that the matrix units of a warp leave in registers: what softmax does between two products.

`rows` x `columns` tiles of 16 x 8 accumulators lie as `kernel.mma` documents it: a thread has elements of `2 * rows`
rows, number `2 * i + h` being row `16 * i + 8 * h + lane / 4`, and of each row the columns `8 * j + 2 * (lane % 4)` and
the next.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr, VectorType, f32, i32, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirt.dialects.kernel.buffers import length
from mlirt.dialects.kernel.core import ReduceKind, ReduceKindAttr
from mlirt.dialects.kernel.matrix_unit import MmaKind, MmaKindAttr
from mlirt.dialects.tensor_op import require


def rows_of(positions: int, rows: int) -> list[int]:
    """For each of a thread's accumulators, which of its `2 * rows` rows it belongs to."""
    per_tile_row = positions // rows
    return [2 * (position // per_tile_row) + position % 4 // 2 for position in range(positions)]


def columns_of(positions: int, rows: int) -> list[int]:
    """For each of a thread's accumulators, how far its column is from the thread's first one."""
    per_tile_row = positions // rows
    return [8 * (position % per_tile_row // 4) + position % 2 for position in range(positions)]


class _AccumulatorOp(IRDLOperation):
    """An op on the accumulators in its first operand."""

    rows = prop_def(IntegerAttr)
    irdl_options = (ParsePropInAttrDict(),)

    @property
    def row_count(self) -> int:
        return self.rows.value.data

    def check(self, accumulators: SSAValue, *per_row: SSAValue) -> None:
        require(self.row_count > 0, f"{self.name}: {self.row_count} rows of tiles")
        require(
            length(accumulators) % (4 * self.row_count) == 0,
            f"{self.name}: {accumulators.type} is no {self.row_count} rows of tiles",
        )
        for value in per_row:
            expected = 2 * self.row_count
            require(length(value) == expected, f"{self.name}: {expected} rows for each thread, not {value.type}")


@irdl_op_definition
class ReduceRowsOp(_AccumulatorOp):
    """The sum or the largest of a thread's own accumulators in each of its rows.

    Example: `%m = kernel.reduce_rows max %s {rows = 1 : i64} : vector<32xf32> -> vector<2xf32>`
    """

    name = "kernel.reduce_rows"

    kind = prop_def(ReduceKindAttr)
    accumulators = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$kind $accumulators attr-dict `:` type($accumulators) `->` type($result)"

    def __init__(self, kind: ReduceKind, accumulators: SSAValue, rows: int) -> None:
        super().__init__(
            operands=[accumulators],
            properties={"kind": ReduceKindAttr(kind), "rows": IntegerAttr(rows, i64)},
            result_types=[VectorType(f32, [2 * rows])],
        )

    def verify_(self) -> None:
        self.check(self.accumulators, self.result)
        known = (ReduceKind.ADD, ReduceKind.MAX)
        require(self.kind.data in known, f"{self.name}: adds or takes the largest, not {self.kind.data}")


@irdl_op_definition
class ScaleRowsOp(_AccumulatorOp):
    """Each accumulator times its row's factor.

    Example: `%b = kernel.scale_rows %a, %f {rows = 1 : i64} : vector<32xf32>, vector<2xf32> -> vector<32xf32>`
    """

    name = "kernel.scale_rows"

    accumulators = operand_def(VectorType)
    factors = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$accumulators `,` $factors attr-dict `:` type($accumulators) `,` type($factors) `->` type($result)"
    )

    def __init__(self, accumulators: SSAValue, factors: SSAValue, rows: int) -> None:
        super().__init__(
            operands=[accumulators, factors],
            properties={"rows": IntegerAttr(rows, i64)},
            result_types=[accumulators.type],
        )

    def verify_(self) -> None:
        self.check(self.accumulators, self.factors)


@irdl_op_definition
class ExponentialRowsOp(_AccumulatorOp):
    """`2 ** (scale * (a - shift))` of each accumulator with its row's shift, to about 22 bits.

    Example: `%p = kernel.exponential_rows %s, %m, %c {rows = 1 : i64}
    : vector<32xf32>, vector<2xf32> -> vector<32xf32>`
    """

    name = "kernel.exponential_rows"

    accumulators = operand_def(VectorType)
    shifts = operand_def(VectorType)
    scale = operand_def(f32)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$accumulators `,` $shifts `,` $scale attr-dict `:` type($accumulators) `,` type($shifts) `->` type($result)"
    )

    def __init__(self, accumulators: SSAValue, shifts: SSAValue, scale: SSAValue, rows: int) -> None:
        super().__init__(
            operands=[accumulators, shifts, scale],
            properties={"rows": IntegerAttr(rows, i64)},
            result_types=[accumulators.type],
        )

    def verify_(self) -> None:
        self.check(self.accumulators, self.shifts)


@irdl_op_definition
class LimitColumnsOp(_AccumulatorOp):
    """-inf in place of the accumulators from a column on: of each row, only columns below its limit stay.

    `first` is the column of the thread's first accumulator.

    Example: `%t = kernel.limit_columns %s, %first, %limits {rows = 1 : i64}
    : vector<32xf32>, vector<2xindex> -> vector<32xf32>`
    """

    name = "kernel.limit_columns"

    accumulators = operand_def(VectorType)
    first = operand_def(IndexType())
    limits = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$accumulators `,` $first `,` $limits attr-dict `:` type($accumulators) `,` type($limits) `->` type($result)"
    )

    def __init__(self, accumulators: SSAValue, first: SSAValue, limits: SSAValue, rows: int) -> None:
        super().__init__(
            operands=[accumulators, first, limits],
            properties={"rows": IntegerAttr(rows, i64)},
            result_types=[accumulators.type],
        )

    def verify_(self) -> None:
        self.check(self.accumulators, self.limits)


@irdl_op_definition
class PackAccumulatorsOp(_AccumulatorOp):
    """16 columns of accumulators, rounded, as the left fragments of the next product.

    `step` says which: columns `16 * step` and following.

    Example: `%a = kernel.pack_accumulators f16 %p {rows = 1 : i64, step = 0 : i64} : vector<32xf32> -> vector<4xi32>`
    """

    name = "kernel.pack_accumulators"

    kind = prop_def(MmaKindAttr)
    accumulators = operand_def(VectorType)
    step = prop_def(IntegerAttr)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$kind $accumulators attr-dict `:` type($accumulators) `->` type($result)"

    def __init__(self, kind: MmaKind, accumulators: SSAValue, rows: int, step: int) -> None:
        super().__init__(
            operands=[accumulators],
            properties={
                "kind": MmaKindAttr(kind),
                "rows": IntegerAttr(rows, i64),
                "step": IntegerAttr(step, i64),
            },
            result_types=[VectorType(i32, [4 * rows])],
        )

    def positions(self) -> list[int]:
        """The accumulators that are packed, two after each other into one register."""
        per_tile_row, first = length(self.accumulators) // self.row_count, 8 * self.step.value.data
        return [i * per_tile_row + first + k for i in range(self.row_count) for k in range(8)]

    def verify_(self) -> None:
        self.check(self.accumulators)
        require(self.kind.data in (MmaKind.F16, MmaKind.BF16), f"{self.name}: packs f16 or bf16, not {self.kind.data}")
        most = length(self.accumulators) // (8 * self.row_count)
        step = self.step.value.data
        require(0 <= step < most, f"{self.name}: there is no step {step} of {most}")
