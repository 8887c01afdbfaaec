"""Normalisation of one axis to a probability distribution and what follows it element by element, in one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntegerAttr, TensorType, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
)
from xdsl.traits import Pure

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.epilogue import EpilogueOp, accumulator_type
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, element_of, is_float, numpy_dtype, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class SoftmaxOp(EpilogueOp):
    """`exp(x - max) / sum(exp(x - max))` along `axis`, or with `log` its logarithm; then `epilogue(that, extras..)`.

    The epilogue may be missing. Its first argument is the share in the type of the computation; extras and their
    accesses are as in a convolution.

    C1: floating-point numbers. C2: `axis` is an axis of the input. C3: the result has the input's type, behind an
    epilogue its dimensions. C4: there is at most one epilogue, one access per extra, and no extra without an epilogue.

    Example: `%y = fused.softmax %x {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32>`
    """

    name = "fused.softmax"
    FAMILY: ClassVar = "rows"

    input = operand_def(TensorType)
    extras = var_operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    log = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    access = prop_def(ArrayAttr[AccessAttr], default_value=ArrayAttr[AccessAttr]([]))
    output = result_def(TensorType)
    epilogues = var_region_def("single_block")

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "operands attr-dict `:` functional-type(operands, results) $epilogues"

    def __init__(
        self,
        input: SSAValue,
        axis: int,
        log: bool = False,
        *,
        extras: Sequence[SSAValue] = (),
        access: Sequence[AccessAttr] = (),
        result: Attribute | None = None,
        epilogue: Region | None = None,
    ):
        properties = {"axis": IntegerAttr(axis, i64), "log": BoolAttr.from_bool(log), "access": ArrayAttr(access)}
        super().__init__(
            operands=[input, extras],
            properties=properties,
            result_types=[result or input.type],
            regions=[[] if epilogue is None else [epilogue]],
        )

    @property
    def epilogue(self) -> Region | None:
        """What follows the shares, where something does."""
        return next(iter(self.epilogues), None)

    def verify_(self) -> None:
        axis = self.axis.value.data
        require(
            is_float(element_of(self.input.type)),
            f"C1: {self.name} needs floating-point numbers, not {self.input.type}",
        )
        require(
            0 <= axis < rank(self.input.type), f"C2: {self.name} has no axis {axis}: its input is {self.input.type}"
        )
        fits = (
            dims(self.input.type) == dims(self.output.type) if self.epilogues else self.input.type == self.output.type
        )
        require(fits, f"C3: {self.name} of {self.input.type} is not {self.output.type}")
        legal = len(self.epilogues) == 1 if self.extras or self.access else len(self.epilogues) <= 1
        require(legal, f"C4: {self.name} has {len(self.epilogues)} epilogues and {len(self.extras)} extra operands")
        if self.epilogue is not None:
            self.check_epilogue(self.extras, list(self.access), self.epilogue)

    def reference(self, *arrays: Array) -> Sequence[Array]:
        x, axis, log, epilogue = arrays[0], self.axis.value.data, bool(self.log.value.data), self.epilogue
        if epilogue is None:
            return [normalized(x, axis, log=log)]
        shares = normalized(x.astype(numpy_dtype(accumulator_type(epilogue))), axis, log=log)
        return [self.apply_epilogue(shares, arrays, list(self.access), epilogue)]


def normalized(x: Array, axis: int, *, log: bool) -> Array:
    """The softmax of an array along an axis, or its logarithm."""
    import numpy as np

    if x.size == 0:
        return x
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        shifted = wide - wide.max(axis, keepdims=True)
        total = np.exp(shifted).sum(axis, keepdims=True)
        result = shifted - np.log(total) if log else np.exp(shifted) / total
        return result.astype(x.dtype)
