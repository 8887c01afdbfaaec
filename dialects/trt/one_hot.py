"""One-hot encoding of indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, IntegerAttr, TensorType
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.length_requirements import LengthRequirement, at_least, equal
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, is_bool, is_float, rank, tensor
from mlirt.dialects.trt.shape_values import shape_value, unknown

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class OneHotOp(TensorOp):
    """values[1] where the position along the new `axis` is the index, values[0] elsewhere (tensorrt-features.md#1.46).

    The new axis has `depth` positions; a negative index counts from its end, one out of range is nowhere.

    C1: indices and depth are integers. C2: `values` has 2 elements. C3: depth is 0-D. C4: `axis` is an axis of the
    result.

    Example: `%y = trt.one_hot %i, %v, %d {axis = 1 : i64} : (tensor<3xi64>, tensor<2xf32>, tensor<i64>) ->
    tensor<3x?xf32>`
    """

    name = "trt.one_hot"

    indices = operand_def(TensorType)
    values = operand_def(TensorType)
    depth = operand_def(TensorType)
    axis = prop_def(IntegerAttr[I64])
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$indices `,` $values `,` $depth attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        for label, operand in (("indices", self.indices), ("depth", self.depth)):
            element = element_of(operand.type)
            require(
                not is_float(element) and not is_bool(element),
                f"C1: {label} of {self.name} needs integers, not {element}",
            )
        require(rank(self.values.type) == 1, f"C2: values of {self.name} is {self.values.type}, expected 2 elements")
        require(rank(self.depth.type) == 0, f"C3: depth of {self.name} is {self.depth.type}, expected a scalar")
        axis, most = self.axis.value.data, rank(self.indices.type)
        require(0 <= axis <= most, f"C4: axis {axis} of {self.name} is not in the range 0 to {most}")

    def length_requirements(self) -> Iterator[LengthRequirement]:
        fault = f"values of {self.name} has {{right}} elements, expected {{left}}"
        yield equal("C2", "", 2, dims(self.values.type)[0], fault)
        known = shape_value(self.depth)
        if known is not None:
            yield at_least("C3", f"depth {{left}} of {self.name} is negative", known[0], 0)

    def infer(self) -> Sequence[Tensor]:
        axis, known = self.axis.value.data, shape_value(self.depth)
        depth: Dim = unknown(axis) if known is None else known[0]
        lengths = dims(self.indices.type)
        return [tensor(element_of(self.values.type), [*lengths[:axis], depth, *lengths[axis:]])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        indices, values, depth = arrays
        axis, count = self.axis.value.data, int(depth)
        wide = np.expand_dims(indices.astype(np.int64), axis)
        position = np.expand_dims(np.arange(count), [k for k in range(wide.ndim) if k != axis])
        hot = np.where(wide < 0, wide + count, wide) == position
        return [values[hot.astype(np.int64)]]
