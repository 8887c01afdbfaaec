"""Fuses a pooling into the reduction behind it, which reads the elements of each window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as places_of
from math import prod

from xdsl.ir import Attribute, Block, Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.fused_op import IndexOp, SizeOp, YieldOp, copy_region
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.scalar_builder import Scalars
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, is_float, is_float8
from mlirt.passes.fusion.scalar_bodies import tidy
from mlirt.passes.fusion.view_composition import through_view
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule, some

WINDOW = op(WindowOp).named("window")


@dataclass(frozen=True)
class FuseWindowReductionPass(RulePass):
    """Let a reduction pool what it reads, element by element, where nobody else reads the pooled tensor.

    The windows share no element, so that each is read once, have at most `most-elements` and no padding. The pooling
    may have an epilogue that depends on values alone, and a reshape may lie between both.

    Before:

        %p = fused.window max %x {window = [2], stride = [2], ..} : (tensor<4x1x8xf32>) -> tensor<4x1x4xf32>
        %y = fused.reduction add(%p) [d0, 0, d1] over 4 {p} : (tensor<4x1x4xf32>) -> tensor<4xf32>

    After:

        %y = fused.reduction add(%x, %x) [d0, 0, 2*d1] [d0, 0, 2*d1 + 1] over 4 {max(a, b)} : (..) -> tensor<4xf32>
    """

    name = "fuse-window-reduction"

    most_elements: int = option(16, at_least=1)

    @rule(op(ReductionOp, inputs=some(WINDOW | op(ViewOp, WINDOW).named("view"))).named("reduction"))
    def fuse(self, m: Match, reduction: ReductionOp, window: WindowOp, view: ViewOp | None) -> Outcome:
        value = window.output if view is None else view.output
        if (reason := self._obstacle(reduction, window, value)) is not None:
            return reason
        position = list(reduction.inputs).index(value)
        access = _behind(list(reduction.access)[position], reduction, window, value)
        if access is None:
            return "a reshape between them joins axes"
        return m.insert(_fused(reduction, window, position, access), window, reduction)

    def _obstacle(self, reduction: ReductionOp, window: WindowOp, value: SSAValue) -> str | None:
        """Why a reduction does not pool what it reads; None where it does."""
        if list(reduction.operands).count(value) != 1 or value not in reduction.inputs:
            return "it reads {window} more than once"
        if window.extras or not _is_pointwise(window):
            return "{window} computes more"
        wide = accumulator_type(window.epilogue)
        element = element_of(window.input.type)
        if not is_float(element) or is_float8(element) or not is_float(wide):
            return "{window} does not combine floats"
        sizes, steps = integers(window.window), integers(window.stride)
        if prod(sizes) > self.most_elements:
            return f"windows of {{window}} have more than {self.most_elements} elements (most-elements)"
        apart = all(step >= size for step, size in zip(steps, sizes, strict=True))
        if not apart or any(one != 1 for one in integers(window.dilation)) or not window.is_inside():
            return "windows of {window} overlap, or reach beyond the input"
        return None


def _is_pointwise(window: WindowOp) -> bool:
    return not any(isinstance(inner, IndexOp | SizeOp) for inner in window.epilogue.block.ops)


def _behind(access: AccessAttr, reduction: ReductionOp, window: WindowOp, value: SSAValue) -> Sequence[Dim] | None:
    """The indices of the pooled tensor that the reduction reads, in front of a reshape."""
    if value is window.output:
        return access.indices()
    space = (*dims(reduction.output.type), *reduction.reduced.dims())
    extents: Mapping[str, Dim] = {f"d{axis}": size for axis, size in enumerate(space)}
    return through_view(dims(window.output.type), dims(value.type), access.indices(), extents)


def _elements(window: WindowOp, indices: Sequence[Dim]) -> Iterator[AccessAttr]:
    """Where each element of a window lies."""
    steps = integers(window.stride)
    for place in places_of(*map(range, integers(window.window))):
        found = list(indices)
        for axis, step, own in zip(window.axes(), steps, place, strict=True):
            found[axis] = found[axis] * step + own
        yield AccessAttr.of(found)


def _fused(reduction: ReductionOp, window: WindowOp, position: int, indices: Sequence[Dim]) -> ReductionOp:
    """The reduction of the elements of the windows, without a place."""
    own = list(_elements(window, indices))
    inputs, access = list(reduction.inputs), list(reduction.access)
    inputs[position : position + 1] = [window.input] * len(own)
    access[position : position + 1] = own
    body = _pooled(reduction, window, position, [element_of(value.type) for value in inputs])
    epilogue = reduction.detach_region(reduction.epilogue)
    extras = list(reduction.extras), list(reduction.extra_access)
    made = ReductionOp(
        reduction.kind.data, inputs, access, reduction.reduced.dims(), reduction.output.type, body, epilogue, *extras
    )
    made.attributes = dict(reduction.attributes)
    return made


def _pooled(reduction: ReductionOp, window: WindowOp, position: int, types: Sequence[Attribute]) -> Region:
    """The body of the reduction behind the pooling of one of its inputs."""
    block, count = Block(arg_types=types), prod(integers(window.window))
    wide, kind = accumulator_type(window.epilogue), window.kind.data
    s, source = Scalars(block, wide), element_of(window.input.type)
    first, *rest = (s.cast(value, source) for value in block.args[position : position + count])
    for one in rest:
        first = s.max(first, one) if kind is WindowKind.MAX else s.add(first, one)
    if kind is WindowKind.AVERAGE:
        first = s.div(first, s.constant(count))
    (pooled,) = copy_region(window.epilogue, [first], block.add_op)
    arguments = [*block.args[:position], pooled, *block.args[position + count :]]
    block.add_op(YieldOp(operands=[copy_region(reduction.body, arguments, block.add_op)]))
    tidy(block)
    return Region(block)


__all__ = ["FuseWindowReductionPass"]
