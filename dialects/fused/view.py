"""The same bytes under other dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.fused.fused_op import FusedOp, bind_dims, numbers_of
from mlirt.dialects.layout import Layout
from mlirt.dialects.symbolic import Dim, sym
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, element_count, element_of, is_row_major, strides
from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class ViewOp(FusedOp):
    """The input's elements in row-major order under other dimensions; costs nothing where the input's strides allow it.

    The result lies where the input lies, if there are strides for that, whatever order its type has.

    C1: the element types are equal. C2: where both counts are numbers, both sides have equally many elements. C3: the
    result's type is row-major or has the order in which the input's elements lie.

    Example: `%y = fused.view %x : (tensor<2x3xf32>) -> tensor<6xf32>`
    """

    name = "fused.view"
    FAMILY: ClassVar = "copy"

    input = operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def __init__(self, input: SSAValue, result: Attribute):
        super().__init__(operands=[input], result_types=[result])

    def verify_(self) -> None:
        source, target = self.input.type, self.output.type
        require(element_of(source) == element_of(target), f"C1: {self.name} of {source} is not {target}")
        before, after = element_count(source), element_count(target)
        is_known = isinstance(before, int) and isinstance(after, int)
        require(
            not is_known or before == after,
            f"C2: {self.name} of {source} ({before} elements) is not {target} ({after})",
        )
        found = Layout(dims(source), strides(source)[0]).reshaped(dims(target))
        lies_so = is_row_major(target) or (found is not None and found.strides() == strides(target)[0])
        require(lies_so, f"C3: the elements of {source} do not lie like {target}")

    def reference(self, *arrays: Array) -> Sequence[Array]:
        (x,) = arrays
        target = dims(self.output.type)
        try:
            return [x.reshape(numbers_of(target, bind_dims(self, arrays)))]
        except InvalidInputError:
            unknown = [dim for dim in target if not isinstance(dim, int)]
            if len(unknown) != 1:
                raise
            return [x.reshape([dim if isinstance(dim, int) else -1 for dim in target])]


def joins_axes(before: Sequence[Dim], after: Sequence[Dim]) -> bool:
    """Whether each axis of a view is one of its tensor, or several that it joins: then it may lie with any strides."""
    anywhere = Layout(tuple(after), tuple(sym(f"step{axis}") for axis in range(len(after))))
    return anywhere.reshaped(before) is not None
