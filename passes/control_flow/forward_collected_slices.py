"""Replaces what a loop collects slice by slice of a tensor by that tensor."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.constant_values import splat_of
from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.indexing import GatherMode, ScatterMode, ScatterReduction
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.scatter import ScatterOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.shape import ShapeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.passes.control_flow.iteration_formulas import ITERATION, IterationFormulas
from mlirt.passes.control_flow.region_rewriting import is_outside
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.rules import Outcome, RulePass, op, rule


@dataclass(frozen=True)
class ForwardCollectedSlicesPass(RulePass):
    """Let the readers of what a counted loop collects read the tensor whose slices these are, perhaps in reverse.

    Every iteration writes a slice, and there is one for each place; so nothing is left of what was there before.

    Before:

        %t = scf.for %i = %zero to %steps step %one iter_args(%a = %start) -> (tensor<100x1x4xf32>) {
          %e = trt.gather %y, %j : (tensor<100x1x4xf32>, tensor<i64>) -> tensor<1x4xf32>
          %b = trt.scatter nd %a, %k, %e : (tensor<100x1x4xf32>, tensor<1x1xi64>, tensor<1x1x4xf32>) ..
          scf.yield %b : tensor<100x1x4xf32>
        }
        func.return %t : tensor<100x1x4xf32>

    After, with nobody left who reads the loop:

        func.return %y : tensor<100x1x4xf32>
    """

    name = "forward-collected-slices"
    again = False

    @rule(op(scf.ForOp).named("loop"))
    def forward(self, ctx: Context, loop: scf.ForOp) -> Outcome:
        numbers, has_changed = IterationFormulas(loop, ctx), False
        for place in range(len(loop.results)):
            if (found := _collected(loop, place, numbers)) is not None:
                _forward(loop, place, found, ctx)
                has_changed = True
        return loop if has_changed else "nothing that it collects has all slices of a tensor"


@dataclass(frozen=True)
class _Collected:
    """Slice i of `source` lies at place i, or at the other end's place i."""

    source: SSAValue
    is_reversed: bool


def _collected(loop: scf.ForOp, place: int, numbers: IterationFormulas) -> _Collected | None:
    end = loop.body.block.last_op
    assert end is not None
    total, op = loop.body.block.args[1 + place], end.operands[place].owner
    if not isinstance(op, ScatterOp) or op.data is not total or numbers.count is None:
        return None
    plain = op.mode.data is ScatterMode.ND and op.reduction.data is ScatterReduction.NONE
    slice_ = _without_reshape(op.updates).owner
    is_read = any(use.operation is not op and not isinstance(use.operation, ShapeOp) for use in total.uses)
    if not plain or is_read or dims(op.indices.type) != (1, 1) or not isinstance(slice_, GatherOp):
        return None
    is_slice = slice_.mode.data is GatherMode.DEFAULT and rank(slice_.indices.type) == 0 and slice_.axis.value.data == 0
    lengths = {dims(slice_.data.type)[0], dims(total.type)[0]}
    rows = (1, *dims(slice_.output.type))
    if not is_slice or lengths != {numbers.count} or not is_outside(slice_.data, loop):
        return None
    if _without_ones(dims(op.updates.type)) != _without_ones(rows):
        return None
    directions = [_is_backwards(value, numbers) for value in (op.indices, slice_.indices)]
    return None if None in directions else _Collected(slice_.data, directions[0] != directions[1])


def _is_backwards(value: SSAValue, numbers: IterationFormulas) -> bool | None:
    """Whether a place goes from the last one to the first; None where it does not go the other way either."""
    number, count = numbers.number(_inside_of_bounds(_without_reshape(value))), numbers.count
    if number is None or count is None or symbols(count) & symbols(ITERATION):
        return None
    last: Dim = count - 1 - ITERATION
    return {ITERATION: False, last: True}.get(number)


def _inside_of_bounds(value: SSAValue) -> SSAValue:
    """A place, where one before the start becomes one behind the end."""
    op = value.owner
    if not isinstance(op, SelectOp) or not isinstance(op.condition.owner, ElementwiseOp):
        return value
    below = op.condition.owner
    is_guard = below.kind.data is ElementwiseKind.LESS and below.lhs is op.else_input and splat_of(below.rhs) == 0
    return op.else_input if is_guard else value


def _without_reshape(value: SSAValue) -> SSAValue:
    """The same numbers in the same order before they got other dimensions."""
    while isinstance(op := value.owner, ShuffleOp):
        if op.first_transpose is not None or op.second_transpose is not None:
            break
        if _without_ones(dims(op.input.type)) != _without_ones(dims(op.output.type)):
            break
        value = op.input
    return value


def _without_ones(shape: tuple[Dim, ...]) -> list[Dim]:
    return [size for size in shape if size != 1]


def _forward(loop: scf.ForOp, place: int, found: _Collected, ctx: Context) -> None:
    block, end = loop.parent, loop.body.block.last_op
    assert block is not None
    assert end is not None
    made = LayerBuilder.in_front_of(loop, ctx)
    value = found.source
    if found.is_reversed:
        sizes = list(dims(value.type))
        properties: dict[str, Attribute] = {
            "start": DimsAttr.of([sizes[0] - 1, *[0] * (len(sizes) - 1)]),
            "size": DimsAttr.of(sizes),
            "stride": DenseArrayBase.from_list(i64, [-1, *[1] * (len(sizes) - 1)]),
        }
        value = made.layer(SliceOp, [value, None, None, None, None], properties)
    result = loop.results[place]
    result.replace_all_uses_with(made.shaped(value, dims(result.type)))
    end.operands[place] = loop.body.block.args[1 + place]
