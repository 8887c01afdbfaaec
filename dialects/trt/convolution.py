"""Convolution: the correlation of an image with learned kernels, over one, two or three spatial axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, IntegerAttr, TensorType, i8, i64
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirt.dialects.length_requirements import LengthRequirement, equal
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, numpy_dtype, rank, tensor
from mlirt.dialects.trt.int8_products import check_products, sum_element, ui8
from mlirt.dialects.trt.operand_checks import constant_dims, shape_text
from mlirt.dialects.trt.windowed_op import WindowedOp

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class ConvolutionOp(WindowedOp):
    """y[n,k,p..] = bias[k] + sum over c, r of x[n, c, p*stride + r*dilation - pre] kernel[k, c, r] (1.6a-1.6g).

    The kernel is K x C/groups x R, x S or x R x S or x T x R x S: its rank says how many spatial axes there are.
    Dimensions of the input before its channels form the batch. Absent stride and dilation are 1, absent pads 0.

    Bytes (i8 or ui8) with kernels of i8 give the exact sum as i32, and cells of padding hold `padding_value`, which is
    their zero point.

    C1: all operands have one element type, not boolean; only the bias of half-precision ones may be float32; bytes have
    a kernel of i8 and a bias of i32. C2: the kernel has rank 3, 4 or 5 and constant dimensions. C3: the input has at
    least the kernel's rank. C4: stride, dilation and pads have one entry per spatial axis, stride and dilation are
    positive. C5: num_groups is positive and divides the kernel count. C6: the input has C/groups * num_groups channels.
    C7: the bias is 1-D with one value per kernel. C8: the window fits into the padded input. C9: `padding_value` is 0,
    or for bytes one that they can hold.

    Example: `%y = trt.convolution %x, %w, %b {stride = array<i64: 2, 2>} :
    (tensor<1x3x8x8xf32>, tensor<4x3x2x2xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32>`
    """

    name = "trt.convolution"

    input = operand_def(TensorType)
    kernel = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    num_groups = prop_def(IntegerAttr[I64], default_value=IntegerAttr(1, i64))
    padding_value = prop_def(IntegerAttr[I64], default_value=IntegerAttr(0, i64))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input `,` $kernel (`,` $bias^)? attr-dict `:` functional-type(operands, results)"

    def sizes(self) -> tuple[int, ...]:
        return constant_dims(self, "C2", self.kernel.type, "the kernel")[2:]

    @property
    def groups(self) -> int:
        return self.num_groups.value.data

    def check(self) -> None:
        check_products(self, "C1", self.bias)
        kernels, *_ = (*constant_dims(self, "C2", self.kernel.type, "the kernel"), 0)
        kernel_rank = rank(self.kernel.type)
        require(3 <= kernel_rank <= 5, f"C2: the kernel of {self.name} has rank {kernel_rank}, expected 3, 4 or 5")
        require(
            rank(self.input.type) >= kernel_rank,
            f"C3: the input of {self.name} has rank {rank(self.input.type)}, its kernel needs at least {kernel_rank}",
        )
        self.check_window("C4")
        require(
            self.groups > 0 and kernels % self.groups == 0,
            f"C5: {self.groups} groups of {self.name} do not divide its {kernels} kernels",
        )
        if self.bias is not None:
            require(
                rank(self.bias.type) == 1,
                f"C7: the bias of {self.name} has shape {shape_text(self.bias.type)}, expected [{kernels}]",
            )
        self._check_padding_value()

    def length_requirements(self) -> Iterator[LengthRequirement]:
        kernels, depth, *sizes = dims(self.kernel.type)
        channels = dims(self.input.type)[-1 - len(sizes)]
        yield equal("C6", f"channels of {self.name}", depth * self.groups, channels)
        if self.bias is not None:
            fault = f"the bias of {self.name} has shape [{{right}}], expected [{{left}}]"
            yield equal("C7", "", kernels, dims(self.bias.type)[0], fault)
        yield from self.windows_fit("C8")

    def _check_padding_value(self) -> None:
        value, element = self.padding_value.value.data, element_of(self.input.type)
        low, high = (0, 255) if element == ui8 else (-128, 127) if element == i8 else (0, 0)
        require(
            low <= value <= high,
            f"C9: padding_value {value} of {self.name} is no cell of an {element} input; only bytes have others than 0",
        )

    def _output_lengths(self) -> list[Dim]:
        pairs = zip(self.windows(), self.spatial_dims(), strict=True)
        return [window.output_length(length) for window, length in pairs]

    def infer(self) -> Sequence[Tensor]:
        kernels = dims(self.kernel.type)[0]
        batch = dims(self.input.type)[: rank(self.input.type) - len(self.sizes()) - 1]
        return [tensor(sum_element(self.input.type, self.kernel.type), [*batch, kernels, *self._output_lengths()])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from mlirt.dialects.sliding_windows import correlate, fold_batch, padded
        from mlirt.dialects.wide_arithmetic import narrow, widen_factors

        x, kernel, *bias = arrays
        spatial = kernel.ndim - 2
        image, weights = widen_factors(fold_batch(x, spatial + 1), kernel, kernel[:1].size)
        image = padded(image, self.reach(x.shape[-spatial:]), self.padding_value.value.data)
        y = correlate(image, weights, self.strides(), self.dilations(), self.groups)
        if bias:
            y += bias[0].astype(y.dtype).reshape(-1, *[1] * spatial)
        element = numpy_dtype(sum_element(self.input.type, self.kernel.type))
        return [narrow(y, element).reshape(*x.shape[: x.ndim - 1 - spatial], *y.shape[1:])]
