"""Tensors of random numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import auto
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerAttr, TensorType, f32, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.length_requirements import LengthRequirement, at_least
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, element_of, is_float, numpy_dtype, rank, tensor
from mlirt.dialects.trt.operand_checks import same_elements
from mlirt.dialects.trt.shape_values import shape_operand

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class RandomKind(StrEnum):
    UNIFORM = auto()
    NORMAL = auto()


@irdl_attr_definition
class RandomKindAttr(EnumAttribute[RandomKind], SpacedOpaqueSyntaxAttribute):
    name = "trt.random_kind"


@irdl_op_definition
class RandomOp(TensorOp):
    """Random numbers (tensorrt-features.md#1.11b): `uniform` between alpha and beta, `normal` with mean alpha and
    deviation beta.

    They follow from `seed`, the number of the `run` and an element's place: other runs and other seeds have others.
    Uniform numbers have the same bits on every target, normal ones differ by a few units in the last place.
    `alpha` is a scalar, 0 if absent, `beta` one, 1 if absent. The dimensions are the property `output_dims` or the 1-D
    integer operand `shape`. The element type is that of alpha, else of beta, else float32.

    C1: the dimensions are given once. C2: a shape operand is a 1-D integer tensor of constant length. C3: run is a 0-D
    int64 tensor. C4: alpha and beta are scalars of one element type of floats. C5: lengths are not negative.

    Example: `%y = trt.random normal %r {seed = 7 : i64, output_dims = #trt.dims<["2", "3"]>} : tensor<i64> ->
    tensor<2x3xf32>`
    """

    name = "trt.random"

    kind = prop_def(RandomKindAttr)
    run = operand_def(TensorType)
    shape = opt_operand_def(TensorType)
    alpha = opt_operand_def(TensorType)
    beta = opt_operand_def(TensorType)
    seed = prop_def(IntegerAttr, default_value=IntegerAttr(0, i64))
    output_dims = opt_prop_def(DimsAttr)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(), AttrSizedOperandSegments(as_property=True))
    assembly_format = (
        "$kind $run (`shape` `(` $shape^ `:` type($shape) `)`)? (`alpha` `(` $alpha^ `:` type($alpha) `)`)?"
        " (`beta` `(` $beta^ `:` type($beta) `)`)? attr-dict `:` type($run) `->` type($output)"
    )

    def lengths(self) -> tuple[Dim, ...]:
        """The dimensions of the result."""
        both = f"C1: {self.name} needs either a shape operand or output_dims"
        require((self.shape is None) != (self.output_dims is None), both)
        if self.shape is not None:
            return shape_operand(self, "C2", self.shape, "shape")
        assert self.output_dims is not None
        return self.output_dims.dims()

    def check(self) -> None:
        self.lengths()
        is_number = rank(self.run.type) == 0 and element_of(self.run.type) == i64
        require(is_number, f"C3: the run of {self.name} is {self.run.type}, expected tensor<i64>")
        given = [operand for operand in (self.alpha, self.beta) if operand is not None]
        fits = all(rank(operand.type) == 0 and is_float(element_of(operand.type)) for operand in given)
        require(fits, f"C4: alpha and beta of {self.name} must be scalar floats")
        same_elements(self, "C4", given)

    def length_requirements(self) -> Iterator[LengthRequirement]:
        for axis, length in enumerate(self.lengths()):
            fault = f"{self.name} has a negative length: [{{left}}] on axis {axis}"
            yield at_least("C5", fault, length, 0)

    def infer(self) -> Sequence[Tensor]:
        given = self.alpha or self.beta
        return [tensor(f32 if given is None else element_of(given.type), self.lengths())]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from math import prod

        import numpy as np

        from mlirt.dialects.random_numbers import normal, uniform
        from mlirt.dialects.symbol_values import resolve

        run, *rest = arrays
        given = iter(rest)
        if self.shape is not None:
            sizes = tuple(int(size) for size in next(given))
        else:
            sizes = resolve(self, self.lengths(), arrays)
        alpha = next(given).astype(np.float32) if self.alpha is not None else np.float32(0)
        beta = next(given).astype(np.float32) if self.beta is not None else np.float32(1)
        is_uniform = self.kind.data is RandomKind.UNIFORM
        numbers = (uniform if is_uniform else normal)(self.seed.value.data, int(run), prod(sizes)).reshape(sizes)
        # The product is exact in double precision: as with one instruction, the sum is rounded alone.
        exact = numbers.astype(np.float64) * ((beta - alpha) if is_uniform else beta) + alpha
        return [exact.astype(np.float32).astype(numpy_dtype(element_of(self.output.type)))]
