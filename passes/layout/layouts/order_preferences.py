"""Layout preferences: in which memory orders an op can work, at what cost, and in which order it wants its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.fused.resize import ResizeOp
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.layout import Layout
from mlirt.dialects.symbolic import symbols
from mlirt.dialects.tensor_types import (
    channels_last,
    dims,
    element_count,
    element_of,
    is_float,
    memory_order,
    rank,
    strides,
    with_order,
)
from mlirt.kernels.lib.pooled_planes import MIN_ELEMENTS, has_result_tiles, has_tiles
from mlirt.passes.layout.layouts.io_borders import direct_values, is_io_border
from mlirt.passes.layout.layouts.order_costs import FORBIDDEN, LAUNCH, Costs, is_constant_like

_ACROSS_ROWS = 2.6  # times as long as along memory, of a softmax: 64 and 128 channels of halves in planes on an H200
_FEW_SUMS, _LONG_SUMS = 256 * 1024, 64  # as in `split-reductions`


class Order(Enum):
    """How an image lies: its dimensions in their order, or the channels innermost."""

    PLAIN = auto()
    LAST = auto()


@dataclass(frozen=True)
class Preference:
    """An operand should lie in the order in which the op works (`None`), or in a fixed one.

    `price` is what the op pays where it does not; without a price the operand has to be copied. With `reorders` it is
    the order in which the op reads, which is another one than that of its results where that pays.
    """

    operand: int
    order: Order | None = None
    price: float | None = None
    reorders: bool = False


@dataclass
class Choice:
    """The costs of an op by the order of its results, and what it wants.

    Where it may read in one order and write in another, `reads` has the costs by the order in which it reads, and
    `reordering` what it costs to write the channels last, and to write planes of them, where it reads the other way.
    """

    plain: float = 0.0
    last: float = inf
    preferences: list[Preference] = field(default_factory=list[Preference])
    reads: tuple[float, float] = (0.0, 0.0)
    reordering: tuple[float, float] | None = None


def choice_of(op: Operation, costs: Costs) -> Choice:
    """The choice of a fused op; ops without a rule work on plain tensors."""
    rule = _RULES.get(type(op))
    if rule is not None and all(result.type.name == TensorType.name for result in op.results):
        return rule(op, costs)
    read = [k for k, value in enumerate(op.operands) if has_orders(value.type) and not is_io_border(op, value)]
    return Choice(preferences=[Preference(k, Order.PLAIN) for k in read])


def ordered(of: Attribute, order: Order) -> Attribute:
    """The type of a tensor in an order."""
    return with_order(of, channels_last(rank(of)) if order is Order.LAST else ())


def has_orders(of: Attribute) -> bool:
    """Whether it makes a difference where a tensor has its channels."""
    if of.name != TensorType.name or rank(of) < 3:
        return False
    sizes = dims(of)
    return sizes[1] != 1 and any(size != 1 for size in sizes[2:])


def _image(op: Operation) -> bool:
    return all(rank(result.type) >= 3 for result in op.results)


def _reformat(op: Operation, costs: Costs) -> Choice:
    """The copy of an input from its format, or of an output to it: none where the layers work in just that order."""
    assert isinstance(op, ReformatOp)
    block = op.parent
    assert block is not None
    is_direct = not direct_values(block).isdisjoint((op.input, op.output))
    copy = FORBIDDEN if is_direct else costs.reformat(op.output.type)
    if isinstance(op.input, BlockArgument):
        return Choice(copy, 0.0 if is_channels_last(op.input.type) else copy if _image(op) else inf)
    return Choice(preferences=[Preference(0, Order.LAST, copy)] if is_channels_last(op.output.type) else [])


def is_channels_last(of: Attribute) -> bool:
    """Whether a tensor lies as images do whose channels are innermost."""
    return rank(of) >= 3 and memory_order(of) == channels_last(rank(of))


def _convolution(op: Operation, costs: Costs) -> Choice:
    assert isinstance(op, ConvolutionOp)
    plain, last = costs.convolution(op)
    if op.pooling is not None:  # by kernels from planes to planes alone
        choice = Choice(plain, FORBIDDEN, [Preference(0)])
    elif not has_orders(op.input.type) or costs.reads_any_order(op):
        choice = Choice(plain, last)
    elif _reorders(op):
        reordering = costs.reordered(op) + costs.saved_by_planes(op), costs.reordered_to_planes(op)
        choice = Choice(0.0, 0.0, [Preference(0, reorders=True)], (plain, last), reordering)
    else:
        choice = Choice(plain, last, [Preference(0)])
    _read_extras(op, op.extras, list(op.access), 2, costs, choice)
    return choice


def _reorders(op: ConvolutionOp) -> bool:
    """Whether the kernels for a convolution write results in any order: those of several floating-point channels do."""
    is_depthwise = op.groups.value.data > 1 and dims(op.kernel.type)[1] == 1
    return is_float(element_of(op.output.type)) and has_orders(op.output.type) and not is_depthwise


def _window(op: Operation, costs: Costs) -> Choice:
    assert isinstance(op, WindowOp)
    moved = costs.moved(op.input.type, op.output.type)
    last = (1.2 if op.axis.value.data == 2 else 2.5) * moved if has_orders(op.output.type) else inf
    if _has_planes_kernel(op, costs):
        reordering = FORBIDDEN, costs.transposed(op.output.type)
        choice = Choice(0.0, 0.0, [Preference(0, reorders=True)], (2 * moved, last), reordering)
    else:
        choice = Choice(2 * moved, last, [Preference(0)] if has_orders(op.input.type) else [])
    _read_extras(op, op.extras, list(op.access), 1, costs, choice)
    return choice


def _has_planes_kernel(op: WindowOp, costs: Costs) -> bool:
    """Whether a pooling of channels that are innermost has a kernel that writes planes."""
    is_image = op.axis.value.data == 2 and has_orders(op.input.type) and has_orders(op.output.type)
    is_large = costs.number(element_count(op.output.type)) >= MIN_ELEMENTS
    return is_image and is_large and (has_tiles(op) or has_result_tiles(op))


def _resampled(op: Operation, costs: Costs) -> Choice:
    """Pads and resizes: vectors along the channels, where these are copied."""
    moved = costs.moved(op.operands[0].type, op.results[0].type)
    same = dims(op.operands[0].type)[1] == dims(op.results[0].type)[1] if _image(op) else False
    last = (1.0 if same else 1.5) * moved if _image(op) else inf
    return Choice(1.5 * moved, last, [Preference(0)] if _image(op) else [])


def _softmax(op: Operation, costs: Costs) -> Choice:
    assert isinstance(op, SoftmaxOp)
    moved, axis, count = costs.moved(op.input.type, op.output.type), op.axis.value.data, rank(op.input.type)
    plain = moved if axis == count - 1 else _ACROSS_ROWS * moved
    last = inf if count < 3 else moved if axis == 1 else _ACROSS_ROWS * moved
    choice = Choice(plain, last, [Preference(0)] if has_orders(op.input.type) else [])
    _read_extras(op, op.extras, list(op.access), 1, costs, choice)
    return choice


def _reduction(op: Operation, costs: Costs) -> Choice:
    """Whatever the order of the operands, there is a way to read along memory.

    Where the channels stay, they are neighbours with channels last: a few long sums across rows are two launches then.
    """
    moved = costs.moved(*(value.type for value in op.operands))
    results, elements = (costs.number(element_count(of.type)) for of in (op.results[0], op.operands[0]))
    reduces_pixels = _image(op) and dims(op.results[0].type)[1] != 1
    again = LAUNCH if reduces_pixels and results < _FEW_SUMS and elements > _LONG_SUMS * results else 0.0
    return Choice(moved, moved + again if _image(op) else inf)


def _normalization(op: Operation, costs: Costs) -> Choice:
    """Rows are read along memory where they lie so; across, every thread has a row of its own."""
    assert isinstance(op, NormalizationOp)
    if op.reduced.dims():
        return _reduction(op, costs)
    axes, count = integers(op.axes), rank(op.output.type)
    moved = costs.moved(*(value.type for value in op.results))
    across = costs.across(op.output.type)
    last = inf if not has_orders(op.output.type) else moved if 1 in axes else across
    choice = Choice(moved if count - 1 in axes else across, last)
    _read_extras(op, op.inputs, list(op.access), 0, costs, choice)
    return choice


def _concat(op: Operation, costs: Costs) -> Choice:
    assert isinstance(op, ConcatOp)
    preferences = [Preference(k) for k, value in enumerate(op.inputs) if has_orders(value.type)]
    return Choice(0.0, 0.0 if _image(op) else inf, preferences)


def _view(op: Operation, costs: Costs) -> Choice:
    """Free where the same memory is a tensor of the other shape."""
    assert isinstance(op, ViewOp)
    if not has_orders(op.input.type):
        return Choice(0.0, inf)
    if is_view_with_channels_last(op):
        return Choice(0.0, 0.0, [Preference(0)])
    return Choice(0.0, inf, [Preference(0, Order.PLAIN)])


def is_view_with_channels_last(op: ViewOp) -> bool:
    """Whether an input with its channels last is under the result's dimensions a tensor with its channels last."""
    source, target = op.input.type, op.output.type
    if rank(source) < 3 or rank(target) < 3 or not has_orders(target):
        return False
    found = Layout(dims(source), strides(ordered(source, Order.LAST))[0]).reshaped(dims(target))
    return found is not None and found.strides() == strides(ordered(target, Order.LAST))[0]


def _pointwise(op: Operation, costs: Costs) -> Choice:
    assert isinstance(op, PointwiseOp)
    results = costs.moved(*(value.type for value in op.outputs))
    choice = Choice(results, results if _image(op) and has_orders(op.outputs[0].type) else inf)
    _read_extras(op, op.inputs, list(op.access), 0, costs, choice, transposes=True)
    return choice


def _read_extras(
    op: Operation,
    values: Sequence[SSAValue],
    accesses: Sequence[AccessAttr],
    first: int,
    costs: Costs,
    choice: Choice,
    *,
    transposes: bool = False,
) -> None:
    """Add what reading operands by accesses costs; with `transposes` the op transposes what lies across."""
    result = op.results[0].type
    for position, (value, access) in enumerate(zip(values, accesses, strict=True), first):
        moved, across = (
            costs.moved(value.type),
            costs.transposed(value.type) if transposes else costs.across(value.type),
        )
        choice.plain += moved
        choice.last += moved
        lies = {
            (work, order): _runs_along(ordered(value.type, order), access, ordered(result, work))
            for work in Order
            for order in Order
            if rank(result) >= 3 and rank(value.type) >= 3
        }
        if not has_orders(value.type) or not lies or is_constant_like(value):
            choice.plain += 0 if _runs_along(value.type, access, result) else across
            is_along = rank(result) < 3 or _runs_along(value.type, access, ordered(result, Order.LAST))
            choice.last += 0 if is_along else across
        elif lies[Order.PLAIN, Order.PLAIN] and lies[Order.LAST, Order.LAST]:
            if not lies[Order.PLAIN, Order.LAST] or not lies[Order.LAST, Order.PLAIN]:
                choice.preferences.append(Preference(position, None, across if transposes else None))
        elif not lies[Order.PLAIN, Order.PLAIN] and lies[Order.PLAIN, Order.LAST]:
            _transposed(value, position, across, choice)


def _transposed(value: SSAValue, position: int, across: float, choice: Choice) -> None:
    """A transposing access: the order of the result and that of the operand should differ.

    Either the operand is plain in any case, or the result is.
    """
    if not isinstance(value.owner, Operation) or not _RULES.get(type(value.owner)):
        choice.plain += across
    else:
        choice.last = inf
        choice.preferences.append(Preference(position, Order.LAST, across))


def _runs_along(operand: Attribute, access: AccessAttr, result: Attribute) -> bool:
    """Whether an operand is read along its memory, or not moved through at all, when the result is written so."""
    axis = _innermost(result)
    if axis is None:
        return True
    indices, steps = access.indices(), strides(operand)[0]
    moving = [k for k, index in enumerate(indices) if f"d{axis}" in symbols(index)]
    return not moving or all(steps[k] == 1 for k in moving)


def _innermost(of: Attribute) -> int | None:
    """The dimension along which neighbours lie in memory."""
    steps = strides(of)[0]
    return next((k for k, size in enumerate(dims(of)) if size != 1 and steps[k] == 1), None)


Rule = Callable[[Operation, Costs], Choice]
_RULES: dict[type[Operation], Rule] = {
    ConvolutionOp: _convolution,
    WindowOp: _window,
    PadOp: _resampled,
    ResizeOp: _resampled,
    SoftmaxOp: _softmax,
    ReductionOp: _reduction,
    ConcatOp: _concat,
    ViewOp: _view,
    PointwiseOp: _pointwise,
    NormalizationOp: _normalization,
    ReformatOp: _reformat,
}

__all__ = ["Choice", "Order", "Preference", "choice_of", "has_orders", "is_channels_last", "ordered"]
