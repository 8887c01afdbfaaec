"""Tensors made from their indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import auto
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType, f32
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.length_requirements import LengthRequirement, at_least, equal
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, numpy_dtype, rank, tensor
from mlirt.dialects.trt.operand_checks import element_or, same_elements
from mlirt.dialects.trt.shape_values import shape_operand

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class FillKind(StrEnum):
    LINSPACE = auto()


@irdl_attr_definition
class FillKindAttr(EnumAttribute[FillKind], SpacedOpaqueSyntaxAttribute):
    name = "trt.fill_kind"


@irdl_op_definition
class FillOp(TensorOp):
    """y[i..] = alpha + sum over axes k of beta_k * i_k (tensorrt-features.md#1.11a, linspace).

    `alpha` is a 0-D operand, 0 if absent; `beta` has one value per axis, or is 0-D for all axes, 0 if absent. The
    dimensions are the property `output_dims` or the 1-D integer operand `shape`. The element type is that of alpha,
    else of beta, else of the result.

    C1: the dimensions are given once. C2: a shape operand is a 1-D integer tensor of constant length. C3: alpha is
    0-D, beta 0-D or 1-D with one value per axis. C4: alpha and beta have one element type. C5: lengths are not
    negative.

    Example: `%y = trt.fill linspace alpha(%a : tensor<i64>) beta(%b : tensor<i64>) {output_dims = #trt.dims<["8"]>} :
    tensor<8xi64>`
    """

    name = "trt.fill"

    kind = prop_def(FillKindAttr)
    shape = opt_operand_def(TensorType)
    alpha = opt_operand_def(TensorType)
    beta = opt_operand_def(TensorType)
    output_dims = opt_prop_def(DimsAttr)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(), AttrSizedOperandSegments(as_property=True))
    assembly_format = (
        "$kind (`shape` `(` $shape^ `:` type($shape) `)`)? (`alpha` `(` $alpha^ `:` type($alpha) `)`)?"
        " (`beta` `(` $beta^ `:` type($beta) `)`)? attr-dict `:` type($output)"
    )

    def lengths(self) -> tuple[Dim, ...]:
        """The dimensions of the result."""
        if self.shape is not None:
            require(
                self.output_dims is None, f"C1: {self.name} has a shape operand and output_dims, expected one of them"
            )
            return shape_operand(self, "C2", self.shape, "shape")
        require(self.output_dims is not None, f"C1: {self.name} needs a shape operand or output_dims")
        assert self.output_dims is not None
        return self.output_dims.dims()

    def check(self) -> None:
        lengths = self.lengths()
        if self.alpha is not None:
            require(rank(self.alpha.type) == 0, f"C3: alpha of {self.name} is {self.alpha.type}, expected a scalar")
        if self.beta is not None:
            fits = rank(self.beta.type) <= 1
            require(fits, f"C3: beta of {self.name} is {self.beta.type}, expected a scalar or {len(lengths)} values")
        same_elements(self, "C4", [operand for operand in (self.alpha, self.beta) if operand is not None])

    def length_requirements(self) -> Iterator[LengthRequirement]:
        for axis, length in enumerate(self.lengths()):
            fault = f"{self.name} has a negative length: [{{left}}] on axis {axis}"
            yield at_least("C5", fault, length, 0)
        if self.beta is not None and rank(self.beta.type):
            fault = f"beta of {self.name} has {{right}} values, expected a scalar or {{left}} values"
            yield equal("C3", "", len(self.lengths()), dims(self.beta.type)[0], fault)

    def _element(self) -> Attribute:
        given = self.alpha or self.beta
        return element_or(self.output.type, f32) if given is None else element_of(given.type)

    def infer(self) -> Sequence[Tensor]:
        return [tensor(self._element(), self.lengths())]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        from mlirt.dialects.symbol_values import resolve
        from mlirt.dialects.wide_arithmetic import narrow, widen

        given = iter(arrays)
        sizes = (
            tuple(int(size) for size in next(given))
            if self.shape is not None
            else resolve(self, self.lengths(), arrays)
        )
        y = widen(next(given)) if self.alpha is not None else np.zeros((), np.int64)
        beta = widen(next(given)) if self.beta is not None else np.zeros((), np.int64)
        for axis, (size, step) in enumerate(zip(sizes, np.broadcast_to(beta, (len(sizes),)), strict=True)):
            y = y + (np.arange(size) * step).reshape([-1 if k == axis else 1 for k in range(len(sizes))])
        return [narrow(np.broadcast_to(y, sizes), numpy_dtype(self._element()))]
