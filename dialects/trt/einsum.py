"""Sums of products in Einstein's notation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.broadcasting import common_length
from mlirt.dialects.einsum_equation import Equation, parse_equation
from mlirt.dialects.length_requirements import LengthRequirement, equal
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, rank, with_dims
from mlirt.dialects.trt.operand_checks import numbers, same_elements

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class EinsumOp(TensorOp):
    """Multiply the inputs along equal labels and sum over the labels that the output lacks (tensorrt-features.md#1.9a,
    1.9b).

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
        self.parsed()

    def _occurrences(self) -> dict[str, list[Dim]]:
        """The lengths behind each label; those of axes under an ellipsis are digits."""
        found: dict[str, list[Dim]] = {}
        for labels, value in zip(self.parsed().inputs, self.inputs, strict=True):
            for label, length in zip(labels, dims(value.type), strict=True):
                found.setdefault(label, []).append(length)
        return found

    def length_requirements(self) -> Iterator[LengthRequirement]:
        from mlirt.dialects.trt.broadcast_axes import broadcast_requirements

        for label, (first, *others) in self._occurrences().items():
            for other in () if label.isdigit() else others:
                fault = f"label {label!r} of {self.name} {self.equation.data!r} has lengths {{left}} and {{right}}"
                yield equal("C4", "", first, other, fault)
        yield from broadcast_requirements(self, "C4")

    def _lengths(self) -> dict[str, Dim]:
        """The length behind each label: a number where there is one."""
        return {label: _together(label, lengths) for label, lengths in self._occurrences().items()}

    def infer(self) -> Sequence[Tensor]:
        lengths = self._lengths()
        return [with_dims(self.inputs[0].type, [lengths[label] for label in self.parsed().output])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        from mlirt.dialects.wide_arithmetic import narrow, widen

        equation = ",".join(self.equation.data.replace(" ", "").split(","))
        return [narrow(np.asarray(np.einsum(equation, *map(widen, arrays), optimize=True)), arrays[0].dtype)]


def _together(label: str, lengths: Sequence[Dim]) -> Dim:
    if label.isdigit():
        return common_length(lengths)
    return next((length for length in lengths if isinstance(length, int)), lengths[0])
