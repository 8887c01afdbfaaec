"""A fully connected layer over the last three axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.length_requirements import LengthRequirement, equal
from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, numpy_dtype, rank, tensor
from mlirt.dialects.trt.int8_products import check_products, sum_element
from mlirt.dialects.trt.operand_checks import shape_text

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class FullyConnectedOp(TensorOp):
    """y[.., k, 0, 0] = bias[k] + sum over j of kernel[k, j] x[.., j], the last three axes flat
    (tensorrt-features.md#1.12).

    Bytes (i8 or ui8) with a kernel of i8 give the exact sum as i32.

    C1: all operands have one element type, not boolean; only the bias of half-precision ones may be float32; bytes have
    a kernel of i8 and a bias of i32. C2: the input has rank 3 or more. C3: the kernel is 2-D, its rows are as long as
    the last three axes together. C4: the bias is 1-D with one value per row.

    Example: `%y = trt.fully_connected %x, %w : (tensor<2x3x4x4xf32>, tensor<10x48xf32>) -> tensor<2x10x1x1xf32>`
    """

    name = "trt.fully_connected"

    input = operand_def(TensorType)
    kernel = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$input `,` $kernel (`,` $bias^)? attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        check_products(self, "C1", self.bias)
        found = rank(self.input.type)
        require(found >= 3, f"C2: the input of {self.name} has rank {found}, expected 3 or more")
        require(
            rank(self.kernel.type) == 2,
            f"C3: the kernel of {self.name} has shape {shape_text(self.kernel.type)}, expected a matrix",
        )
        if self.bias is not None:
            require(
                rank(self.bias.type) == 1,
                f"C4: the bias of {self.name} has shape {shape_text(self.bias.type)}, expected a vector",
            )

    def length_requirements(self) -> Iterator[LengthRequirement]:
        rows, columns = dims(self.kernel.type)
        yield equal("C3", f"row length of the kernel of {self.name}", product(dims(self.input.type)[-3:]), columns)
        if self.bias is not None:
            fault = f"the bias of {self.name} has shape [{{right}}], expected [{{left}}]"
            yield equal("C4", "", rows, dims(self.bias.type)[0], fault)

    def infer(self) -> Sequence[Tensor]:
        shape = [*dims(self.input.type)[:-3], dims(self.kernel.type)[0], 1, 1]
        return [tensor(sum_element(self.input.type, self.kernel.type), shape)]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from mlirt.dialects.wide_arithmetic import narrow, widen_factors

        x, kernel, *bias = arrays
        flat, weights = widen_factors(x.reshape(*x.shape[:-3], prod(x.shape[-3:])), kernel, kernel.shape[1])
        y = flat @ weights.T
        if bias:
            y = y + bias[0].astype(y.dtype)
        return [narrow(y, numpy_dtype(sum_element(self.input.type, self.kernel.type)))[..., None, None]]
