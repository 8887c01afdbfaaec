"""Matrix products and convolutions, each with the scalar epilogue that was fused into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

from mlirt.dialects.blocked_layout import block_array, is_blocked, unblock_array
from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.epilogue import EpilogueOp
from mlirt.dialects.fused.fused_op import bind_dims, numbers_of
from mlirt.dialects.fused.pooling import FIRST, PoolingAttr, TotalsAttr
from mlirt.dialects.integer_list import integer_list
from mlirt.dialects.shared_attributes import boolean, integer
from mlirt.dialects.symbolic import Dim, floor_div
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import channels, dims, element_of, integer_range, is_float

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class MatmulOp(EpilogueOp):
    """`result[b.., m, n] = epilogue(sum over k of lhs[b.., m, k] * rhs[b.., k, n], extras..)`.

    Operands have equal rank of at least 2 and leading (batch) dimensions that broadcast; a transposed operand is stored
    `[.., k, m]` or `[.., n, k]`. Bytes, signed or not in any combination, are summed exactly in an i32 accumulator,
    which wraps. With `may_round` the elements of `lhs` may be rounded to float16 before, on processors that multiply
    halves. C1: one access per extra operand.

    Example: `%y = fused.matmul %a, %b, %bias {access = [#fused.access<["d1"]>], transpose_rhs = true} : (..) -> .. {
    ^bb0(%acc: f32, %b0: f32): .. }`
    """

    name = "fused.matmul"

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    extras = var_operand_def(TensorType)
    transpose_lhs = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    transpose_rhs = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    may_round = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    access = prop_def(ArrayAttr[AccessAttr], default_value=ArrayAttr[AccessAttr]([]))
    output = result_def(TensorType)
    epilogue = region_def("single_block")

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "operands attr-dict `:` functional-type(operands, results) $epilogue"

    def __init__(
        self,
        lhs: SSAValue,
        rhs: SSAValue,
        result: Attribute,
        epilogue: Region,
        extras: Sequence[SSAValue] = (),
        access: Sequence[AccessAttr] = (),
        transpose_lhs: bool = False,
        transpose_rhs: bool = False,
    ):
        super().__init__(
            operands=[lhs, rhs, extras],
            properties={
                "access": ArrayAttr(access),
                "transpose_lhs": boolean(transpose_lhs),
                "transpose_rhs": boolean(transpose_rhs),
            },
            result_types=[result],
            regions=[epilogue],
        )

    def verify_(self) -> None:
        self.check_epilogue(self.extras, list(self.access), self.epilogue)

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        wide = np.float64 if arrays[0].dtype.kind in "fV" else np.int64
        lhs, rhs = arrays[0].astype(wide), arrays[1].astype(wide)
        lhs = np.swapaxes(lhs, -1, -2) if self.transpose_lhs.value.data else lhs
        rhs = np.swapaxes(rhs, -1, -2) if self.transpose_rhs.value.data else rhs
        return [self.apply_epilogue(lhs @ rhs, arrays, list(self.access), self.epilogue)]


@irdl_op_definition
class ConvolutionOp(EpilogueOp):
    """`result[n, k, p..] = epilogue(sum over c, r of input[n, c, p * stride + r * dilation - pre] * kernel[k, c, r],
    extras..)`.

    The kernel is `[k, c / groups, window..]`; cells outside of the input hold `padding_value`, which is the zero point
    of quantised inputs. With `transposed` the op is the deconvolution whose kernel is `[c, k / groups, window..]`:
    `result[n, k, p * stride + r * dilation - pre] += ...`, cropped by `post` and lengthened by the result type. A bias
    is an extra operand with access `["d1"]`. Bytes, signed or not in any combination, are summed exactly in an i32
    accumulator, which wraps. C1: one access per extra operand. C2: the padding value is one that the input's elements
    can have; it is 0 for floating-point inputs and with `transposed`.

    With `pooling` all this is computed for the elements of the windows, extra operands are read at their places, and
    the result is one number for each window. C3: windows have a positive size on each spatial axis and lie in what the
    convolution gives; the result is of floating-point numbers. With `totals` the result is the sum of each box of all
    that. C5: boxes have a positive size on each spatial axis, and the result has one number for each.

    With `merged_groups` = m each group is m equal parts, one after the other, and the kernel is zero where a channel of
    one part would be multiplied for another: kernels may leave these products out. C4: m divides the channels of a
    group on both sides.

    On blocked tensors (`trt.dims` with channels) the input is `[n, c / block, h, w, block]`, and `channels` in its
    type tells c; the kernel stays as it is. A planar input with a blocked result is legal.
    """

    name = "fused.convolution"

    input = operand_def(TensorType)
    kernel = operand_def(TensorType)
    extras = var_operand_def(TensorType)
    stride = prop_def(DenseArrayBase.constr(i64))
    dilation = prop_def(DenseArrayBase.constr(i64))
    pre_padding = prop_def(DenseArrayBase.constr(i64))
    post_padding = prop_def(DenseArrayBase.constr(i64))
    padding_value = prop_def(IntegerAttr, default_value=IntegerAttr(0, i64))
    groups = prop_def(IntegerAttr, default_value=IntegerAttr(1, i64))
    merged_groups = prop_def(IntegerAttr, default_value=IntegerAttr(1, i64))
    transposed = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    pooling = opt_prop_def(PoolingAttr)
    totals = opt_prop_def(TotalsAttr)
    access = prop_def(ArrayAttr[AccessAttr], default_value=ArrayAttr[AccessAttr]([]))
    output = result_def(TensorType)
    epilogue = region_def("single_block")

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "operands attr-dict `:` functional-type(operands, results) $epilogue"

    def __init__(
        self,
        input: SSAValue,
        kernel: SSAValue,
        result: Attribute,
        epilogue: Region,
        *,
        stride: Sequence[int],
        dilation: Sequence[int],
        pre_padding: Sequence[int],
        post_padding: Sequence[int],
        groups: int = 1,
        merged_groups: int = 1,
        transposed: bool = False,
        padding_value: int = 0,
        pooling: PoolingAttr | None = None,
        totals: TotalsAttr | None = None,
        extras: Sequence[SSAValue] = (),
        access: Sequence[AccessAttr] = (),
    ):
        super().__init__(
            operands=[input, kernel, extras],
            properties={
                "stride": integer_list(stride),
                "dilation": integer_list(dilation),
                "pre_padding": integer_list(pre_padding),
                "post_padding": integer_list(post_padding),
                "padding_value": integer(padding_value),
                "groups": integer(groups),
                "merged_groups": integer(merged_groups),
                "transposed": boolean(transposed),
                "pooling": pooling,
                "totals": totals,
                "access": ArrayAttr(access),
            },
            result_types=[result],
            regions=[epilogue],
        )

    def spatial(self) -> tuple[tuple[int, int, int, int], ...]:
        """(stride, dilation, pre padding, post padding) for each spatial dimension."""
        columns = (self.stride, self.dilation, self.pre_padding, self.post_padding)
        return tuple(zip(*(column.iter_values() for column in columns), strict=True))  # pyright: ignore[reportReturnType]

    def epilogue_dims(self) -> tuple[Dim, ...]:
        shape = dims(self.output.type)
        if self.totals is not None:
            shape = (*shape[:FIRST], *self.totals.added())
        return shape if self.pooling is None else self.pooling.covered(shape)

    def verify_(self) -> None:
        self.check_epilogue(self.extras, list(self.access), self.epilogue)
        self._check_pooling()
        self._check_totals()
        self._check_parts()
        value, element = self.padding_value.value.data, element_of(self.input.type)
        low, high = (0, 0) if is_float(element) or self.transposed.value.data else integer_range(element)
        require(low <= value <= high, f"C2: {self.name}: the padding value {value} is not between {low} and {high}")

    def _check_parts(self) -> None:
        parts, (outputs, inputs, *_) = self.merged_groups.value.data, dims(self.kernel.type)
        groups = self.groups.value.data
        sizes = [inputs, outputs // groups if isinstance(outputs, int) else outputs]
        fits = parts >= 1 and all(not isinstance(size, int) or size % parts == 0 for size in sizes)
        require(
            fits, f"C4: {self.name}: groups of {sizes[0]} channels that give {sizes[1]} have no {parts} equal parts"
        )

    def _check_totals(self) -> None:
        if self.totals is None:
            return
        sizes, counts = self.totals.sizes(), dims(self.output.type)[FIRST:]
        fits = len(sizes) == len(self.spatial()) == len(self.totals.added()) and min(sizes) > 0
        require(fits, f"C5: {self.name} of {len(self.spatial())} spatial axes does not add up boxes of {list(sizes)}")
        require(is_float(element_of(self.output.type)), f"C5: {self.name} adds up floating-point results")
        same = self.totals.counts() == counts
        require(same, f"C5: {self.name} adds up {list(self.totals.counts())} boxes and gives {list(counts)}")

    def _check_pooling(self) -> None:
        if self.pooling is None:
            return
        sizes, spatial = self.pooling.sizes(), self.spatial()
        fits = len(sizes) == len(spatial) and min(sizes) > 0
        require(fits, f"C3: {self.name} of {len(spatial)} spatial axes does not pool windows of {list(sizes)}")
        require(is_float(element_of(self.output.type)), f"C3: {self.name} pools floating-point results")
        if self.transposed.value.data:  # how far it reaches is what the type of its result says
            return
        lengths, windows, covered = (
            list(of)[FIRST : FIRST + len(sizes)]
            for of in (dims(self.input.type), dims(self.kernel.type), self.epilogue_dims())
        )
        for axis, (stride, dilation, pre, post) in enumerate(spatial):
            room = floor_div(lengths[axis] + pre + post - (windows[axis] - 1) * dilation - 1, stride) + 1
            needed = covered[axis]
            inside = not isinstance(room, int) or not isinstance(needed, int) or needed <= room
            require(inside, f"C3: windows of {self.name} cover {needed} elements of an axis that has {room}")

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from mlirt.dialects.fused.convolution_reference import convolve_transposed

        if is_blocked(self.output.type):
            return [self._blocked_reference(arrays)]
        if self.transposed.value.data:
            groups = self.groups.value.data
            shape = numbers_of(self.epilogue_dims()[2:], bind_dims(self, arrays))
            accumulator = convolve_transposed(arrays[0], arrays[1], self.spatial(), groups, shape)
        else:
            accumulator = self._sum(arrays[0], arrays[1])
        return [self._pooled(self.apply_epilogue(accumulator, arrays, list(self.access), self.epilogue))]

    def _pooled(self, values: Array) -> Array:
        pooled = values if self.pooling is None else self.pooling.of_array(values)
        return pooled if self.totals is None else self.totals.of_array(pooled)

    def _blocked_reference(self, arrays: Sequence[Array]) -> Array:
        """The same sum on plain arrays, put into blocks before the epilogue; lanes beyond the last channel are zero."""
        source, count, lanes = arrays[0], channels(self.output.type), dims(self.output.type)[-1]
        assert isinstance(count, int)
        assert isinstance(lanes, int)
        if is_blocked(self.input.type):
            own = channels(self.input.type)
            assert isinstance(own, int)
            source = unblock_array(source, own)
        accumulator = block_array(self._sum(source, arrays[1]), lanes)
        result = self._pooled(self.apply_epilogue(accumulator, arrays, list(self.access), self.epilogue))
        return block_array(unblock_array(result, count), lanes)

    def _sum(self, source: Array, kernel: Array) -> Array:
        from mlirt.dialects.fused.convolution_reference import convolve

        sums = convolve(source, kernel, self.spatial(), self.groups.value.data, self.padding_value.value.data)
        sizes = () if self.pooling is None else self.pooling.sizes()
        windows = (slice(length // size * size) for length, size in zip(sums.shape[FIRST:], sizes, strict=False))
        return sums[(slice(None), slice(None), *windows)]
