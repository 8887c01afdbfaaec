"""Sums of products in Einstein's notation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.broadcasting import common_length
from mlirt.dialects.einsum_equation import Equation, parse_equation
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, rank, with_dims
from mlirt.dialects.trt.operand_checks import numbers, same_elements

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class EinsumOp(TensorOp):
    """Multiply the inputs along equal labels and sum over the labels that the output lacks (features 1.9a, 1.9b).

    `ij,jk->ik` is a matrix product; without `->` the output has the labels that occur once, in alphabetical order,
    after the axes of an ellipsis. A label that occurs twice in one input takes its diagonal.

    C1: there is at least one input, and all have one element type, not boolean. C2: the equation is well formed, with
    one term per input. C3: a term has as many labels as its input has axes. C4: equal labels have equal lengths;
    lengths under an ellipsis may also be 1.

    Example: `%y = trt.einsum %a, %b {equation = "ij,jk->ik"} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>`
    """

    name = "trt.einsum"

    inputs = var_operand_def(TensorType)
    equation = prop_def(StringAttr)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$inputs attr-dict `:` functional-type(operands, results)"

    def parsed(self) -> Equation:
        """The labels of each input and of the output, the ellipsis spelled out."""
        try:
            return parse_equation(self.equation.data, [rank(value.type) for value in self.inputs])
        except ValueError as error:
            raise VerifyException(f"{error} in {self.name} {self.equation.data!r}") from error

    def check(self) -> None:
        require(len(self.inputs) > 0, f"C1: {self.name} needs at least one input")
        same_elements(self, "C1")
        numbers(self, "C1", self.inputs[0].type)
        self._lengths()

    def _lengths(self) -> dict[str, Dim]:
        """The length behind each label."""
        found: dict[str, Dim] = {}
        shared: dict[str, list[Dim]] = {}
        for labels, value in zip(self.parsed().inputs, self.inputs, strict=True):
            for label, length in zip(labels, dims(value.type), strict=True):
                known = found.setdefault(label, length)
                if label.isdigit():
                    shared.setdefault(label, []).append(length)
                if known == length or (label.isdigit() and length == 1):
                    continue
                if isinstance(length, int):
                    found[label] = length
                clash = isinstance(length, int) and isinstance(known, int) and not (label.isdigit() and known == 1)
                require(
                    not clash,
                    f"C4: label {label!r} of {self.name} {self.equation.data!r} has lengths {known} and {length}",
                )
                if known == 1:
                    found[label] = length
        return found | {label: common_length(lengths) for label, lengths in shared.items()}

    def infer(self) -> Sequence[Tensor]:
        lengths = self._lengths()
        return [with_dims(self.inputs[0].type, [lengths[label] for label in self.parsed().output])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        from mlirt.dialects.wide_arithmetic import narrow, widen

        equation = ",".join(self.equation.data.replace(" ", "").split(","))
        return [narrow(np.asarray(np.einsum(equation, *map(widen, arrays), optimize=True)), arrays[0].dtype)]
