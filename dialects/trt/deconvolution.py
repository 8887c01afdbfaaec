"""Deconvolution: the transpose of a convolution, over one, two or three spatial axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirt.dialects.integer_list import integers, integers_or
from mlirt.dialects.length_requirements import LengthRequirement, at_least, equal
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, rank, tensor
from mlirt.dialects.trt.operand_checks import constant_dims, numbers, same_elements_but_bias, shape_text
from mlirt.dialects.trt.windowed_op import WindowedOp
from mlirt.dialects.window_arithmetic import TransposedWindow

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class DeconvolutionOp(WindowedOp):
    """Each input element adds the kernel, scaled, to the output at i*stride + r*dilation - pre
    (tensorrt-features.md#1.7).

    An output axis has (I - 1) * stride + extent - pre - post + output_padding elements, where extent is
    1 + dilation * (size - 1); negative pads add cells where others cut them off. The kernel is C x M/groups x R (x S
    (x T)).

    C1: all operands have one element type, not boolean; only the bias of half-precision ones
    may be float32. C2: the kernel has rank 3, 4 or 5 and constant dimensions. C3: the input has
    at least the kernel's rank. C4: stride, dilation, pads and output_padding have one entry per spatial
    axis; stride and dilation are positive, output_padding is not negative. C5: num_groups is positive and divides the
    channel count. C6: the input has as many channels as the kernel. C7: the bias is 1-D with one value per output
    channel. C8: the pads leave some output.

    Example: `%y = trt.deconvolution %x, %w {stride = array<i64: 2, 2>} :
    (tensor<1x3x4x4xf32>, tensor<3x5x2x2xf32>) -> tensor<1x5x8x8xf32>`
    """

    name = "trt.deconvolution"

    input = operand_def(TensorType)
    kernel = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    num_groups = prop_def(IntegerAttr[I64], default_value=IntegerAttr(1, i64))
    output_padding = opt_prop_def(DenseArrayBase.constr(i64))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input `,` $kernel (`,` $bias^)? attr-dict `:` functional-type(operands, results)"

    def sizes(self) -> tuple[int, ...]:
        return constant_dims(self, "C2", self.kernel.type, "the kernel")[2:]

    @property
    def groups(self) -> int:
        return self.num_groups.value.data

    def transposed_windows(self) -> tuple[TransposedWindow, ...]:
        """One window per spatial axis; its `padding()` is what is cut off the output."""
        extra = integers_or(self.output_padding, 0, len(self.sizes()))
        geometry = zip(self.sizes(), self.strides(), self.dilations(), self.written_padding(), extra, strict=True)
        mode = self.padding_mode.data
        return tuple(TransposedWindow(size, s, d, pre, post, mode, more) for size, s, d, (pre, post), more in geometry)

    def padding(self) -> tuple[tuple[Dim, Dim], ...]:
        return tuple(window.padding() for window in self.transposed_windows())

    def check(self) -> None:
        same_elements_but_bias(self, "C1", self.bias)
        numbers(self, "C1", self.input.type)
        depth, kernels, *_ = (*constant_dims(self, "C2", self.kernel.type, "the kernel"), 0, 0)
        kernel_rank = rank(self.kernel.type)
        require(3 <= kernel_rank <= 5, f"C2: the kernel of {self.name} has rank {kernel_rank}, expected 3, 4 or 5")
        require(
            rank(self.input.type) >= kernel_rank,
            f"C3: the input of {self.name} has rank {rank(self.input.type)}, its kernel needs at least {kernel_rank}",
        )
        self.check_window("C4")
        extra = () if self.output_padding is None else integers(self.output_padding)
        require(
            len(extra) in (0, len(self.sizes())) and min(extra, default=0) >= 0,
            f"C4: output_padding {list(extra)} of {self.name} needs {len(self.sizes())} entries that are not negative",
        )
        require(
            self.groups > 0 and depth % self.groups == 0,
            f"C5: {self.groups} groups of {self.name} do not divide its {depth} channels",
        )
        if self.bias is not None:
            expected = kernels * self.groups
            require(
                rank(self.bias.type) == 1,
                f"C7: the bias of {self.name} has shape {shape_text(self.bias.type)}, expected [{expected}]",
            )

    def length_requirements(self) -> Iterator[LengthRequirement]:
        depth, kernels, *sizes = dims(self.kernel.type)
        yield equal("C6", f"channels of {self.name}", depth, dims(self.input.type)[-1 - len(sizes)])
        if self.bias is not None:
            fault = f"the bias of {self.name} has shape [{{right}}], expected [{{left}}]"
            yield equal("C7", "", kernels * self.groups, dims(self.bias.type)[0], fault)
        for axis, (length, cells) in enumerate(zip(self._output_lengths(), self.spatial_dims(), strict=True)):
            fault = f"the pads of {self.name} leave {{left}} elements of spatial axis {axis}"
            yield at_least("C8", fault, length, 1, where=cells)

    def _output_lengths(self) -> list[Dim]:
        pairs = zip(self.transposed_windows(), self.spatial_dims(), strict=True)
        return [window.output_length(length) for window, length in pairs]

    def infer(self) -> Sequence[Tensor]:
        channels = dims(self.kernel.type)[1] * self.groups
        batch = dims(self.input.type)[: rank(self.input.type) - len(self.sizes()) - 1]
        return [tensor(element_of(self.input.type), [*batch, channels, *self._output_lengths()])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from mlirt.dialects.sliding_windows import correlate_transposed, fold_batch, padded
        from mlirt.dialects.wide_arithmetic import narrow, widen_factors

        x, kernel, *bias = arrays
        spatial = kernel.ndim - 2
        image, weights = widen_factors(fold_batch(x, spatial + 1), kernel, kernel.shape[0] * kernel[:1, :1].size)
        y = correlate_transposed(image, weights, self.strides(), self.dilations(), self.groups)
        cuts = zip(self.transposed_windows(), x.shape[-spatial:], y.shape[2:], strict=True)
        edges: list[tuple[int, int]] = []
        for window, length, full in cuts:
            pre, size = window.padding()[0], window.output_length(length)
            assert isinstance(size, int)
            edges.append((-pre, size + pre - full))
        y = padded(y, edges)
        if bias:
            y = y + bias[0].astype(y.dtype).reshape(-1, *[1] * spatial)
        return [narrow(y, x.dtype).reshape(*x.shape[: x.ndim - 1 - spatial], *y.shape[1:])]
