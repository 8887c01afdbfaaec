"""Writes a recurrent cell of a loop as one layer over whole sequences, in front of the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DenseArrayBase, IntegerAttr, f64, i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.symbolic import Dim, maximum
from mlirt.dialects.tensor_types import dims, element_of, numpy_dtype, rank
from mlirt.dialects.trt.activation import ActivationKindAttr
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.elementwise import ElementwiseKind
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.rnn import RnnCellAttr, RnnOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.passes.control_flow.cell_formulas import (
    Invariant,
    Matrix,
    NotACellError,
    Product,
    SliceOfIteration,
    rows_and_columns,
)
from mlirt.passes.control_flow.cell_patterns import Bias, Cell, Gate, Input
from mlirt.passes.layer_builder import LayerBuilder


@dataclass(frozen=True)
class Sequences:
    """The iterations of a loop as steps of sequences: how many there are, and for how many sequences."""

    steps: Dim
    batch: Dim
    backwards: bool


class CellWriter:
    """Appends the layers that a cell becomes; `states` are the initial ones."""

    def __init__(self, cell: Cell, made: LayerBuilder, sequences: Sequences, states: Sequence[SSAValue]) -> None:
        self.cell, self.made, self.sequences, self.states = cell, made, sequences, states
        self.element = element_of(states[0].type)

    def write(self) -> list[SSAValue]:
        """The outputs [T, N, H] and the last states [N, H]."""
        cell, made = self.cell, self.made
        recurrent = self._joined([self._matrices(gate.recurrent) for gate in cell.gates], 0)
        whole = self._one_sequence()
        weights = bias = recurrent_bias = None
        if whole is None:
            x = self._joined([self._projected(gate) for gate in cell.gates], 2)
        else:
            x = self._sequence(whole)
            weights = self._joined([self._matrices(_input_matrices(gate)) for gate in cell.gates], 0)
            bias = self._biases([gate.biases for gate in cell.gates])
        recurrent_bias = self._biases([gate.recurrent_biases for gate in cell.gates])
        initial = [made.shaped(state, [self.sequences.batch, cell.size]) for state in self.states]
        memory = initial[1] if len(initial) > 1 else None
        operands = [x, recurrent, weights, bias, recurrent_bias, initial[0], memory, None, None, None]
        return list(made.insert(RnnOp.build_inferred(operands, self._properties())).results)

    def _properties(self) -> dict[str, Attribute]:
        cell = self.cell
        return {
            "cell": RnnCellAttr(cell.kind),
            "activations": ArrayAttr([ActivationKindAttr(kind) for kind, _, _ in cell.functions]),
            "alphas": DenseArrayBase.from_list(f64, [alpha for _, alpha, _ in cell.functions]),
            "betas": DenseArrayBase.from_list(f64, [beta for _, _, beta in cell.functions]),
            "reverse": BoolAttr.from_bool(self.sequences.backwards),
            "linear_before_reset": BoolAttr.from_bool(cell.linear_before_reset),
            "input_forget": BoolAttr.from_bool(cell.input_forget),
        }

    # Inputs.

    def _one_sequence(self) -> SliceOfIteration | None:
        """The input of the layer, where each gate multiplies nothing but the same one by weights, and adds vectors."""
        found = self.cell.slices()
        one_each = all(len(gate.inputs) == 1 and isinstance(gate.inputs[0][0], Product) for gate in self.cell.gates)
        vectors = all(self._is_vector(bias) for gate in self.cell.gates for bias, _ in gate.biases)
        return found[0] if len(found) == 1 and one_each and vectors else None

    def _is_vector(self, bias: Invariant | None) -> bool:
        return bias is None or rows_and_columns(bias.value)[0] == 1

    def _sequence(self, slice_: SliceOfIteration) -> SSAValue:
        """The steps of a sequence as [T, N, E]."""
        made, value = self.made, slice_.sequence
        order = [slice_.axis, *(axis for axis in range(rank(value.type)) if axis != slice_.axis)]
        value = made.transposed(value, order)
        length, columns = dims(value.type)[0], dims(value.type)[-1] if rank(value.type) > 1 else 1
        value = made.shaped(value, [length, self.sequences.batch, columns])
        first = slice_.start - self.sequences.steps + 1 if slice_.backwards else slice_.start
        if (first, length) != (0, self.sequences.steps):
            # Shapes must make sense even where there are too many iterations, so that the check in front can say so.
            value = self._part(value, 0, maximum(first, 0), self.sequences.steps)
        if (slice_.first, slice_.width) != (0, columns):
            value = self._part(value, 2, slice_.first, slice_.width)
        return value

    def _projected(self, gate: Gate) -> SSAValue:
        """What input and bias give a gate in all steps, [T, N, H]."""
        total = self._sum([self._projection(one) for one in gate.inputs])
        for bias, number in gate.biases:
            total = self.made.binary(ElementwiseKind.SUM, total, self._scaled(self._rows(bias), number))
        return total

    def _projection(self, given: Input) -> SSAValue:
        value, number = given
        if isinstance(value, SliceOfIteration):
            return self._scaled(self._sequence(value), number)
        (slice_,) = value.factors
        assert isinstance(slice_, SliceOfIteration)
        rows = self._matrices([(value.matrix, number)])
        transposed = self.made.shaped(self.made.transposed(rows, [1, 0]), [1, *reversed(dims(rows.type))])
        return self.made.layer(MatrixMultiplyOp, [self._sequence(slice_), transposed])

    # Weights and biases.

    def _matrices(self, matrices: Sequence[tuple[Matrix, float]]) -> SSAValue:
        """The sum of matrices, with a row for each of their columns."""
        return self._sum([self._scaled(self._transposed(matrix), number) for matrix, number in matrices])

    def _transposed(self, matrix: Matrix) -> SSAValue:
        made, value = self.made, matrix.value
        value = made.shaped(value, dims(value.type)[-2:])
        value = value if matrix.transposed else made.transposed(value, [1, 0])
        for axis, (first, size) in enumerate([(matrix.column, matrix.columns), (matrix.row, matrix.rows)]):
            if (first, size) != (0, dims(value.type)[axis]):
                value = self._part(value, axis, first, size)
        return value

    def _biases(self, biases: Sequence[Sequence[Bias]]) -> SSAValue | None:
        """For each gate a vector, behind one another; None where no gate has any."""
        size = self.cell.size
        if not any(biases):
            return None
        vectors: list[SSAValue] = []
        for given in biases:
            parts = [self._scaled(self._rows(bias), number) for bias, number in given]
            total = self._sum([self._number(0.0, [1, 1, size]), *parts])
            vectors.append(self.made.shaped(total, [size]))
        return self._joined(vectors, 0)

    def _rows(self, bias: Invariant | None) -> SSAValue:
        """A bias as [1, 1 or N, 1 or H]."""
        if bias is None:
            return self._number(1.0, [1, 1, 1])
        rows, columns = rows_and_columns(bias.value)
        value = self.made.shaped(bias.value, [1, rows, columns])
        return value if (bias.first, bias.width) == (0, columns) else self._part(value, 2, bias.first, bias.width)

    # Arithmetic.

    def _scaled(self, value: SSAValue, number: float) -> SSAValue:
        if number == 1:
            return value
        factor = self._number(number, [1] * rank(value.type))
        return self.made.binary(ElementwiseKind.PROD, value, factor)

    def _number(self, number: float, shape: Sequence[int]) -> SSAValue:
        import numpy as np

        return self.made.constant(np.full(shape, number, numpy_dtype(self.element)))

    def _sum(self, values: Sequence[SSAValue]) -> SSAValue:
        return reduce(lambda left, right: self.made.binary(ElementwiseKind.SUM, left, right), values)

    def _joined(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        if len(values) == 1:
            return values[0]
        joined = ConcatenationOp.build_inferred([list(values)], {"axis": IntegerAttr(axis, i64)})
        return self.made.value(joined)

    def _part(self, value: SSAValue, axis: int, first: Dim, size: Dim) -> SSAValue:
        sizes, starts = list(dims(value.type)), list[Dim]([0] * rank(value.type))
        sizes[axis], starts[axis] = size, first
        ones = DenseArrayBase.from_list(i64, [1] * len(sizes))
        properties: dict[str, Attribute] = {"start": DimsAttr.of(starts), "size": DimsAttr.of(sizes), "stride": ones}
        return self.made.layer(SliceOp, [value, None, None, None, None], properties)


def _input_matrices(gate: Gate) -> list[tuple[Matrix, float]]:
    made: list[tuple[Matrix, float]] = []
    for value, number in gate.inputs:
        if not isinstance(value, Product):
            raise NotACellError("an input has no weights")
        made.append((value.matrix, number))
    return made
