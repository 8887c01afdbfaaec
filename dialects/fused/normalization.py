"""Results that depend on their element and on sums over its row: layer, group and instance normalisation in one op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.traits import Pure

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.fused_op import (
    FusedOp,
    bind_dims,
    check_access,
    check_region,
    element_types,
    gather_operand,
    numbers_of,
    region_values,
    yielded,
)
from mlirt.dialects.fused.reduction import ReductionKindAttr, combine
from mlirt.dialects.integer_list import integer_list, integers
from mlirt.dialects.scalar_semantics import evaluate_region
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, element_of, numpy_dtype, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class NormalizationOp(FusedOp):
    """`result[d..] = body(inputs.., t1, t2, ..)`, where each total is a reduction of the row that the element is in.

    The iteration space is the dimensions of the result; a row goes along `axes`. Each entry of `kinds` is a reduction
    with two regions of `stages`: the first takes one scalar per input and the totals before it and yields what is
    combined over the row; the second takes the combination, the inputs and the totals before it and yields the total.
    A mean, a variance and the scaled difference are a layer normalisation.

    `further` results have the same dimensions; the body yields an element of each: what one reader takes in half
    precision another one may take in int8.

    With `reduced` the result has one element for each row: the iteration space goes on with these extents, which are
    the axes, and the body is evaluated once for a row. A maximum and a sum of exponentials are a logarithm of these.

    C1: one access per input. C2: two stages per kind. C3: the body takes the inputs and all totals and yields an
    element of each result. C4: `axes` are different axes of the iteration space, with `reduced` just its last ones. C5:
    the second region of a stage, and with `reduced` the body, only use inputs that are the same for the whole row. C6:
    all results have the same dimensions.
    """

    name = "fused.normalization"
    FAMILY: ClassVar = "rows"

    inputs = var_operand_def(TensorType)
    access = prop_def(ArrayAttr[AccessAttr])
    axes = prop_def(DenseArrayBase.constr(i64))
    kinds = prop_def(ArrayAttr[ReductionKindAttr])
    reduced = prop_def(DimsAttr, default_value=DimsAttr.of(()))
    output = result_def(TensorType)
    further = var_result_def(TensorType)
    body = region_def("single_block")
    stages = var_region_def("single_block")

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$inputs attr-dict `:` functional-type($inputs, results) $body $stages"

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        access: Sequence[AccessAttr],
        axes: Sequence[int],
        kinds: Sequence[ReduceKind],
        result: Attribute,
        body: Region,
        stages: Sequence[Region],
        reduced: Sequence[Dim] = (),
        further: Sequence[Attribute] = (),
    ):
        super().__init__(
            operands=[inputs],
            properties={
                "access": ArrayAttr(access),
                "axes": integer_list(axes),
                "kinds": ArrayAttr([ReductionKindAttr(kind) for kind in kinds]),
                "reduced": DimsAttr.of(reduced),
            },
            result_types=[result, list(further)],
            regions=[body, list(stages)],
        )

    def space(self) -> tuple[Dim, ...]:
        """The extents of the iteration dimensions."""
        return (*dims(self.output.type), *self.reduced.dims())

    def reductions(self) -> list[tuple[ReduceKind, Region, Region]]:
        """(kind, what is combined, what becomes of it) of each stage."""
        regions = list(self.stages)
        return [(kind.data, regions[2 * k], regions[2 * k + 1]) for k, kind in enumerate(self.kinds)]

    def is_whole_row(self, position: int) -> bool:
        """Whether an input is the same for all elements of a row."""
        used = {name for index in list(self.access)[position].indices() for name in symbols(index)}
        return not any(f"d{axis}" in used for axis in integers(self.axes))

    def verify_(self) -> None:
        space, kept = self.space(), rank(self.output.type)
        require(
            len(self.access) == len(self.inputs),
            f"C1: {self.name} has {len(self.inputs)} operands and {len(self.access)} accesses",
        )
        for operand, access in zip(self.inputs, self.access, strict=True):
            check_access(self, access, operand.type, len(space))
        require(
            len(self.stages) == 2 * len(self.kinds),
            f"C2: {self.name} has {len(self.kinds)} reductions and {len(self.stages)} regions for them",
        )
        axes = integers(self.axes)
        legal = len(set(axes)) == len(axes) and all(0 <= axis < len(space) for axis in axes)
        legal = legal and (len(space) == kept or tuple(axes) == tuple(range(kept, len(space))))
        rows = f" and rows of {self.reduced}" if len(space) > kept else ""
        require(legal, f"C4: {self.name} has axes {list(axes)} of {self.output.type}{rows}")
        given = element_types(self.inputs)
        for _, element, finish in self.reductions():
            check_region(self, element, given, [value.type for value in yielded(element)])
            self._check_whole_row(finish.block.args[1 : 1 + len(self.inputs)], "the end of a reduction")
            accumulator = [value.type for value in yielded(element)]
            check_region(self, finish, [*accumulator, *given], [value.type for value in yielded(finish)])
            given = [*given, *(value.type for value in yielded(finish))]
        check_region(self, self.body, given, element_types(self.results))
        same = all(dims(one.type) == dims(self.output.type) for one in self.further)
        require(same, f"C6: the results of {self.name} differ in dimensions")
        if len(space) > kept:
            self._check_whole_row(self.body.block.args[: len(self.inputs)], "the body")

    def _check_whole_row(self, arguments: Sequence[SSAValue], what: str) -> None:
        differ = [
            argument
            for position, argument in enumerate(arguments)
            if argument.first_use is not None and not self.is_whole_row(position)
        ]
        require(not differ, f"C5: {what} of {self.name} uses an input that differs within the row")

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        env = bind_dims(self, arrays)
        space = numbers_of(self.space(), env)
        values = region_values(space, env)
        scalars = [gather_operand(a, access, space, env) for a, access in zip(arrays, self.access, strict=True)]
        axes = integers(self.axes)
        for kind, element, finish in self.reductions():
            dtype = numpy_dtype(finish.block.args[0].type)
            (found,) = evaluate_region(element, scalars, values)
            total = combine(kind, np.broadcast_to(found, space).astype(dtype), axes)
            wide = np.broadcast_to(np.expand_dims(total, axes).astype(dtype), space)
            (ended,) = evaluate_region(finish, [wide, *scalars], values)
            scalars.append(np.broadcast_to(ended, space))
        kept = rank(self.output.type)
        found = evaluate_region(self.body, scalars, values)
        dtypes = [numpy_dtype(element_of(result.type)) for result in self.results]
        wholes = [np.broadcast_to(one, space).astype(dtype) for one, dtype in zip(found, dtypes, strict=True)]
        return [whole[(..., *(0 for _ in space[kept:]))] for whole in wholes]
