"""States that two tensors are equal up to rounding; executing it is the test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import FloatAttr, TensorType, f64
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def

from mlirt.dialects.diagnostics import OperationError
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class ExpectationError(OperationError):
    """Two tensors that should be close are not."""


@irdl_op_definition
class ExpectCloseOp(TensorOp):
    """Fail unless `abs(actual - expected) <= atol + rtol * abs(expected)` for each element; NaN is close to NaN.

    C1: both operands have the same type. C2: `rtol` and `atol` are not negative.

    Example: `check.expect_close %y, %expected {rtol = 1.0e-5 : f64} : tensor<4xf32>, tensor<4xf32>`
    """

    name = "check.expect_close"

    actual = operand_def(TensorType)
    expected = operand_def(TensorType)
    rtol = prop_def(FloatAttr, default_value=FloatAttr(1e-5, f64))
    atol = prop_def(FloatAttr, default_value=FloatAttr(1e-6, f64))

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$actual `,` $expected attr-dict `:` type($actual) `,` type($expected)"

    def check(self) -> None:
        require(
            self.actual.type == self.expected.type,
            f"C1: {self.name} compares tensors of one type, but got {self.actual.type} and {self.expected.type}",
        )
        tolerances = (self.rtol.value.data, self.atol.value.data)
        require(min(tolerances) >= 0, f"C2: {self.name} has a negative tolerance: rtol and atol are {tolerances}")

    def infer(self) -> Sequence[Tensor]:
        return []

    def reference(self, *arrays: Array) -> Sequence[Array]:
        """Return nothing; raise `ExpectationError` that shows the worst element."""
        import numpy as np

        actual, expected = arrays
        if actual.shape != expected.shape:
            raise ExpectationError(self, f"failed: the shape is {actual.shape}, expected {expected.shape}")
        wide, wanted = actual.astype(np.float64), expected.astype(np.float64)
        close = np.isclose(wide, wanted, self.rtol.value.data, self.atol.value.data, equal_nan=True)
        if not close.all():
            raise ExpectationError(self, f"failed: {_difference(wide, wanted, ~close)}")
        return []


def _difference(actual: Array, expected: Array, wrong: Array) -> str:
    import numpy as np

    distance = np.where(wrong, np.nan_to_num(np.abs(actual - expected), nan=np.inf), -1)
    worst = np.unravel_index(int(distance.argmax()), distance.shape)
    place = [int(index) for index in worst]
    return (
        f"{int(wrong.sum())} of {wrong.size} elements are wrong, the worst at {place}: "
        f"{float(actual[worst])!r}, expected {float(expected[worst])!r}"
    )
