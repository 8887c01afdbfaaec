"""Reads the layers of a counted loop as formulas of what it carries, of slices of sequences and of weights."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from mlirt.dialects.constant_values import splat_of
from mlirt.dialects.indexing import GatherMode
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.tensor_types import dims, element_of, rank
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.dialects.trt.unary import UnaryKind, UnaryOp
from mlirt.passes.control_flow.cell_formulas import (
    Activated,
    Formula,
    Invariant,
    Matrix,
    NotACellError,
    Product,
    SliceOfIteration,
    State,
    rows_and_columns,
)
from mlirt.passes.control_flow.iteration_formulas import ITERATION, IterationFormulas
from mlirt.passes.control_flow.region_rewriting import is_outside


class CellReader:
    """The formulas of one loop."""

    def __init__(self, loop: scf.ForOp, ctx: Context) -> None:
        self.loop, self.ctx = loop, ctx
        self.numbers = IterationFormulas(loop, ctx)
        self._known: dict[tuple[SSAValue, int, int], Formula] = {}

    def whole(self, value: SSAValue) -> Formula:
        """The formula of all columns of a value."""
        return self.read(value, 0, rows_and_columns(value)[1])

    def read(self, value: SSAValue, first: int, width: int) -> Formula:
        """The formula of some columns of a value; raises `NotACellError` where there is none."""
        key = (value, first, width)
        if key not in self._known:
            self._known[key] = self._read(value, first, width)
        return self._known[key]

    def _read(self, value: SSAValue, first: int, width: int) -> Formula:
        if is_outside(value, self.loop):
            number = splat_of(value)
            return Formula.of(Invariant(value, first, width)) if number is None else Formula.number(float(number))
        owner = value.owner
        if isinstance(owner, Block):
            if owner is not self.loop.body.block or value is owner.args[0]:
                raise NotACellError("it reads another loop")
            return Formula.of(State(owner.args.index(value) - 1, first, width))
        match owner:
            case ElementwiseOp():
                return self._elementwise(owner, first, width)
            case ActivationOp():
                alpha, beta = owner.alpha.value.data, owner.beta.value.data
                return Formula.of(Activated(owner.kind.data, alpha, beta, self.read(owner.input, first, width)))
            case UnaryOp() if owner.kind.data is UnaryKind.NEG:
                return Formula.number(-1) * self.read(owner.operands[0], first, width)
            case MatrixMultiplyOp():
                return self._product(owner, first, width)
            case GatherOp():
                return Formula.of(self._slice_of_iteration(owner, first, width))
            case SliceOp():
                return self.read(owner.input, self._first_column(owner) + first, width)
            case ConcatenationOp():
                return self._part(owner, first, width)
            case ShuffleOp() | IdentityOp() if _keeps_rows(owner):
                return self.read(owner.operands[0], first, width)
            case _:
                raise NotACellError(f"{owner.name} is no part of a cell")

    def _elementwise(self, op: ElementwiseOp, first: int, width: int) -> Formula:
        left, right = (self._broadcast(value, op.output, first, width) for value in (op.lhs, op.rhs))
        match op.kind.data:
            case ElementwiseKind.SUM:
                return left + right
            case ElementwiseKind.SUB:
                return left + Formula.number(-1) * right
            case ElementwiseKind.PROD:
                return left * right
            case _:
                raise NotACellError(f"{op.kind.data} is no part of a cell")

    def _broadcast(self, value: SSAValue, result: SSAValue, first: int, width: int) -> Formula:
        (rows, columns), wanted = rows_and_columns(value), rows_and_columns(result)
        if (rows, columns) == wanted:
            return self.read(value, first, width)
        if not is_outside(value, self.loop):
            raise NotACellError("it broadcasts what changes from iteration to iteration")
        return self.read(value, 0, 1) if columns == 1 else self.read(value, first, width)

    def _product(self, op: MatrixMultiplyOp, first: int, width: int) -> Formula:
        """Row vectors times a matrix, or a matrix times a vector."""
        operations = op.lhs_op.data, op.rhs_op.data
        if is_outside(op.rhs, self.loop) and operations[0] is not MatrixOperation.TRANSPOSE:
            row, matrix, transposed = op.lhs, op.rhs, operations[1] is MatrixOperation.TRANSPOSE
        elif is_outside(op.lhs, self.loop) and operations[1] is MatrixOperation.VECTOR:
            row, matrix, transposed = op.rhs, op.lhs, operations[0] is not MatrixOperation.TRANSPOSE
        else:
            raise NotACellError("it multiplies two matrices that change")
        if rank(matrix.type) < 2 or any(size != 1 for size in dims(matrix.type)[:-2]):
            raise NotACellError("it multiplies by several matrices")
        if rows_and_columns(row)[0] != rows_and_columns(op.output)[0]:
            raise NotACellError("it multiplies something else than rows")
        total, at = Formula.number(0), 0
        for part in self._parts(row):
            count = rows_and_columns(part)[1]
            chosen = Matrix(matrix, transposed, at, count, first, width)
            total += self._times(self.whole(part), chosen)
            at += count
        return total

    def _parts(self, row: SSAValue) -> list[SSAValue]:
        """The row vectors that are joined to a longer one."""
        op = row.owner
        is_joined = isinstance(op, ConcatenationOp) and op.axis.value.data in (-1, rank(row.type) - 1)
        return list(op.operands) if isinstance(op, ConcatenationOp) and is_joined else [row]

    def _times(self, row: Formula, matrix: Matrix) -> Formula:
        if any(not atoms or any(isinstance(atom, Invariant) for atom in atoms) for atoms, _ in row.terms):
            raise NotACellError("it multiplies a constant row")
        return Formula.sum((frozenset({Product(atoms, matrix)}), number) for atoms, number in row.terms)

    def _slice_of_iteration(self, op: GatherOp, first: int, width: int) -> SliceOfIteration:
        place = self.numbers.number(op.indices)
        plain = op.mode.data is GatherMode.DEFAULT and rank(op.indices.type) == 0
        if place is None or not plain or not is_outside(op.data, self.loop):
            raise NotACellError("it gathers at a place that is no number of the iteration")
        axis = op.axis.value.data % rank(op.data.type)
        for backwards, start in ((False, place - ITERATION), (True, place + ITERATION)):
            if not _mentions_iteration(start):
                return SliceOfIteration(op.data, axis, start, backwards, first, width)
        raise NotACellError("it gathers at a place that does not move by one")

    def _first_column(self, op: SliceOp) -> int:
        """The column at which a part of all rows begins."""
        starts, sizes, strides = op.starts(), op.sizes(), op.strides()
        rows = list(zip(dims(op.input.type), starts, sizes, strides, strict=True))[:-1]
        all_rows = all(start == 0 and size == length and stride == 1 for length, start, size, stride in rows)
        if not all_rows or strides[-1] != 1 or not isinstance(starts[-1], int) or starts[-1] < 0:
            raise NotACellError("it takes something else than columns")
        return starts[-1]

    def _part(self, op: ConcatenationOp, first: int, width: int) -> Formula:
        at = 0
        for part in self._parts(op.output):
            columns = rows_and_columns(part)[1]
            if at <= first and first + width <= at + columns and part is not op.output:
                return self.read(part, first - at, width)
            at += columns
        raise NotACellError("it joins what is no row")


def _keeps_rows(op: ShuffleOp | IdentityOp) -> bool:
    """Whether the result holds the same rows."""
    before, after = op.operands[0], op.results[0]
    if isinstance(op, IdentityOp):
        return element_of(before.type) == element_of(after.type)
    if op.first_transpose is not None or op.second_transpose is not None:
        return False
    return rows_and_columns(before) == rows_and_columns(after)


def _mentions_iteration(size: Dim) -> bool:
    return bool(symbols(size) & symbols(ITERATION))
