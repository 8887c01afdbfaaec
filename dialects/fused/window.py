"""The largest, the sum or the mean in each window of the input."""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Region, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.epilogue import EpilogueOp
from mlirt.dialects.fused.fused_op import bind_dims, numbers_of
from mlirt.dialects.integer_list import integer_list, integers
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class WindowKind(StrEnum):
    MAX = auto()
    ADD = auto()
    AVERAGE = auto()


@irdl_attr_definition
class WindowKindAttr(EnumAttribute[WindowKind], SpacedOpaqueSyntaxAttribute):
    name = "fused.window_kind"


@irdl_op_definition
class WindowOp(EpilogueOp):
    """`result[.., p.., ..] = epilogue(combine over r.. of input[.., p * stride + r * dilation - pre, ..], extras..)`.

    The window slides over as many axes as `window` has entries, from `axis` on; the other axes are kept. Cells
    outside of the input do not count. `average` divides by the cells in the input, with `count_include_padding` by
    those in the padded input (never by cells past the padding), and a window without cells has the mean 0; integers
    round toward zero. The epilogue's first argument is the accumulator in the type of accumulation; extras and their
    accesses are as in a convolution.

    C1: one access per extra. C2: stride, dilation and pads have one entry per window axis, strides and dilations are
    positive.
    C3: the windowed axes exist, and the result has the input's rank.

    Example: `%y = fused.window max %x {window = array<i64: 3, 3>, stride = array<i64: 2, 2>, dilation = array<i64: 1,
    1>, pre_padding = #trt.dims<["1", "1"]>, post_padding = #trt.dims<["1", "1"]>} : (tensor<..>) -> tensor<..> {..}`
    """

    name = "fused.window"

    kind = prop_def(WindowKindAttr)
    input = operand_def(TensorType)
    extras = var_operand_def(TensorType)
    axis = prop_def(IntegerAttr, default_value=IntegerAttr(2, i64))
    window = prop_def(DenseArrayBase.constr(i64))
    stride = prop_def(DenseArrayBase.constr(i64))
    dilation = prop_def(DenseArrayBase.constr(i64))
    pre_padding = prop_def(DimsAttr)
    post_padding = prop_def(DimsAttr)
    count_include_padding = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    access = prop_def(ArrayAttr[AccessAttr], default_value=ArrayAttr[AccessAttr]([]))
    output = result_def(TensorType)
    epilogue = region_def("single_block")

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind operands attr-dict `:` functional-type(operands, results) $epilogue"

    def __init__(
        self,
        kind: WindowKind,
        input: SSAValue,
        result: Attribute,
        epilogue: Region,
        *,
        window: Sequence[int],
        stride: Sequence[int],
        dilation: Sequence[int],
        pre_padding: Sequence[Dim],
        post_padding: Sequence[Dim],
        axis: int = 2,
        count_include_padding: bool = False,
        extras: Sequence[SSAValue] = (),
        access: Sequence[AccessAttr] = (),
    ):
        super().__init__(
            operands=[input, extras],
            properties={
                "kind": WindowKindAttr(kind),
                "axis": IntegerAttr(axis, i64),
                "window": integer_list(window),
                "stride": integer_list(stride),
                "dilation": integer_list(dilation),
                "pre_padding": DimsAttr.of(pre_padding),
                "post_padding": DimsAttr.of(post_padding),
                "count_include_padding": BoolAttr.from_bool(count_include_padding),
                "access": ArrayAttr(access),
            },
            result_types=[result],
            regions=[epilogue],
        )

    @property
    def includes_padding(self) -> bool:
        return bool(self.count_include_padding.value.data)

    def axes(self) -> tuple[int, ...]:
        """The axes over which the window slides."""
        first = self.axis.value.data
        return tuple(range(first, first + len(integers(self.window))))

    def is_inside(self) -> bool:
        """Whether no window reaches beyond the input, all lengths being known."""
        before, after = dims(self.input.type), dims(self.output.type)
        if any(one != 0 for one in (*self.pre_padding.dims(), *self.post_padding.dims())):
            return False
        sizes = zip(integers(self.window), integers(self.stride), integers(self.dilation), strict=True)
        for axis, (size, step, dilation) in zip(self.axes(), sizes, strict=True):
            length, count = before[axis], after[axis]
            if not isinstance(length, int) or not isinstance(count, int):
                return False
            if (count - 1) * step + (size - 1) * dilation >= length:
                return False
        return True

    def verify_(self) -> None:
        self.check_epilogue(self.extras, list(self.access), self.epilogue)
        strides, dilations = integers(self.stride), integers(self.dilation)
        lengths = {
            len(integers(self.window)),
            len(strides),
            len(dilations),
            len(self.pre_padding.dims()),
            len(self.post_padding.dims()),
        }
        require(
            len(lengths) == 1, f"C2: window, stride, dilation and pads of {self.name} have different numbers of entries"
        )
        require(
            all(step > 0 for step in (*strides, *dilations)), f"C2: {self.name} needs positive strides and dilations"
        )
        fits = rank(self.input.type) == rank(self.output.type) and self.axes()[-1] < rank(self.input.type)
        require(fits, f"C3: {self.name} over axes {self.axes()} of {self.input.type} is not {self.output.type}")

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from mlirt.dialects.fused.window_reference import slide

        env = bind_dims(self, arrays)
        post = numbers_of(self.post_padding.dims(), env)
        pads = list(zip(numbers_of(self.pre_padding.dims(), env), post, strict=True))
        steps = list(zip(integers(self.window), integers(self.stride), integers(self.dilation), pads, strict=True))
        output = dims(self.output.type)
        lengths = numbers_of([output[axis] for axis in self.axes()], env)
        accumulator = slide(arrays[0], self.kind.data, self.axis.value.data, steps, lengths, self.includes_padding)
        return [self.apply_epilogue(accumulator, arrays, list(self.access), self.epilogue)]
