"""Combining many elements into one: sums, products, extremes, each with what happens before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import ArrayAttr, TensorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Region, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

from mlirt.dialects.combine import COMBINES, ReduceKind, identity
from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.epilogue import EpilogueOp, accumulator_type
from mlirt.dialects.fused.fused_op import (
    bind_dims,
    check_access,
    check_region,
    element_types,
    gather_operand,
    numbers_of,
    region_values,
)
from mlirt.dialects.scalar_semantics import evaluate_region
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, is_float, numpy_dtype, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_attr_definition
class ReductionKindAttr(EnumAttribute[ReduceKind], SpacedOpaqueSyntaxAttribute):
    name = "fused.reduction_kind"


@irdl_op_definition
class ReductionOp(EpilogueOp):
    """`result[p..] = epilogue(combine over r.. of body(inputs..), extras..)`.

    The iteration space is the dimensions of the result (`d0`, `d1`, ..) followed by the extents in `reduced`;
    `access` is over all of it, `extra_access` over the result's. A reduced dimension that the result keeps has length
    1 there, and no access reads it. `max` and `min` propagate NaN. Over no elements the accumulator is 0, 1, the
    smallest, the largest, true or false.

    C1: one access per input and per extra. C2: the body takes one scalar per input and yields the accumulator.
    C3: `and` and `or` combine integers or booleans.

    Example: `%y = fused.reduction add(%x) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["n"]>}
    : (tensor<..>) -> tensor<4xf32> { ^bb0(%e: f32): fused.yield %e : f32 } { ^bb0(%acc: f32): fused.yield %acc : f32 }`
    """

    name = "fused.reduction"
    FAMILY: ClassVar = "rows"

    kind = prop_def(ReductionKindAttr)
    inputs = var_operand_def(TensorType)
    extras = var_operand_def(TensorType)
    access = prop_def(ArrayAttr[AccessAttr])
    extra_access = prop_def(ArrayAttr[AccessAttr], default_value=ArrayAttr[AccessAttr]([]))
    reduced = prop_def(DimsAttr)
    output = result_def(TensorType)
    body = region_def("single_block")
    epilogue = region_def("single_block")

    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$kind `(` $inputs `)` (`extras` `(` $extras^ `:` type($extras) `)`)? attr-dict "
        "`:` functional-type($inputs, results) $body $epilogue"
    )

    def __init__(
        self,
        kind: ReduceKind,
        inputs: Sequence[SSAValue],
        access: Sequence[AccessAttr],
        reduced: Sequence[Dim],
        result: Attribute,
        body: Region,
        epilogue: Region,
        extras: Sequence[SSAValue] = (),
        extra_access: Sequence[AccessAttr] = (),
    ):
        super().__init__(
            operands=[inputs, extras],
            properties={
                "kind": ReductionKindAttr(kind),
                "access": ArrayAttr(access),
                "extra_access": ArrayAttr(extra_access),
                "reduced": DimsAttr.of(reduced),
            },
            result_types=[result],
            regions=[body, epilogue],
        )

    def verify_(self) -> None:
        require(
            len(self.access) == len(self.inputs),
            f"C1: {self.name} has {len(self.inputs)} inputs and {len(self.access)} accesses",
        )
        space = rank(self.output.type) + len(self.reduced.dims())
        for operand, access in zip(self.inputs, self.access, strict=True):
            check_access(self, access, operand.type, space)
        self.check_epilogue(self.extras, list(self.extra_access), self.epilogue)
        accumulator = accumulator_type(self.epilogue)
        check_region(self, self.body, element_types(self.inputs), [accumulator])
        is_bitwise = self.kind.data in (ReduceKind.AND, ReduceKind.OR)
        legal = not is_bitwise or not is_float(accumulator)
        require(legal, f"C3: {self.name} {self.kind.data} combines integers or booleans, not {accumulator}")

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        env = bind_dims(self, arrays)
        kept = numbers_of(dims(self.output.type), env)
        space = [*kept, *numbers_of(self.reduced.dims(), env)]
        inputs = arrays[: len(self.inputs)]
        picked = [gather_operand(a, access, space, env) for a, access in zip(inputs, self.access, strict=True)]
        (value,) = evaluate_region(self.body, picked, region_values(space, env))
        dtype = numpy_dtype(accumulator_type(self.epilogue))
        value = np.broadcast_to(value, space).astype(dtype)
        total = combine(self.kind.data, value, tuple(range(len(kept), len(space))))
        return [self.apply_epilogue(total, arrays, list(self.extra_access), self.epilogue)]


def combine(kind: ReduceKind, values: Array, axes: tuple[int, ...]) -> Array:
    """Combine an array along axes, floating-point sums and products in double precision."""
    import numpy as np

    function = COMBINES[kind].ufunc()
    with np.errstate(over="ignore", invalid="ignore"):
        if kind in (ReduceKind.ADD, ReduceKind.MUL):
            wide = np.float64 if values.dtype.kind in "fV" else values.dtype
            return np.asarray(function.reduce(values, axes, dtype=wide))
        start = np.asarray(identity(kind, values.dtype.name)).astype(values.dtype)[()]
        return np.asarray(function.reduce(values, axes, initial=start))
