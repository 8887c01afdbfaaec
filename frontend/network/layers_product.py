"""Layers that multiply matrices: fully connected, matrix multiply, Einstein sums."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import element_of, is_float, rank
from mlirt.dialects.trt.einsum import EinsumOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import EnumSetting, IntSetting, Setting, WeightsSetting
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.layer_enums import LayerType, MatrixOperation

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor
    from mlirt.tensorrt.weights import Array, Weights


class IFullyConnectedLayer(ILayer):
    """Weights times the last three dimensions as one (tensorrt-features.md#1.12)."""

    OP, KIND, TYPE, INPUTS = FullyConnectedOp, "Fully Connected", LayerType.FULLY_CONNECTED, 3
    num_output_channels = IntSetting(0)
    kernel = WeightsSetting()
    bias = WeightsSetting()

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        x, count = ir.input(0), self.num_output_channels
        kernel, bias = ir.maybe_input(1), ir.maybe_input(2)
        if kernel is None:
            kernel = ir.weights(self.kernel, [count, self.kernel.size // max(count, 1)], x, "kernel")
        if bias is None and self.bias.size:
            bias = ir.weights(self.bias, [count], x, "bias")
        return ir.op(FullyConnectedOp, [x, kernel, bias])


class IMatrixMultiplyLayer(ILayer):
    """The product of two matrices, or stacks of them (tensorrt-features.md#1.22a, 1.22b)."""

    OP, KIND, TYPE, INPUTS = MatrixMultiplyOp, "Matrix Multiply", LayerType.MATRIX_MULTIPLY, 2
    op0 = EnumSetting(MatrixOperation.NONE, "lhs_op")
    op1 = EnumSetting(MatrixOperation.NONE, "rhs_op")


class IEinsumLayer(ILayer):
    """A sum over products by Einstein's notation (tensorrt-features.md#1.9a, 1.9b)."""

    OP, KIND, TYPE, INPUTS = EinsumOp, "Einsum", LayerType.EINSUM, 2
    equation = Setting[str]("")

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        values = [value for value in ir.inputs() if value is not None]
        equation = self.equation.replace(" ", "")
        self._check(equation, values)
        return ir.op(EinsumOp, [values], {"equation": equation})

    def _check(self, equation: str, values: Sequence[SSAValue]) -> None:
        operands = equation.partition("->")[0].split(",")
        if "." in equation:
            raise InvalidModelError(f"{self.name}: ellipsis is not permitted in Einsum equation")
        if any(len(set(labels)) < len(labels) for labels in operands):
            raise InvalidModelError(f"{self.name}: Diagonal operations are not permitted in Einsum equation")
        if not all(label in ascii_lowercase for labels in operands for label in labels):
            raise InvalidModelError(f"{self.name}: labels of an Einsum equation are lower-case ASCII letters")
        if not all(is_float(element_of(value.type)) for value in values):
            raise InvalidModelError(f"{self.name}: einsum requires inputs of type Float or Half")
        if len(operands) > 2:
            raise InvalidModelError(f"{self.name}: einsum does not support more than two inputs.")
        for k, (labels, value) in enumerate(zip(operands, values, strict=False)):
            if len(labels) != rank(value.type):
                raise InvalidModelError(
                    f"{self.name}: number of subscripts for input operand {k} in the equation is not equal to the rank "
                    "of corresponding input tensor"
                )


class ProductMethods(Methods):
    """`add_fully_connected`, `add_matrix_multiply`, `add_einsum`."""

    def add_fully_connected(
        self, input: ITensor, num_outputs: int, kernel: Weights | Array, bias: Weights | Array | None = None
    ) -> IFullyConnectedLayer:
        deprecated("add_matrix_multiply")
        weights = {"kernel": kernel, "bias": bias}
        return self.graph.add(IFullyConnectedLayer, [input], settings={"num_output_channels": num_outputs, **weights})

    def add_matrix_multiply(
        self, input0: ITensor, op0: MatrixOperation, input1: ITensor, op1: MatrixOperation
    ) -> IMatrixMultiplyLayer:
        return self.graph.add(IMatrixMultiplyLayer, [input0, input1], settings={"op0": op0, "op1": op1})

    def add_einsum(self, inputs: Sequence[ITensor], equation: str) -> IEinsumLayer:
        return self.graph.add(IEinsumLayer, list(inputs), settings={"equation": equation})
