"""A test's input: values that the test knows and the compiler does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, prop_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, numpy_dtype

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class InputOp(TensorOp):
    """A tensor of known elements that no pass may fold; on a compiled target it becomes an input of the network.

    C1: the dimensions are numbers. C2: `value` has the type of the result.

    Example: `%x = check.input {value = dense<[1.0, -2.0]> : tensor<2xf32>} : tensor<2xf32>`
    """

    name = "check.input"

    value = prop_def(DenseIntOrFPElementsAttr)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($output)"

    def check(self) -> None:
        known = all(isinstance(dim, int) for dim in dims(self.output.type))
        require(known, f"C1: {self.name} needs constant dimensions, not {self.output.type}")
        require(
            self.value.get_type() == self.output.type,
            f"C2: the value of {self.name} has type {self.value.get_type()}, its result {self.output.type}",
        )

    def infer(self) -> Sequence[Tensor]:
        assert isinstance(self.output.type, TensorType)
        return [self.output.type]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        return [self.array()]

    def array(self) -> Array:
        """The elements as an array of the result's type."""
        import numpy as np

        shape = [dim for dim in dims(self.output.type) if isinstance(dim, int)]
        flat = np.frombuffer(self.value.data.data, numpy_dtype(element_of(self.output.type)))
        return flat.reshape(shape)
