"""The scalar computation that was fused behind an op which accumulates: bias, activation, residual, scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.fused_op import (
    FusedOp,
    bind_dims,
    check_access,
    check_region,
    element_types,
    gather_operand,
    region_values,
)
from mlirt.dialects.scalar_semantics import evaluate_region
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, element_of, numpy_dtype, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class EpilogueOp(FusedOp):
    """An op with one result that is an accumulated value put through a scalar region.

    The region's first argument is the accumulator, whose type is the type of accumulation; the others are one element
    of each extra operand (the last operands of the op), and the access of each says which, over the dimensions of the
    result.
    """

    def epilogue_dims(self) -> tuple[Dim, ...]:
        """The dimensions of what goes through the epilogue."""
        return dims(self.results[0].type)

    def check_epilogue(self, extras: Sequence[SSAValue], access: Sequence[AccessAttr], epilogue: Region) -> None:
        require(
            len(access) == len(extras), f"C1: {self.name} has {len(extras)} extra operands and {len(access)} accesses"
        )
        for operand, one in zip(extras, access, strict=True):
            check_access(self, one, operand.type, rank(self.results[0].type))
        require(len(epilogue.block.args) > 0, f"{self.name}: the epilogue takes the accumulator first")
        check_region(self, epilogue, [accumulator_type(epilogue), *element_types(extras)], element_types(self.results))

    def apply_epilogue(
        self, accumulator: Array, arrays: Sequence[Array], access: Sequence[AccessAttr], epilogue: Region
    ) -> Array:
        import numpy as np

        env = bind_dims(self, arrays, accumulator.shape, self.epilogue_dims())
        extras = arrays[len(arrays) - len(access) :]
        picked = [gather_operand(a, one, accumulator.shape, env) for a, one in zip(extras, access, strict=True)]
        with np.errstate(over="ignore", invalid="ignore"):
            start = accumulator.astype(numpy_dtype(accumulator_type(epilogue)))
        (result,) = evaluate_region(epilogue, [start, *picked], region_values(accumulator.shape, env))
        return np.broadcast_to(result, accumulator.shape).astype(numpy_dtype(element_of(self.results[0].type)))


def accumulator_type(epilogue: Region) -> Attribute:
    """The element type in which the op accumulates."""
    return epilogue.block.args[0].type
