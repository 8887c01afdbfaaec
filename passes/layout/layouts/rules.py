"""How each family of fused ops works on blocked images; a rule gives None where the op stays on plain tensors."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import DenseArrayBase, f32, f64, i8, i32
from xdsl.ir import Attribute, Operation, Region, SSAValue

from mlirt.dialects.blocked_layout import blocked, is_blocked, plain
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.fused.gathered_channels import gathered_channels
from mlirt.dialects.fused.interleave import InterleaveOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.resize import ResizeOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_types import Tensor, dims, element_of, element_type, halo, halo_fill, rank, tensor
from mlirt.passes.layout.layouts.accesses import all_fit, read_all
from mlirt.passes.layout.layouts.assignment import (
    BLOCKED,
    Assignment,
    channel_count,
    fill_of,
    is_plain_image,
    padding_of,
    widest,
)

_UI8, _FOUR = element_type("uint8"), 4

Rule = Callable[[Operation, Assignment], Operation | None]


def assign_convolution(op: Operation, assignment: Assignment) -> Operation | None:
    """Blocked result; blocked input unless it has too few channels to fill a vector: then floats are plain with a halo,
    and bytes have blocks of the four channels that are multiplied at once.
    """
    assert isinstance(op, ConvolutionOp)
    extras, access = list(op.extras), list(op.access)
    result_channels = channel_count(op.output.type)
    if not _has_blocked_form(op, assignment) or not all_fit(extras, access, result_channels, assignment):
        return None
    source = _convolution_input(op, assignment)
    values, accesses = read_all(extras, access, result_channels, assignment, op)
    made = ConvolutionOp(
        source,
        op.kernel,
        assignment.blocked_type(op.output),
        op.detach_region(op.epilogue),
        stride=[int(s) for s in op.stride.iter_values()],
        dilation=[int(d) for d in op.dilation.iter_values()],
        pre_padding=[int(p) for p in op.pre_padding.iter_values()],
        post_padding=[int(p) for p in op.post_padding.iter_values()],
        groups=op.groups.value.data,
        merged_groups=op.merged_groups.value.data,
        padding_value=op.padding_value.value.data,
        pooling=op.pooling,
        extras=values,
        access=accesses,
    )
    return made


def _has_blocked_form(op: ConvolutionOp, assignment: Assignment) -> bool:
    if op.transposed.value.data or rank(plain(op.output.type)) != 4 or element_of(op.output.type) not in BLOCKED:
        return False
    if not (_adds_floats(op) or _adds_int8(op)) or assignment.constant(op.kernel) is None:
        return False
    if any(pad < 0 for _, _, pre, post in op.spatial() for pad in (pre, post)):
        return False
    channels, results, groups = channel_count(op.input.type), channel_count(op.output.type), op.groups.value.data
    if not isinstance(channels, int) or not isinstance(results, int):
        return False
    depthwise = groups == channels == results
    whole = channels // groups % assignment.lanes == 0 and results // groups % assignment.lanes == 0
    return groups == 1 or depthwise or whole


def _adds_floats(op: ConvolutionOp) -> bool:
    return _elements(op) == (f32, f32, f32)


def _adds_int8(op: ConvolutionOp) -> bool:
    """Whether a convolution multiplies uint8 with signed ones, as vector instructions do."""
    return _elements(op) == (_UI8, i8, i32)


def _elements(op: ConvolutionOp) -> tuple[Attribute, ...]:
    return element_of(op.input.type), element_of(op.kernel.type), accumulator_type(op.epilogue)


def _convolution_input(op: ConvolutionOp, assignment: Assignment) -> SSAValue:
    value, border, fill = op.input, padding_of(op), fill_of(op)
    channels = channel_count(value.type)
    assert isinstance(channels, int)
    if is_blocked(value.type):
        cells = halo(value.type) or (0, 0)
        if widest(cells, border) == cells and (not any(border) or halo_fill(value.type) == fill):
            return value
        return assignment.convert(value, blocked(plain(value.type), assignment.lanes, widest(cells, border), fill), op)
    if channels >= assignment.lanes or op.groups.value.data > 1:
        cells, usual = assignment.halo_for(value)
        cells = cells if fill == usual else border
        return assignment.convert(value, blocked(value.type, assignment.lanes, cells, fill), op)
    if _adds_int8(op):
        return assignment.convert(value, blocked(value.type, _FOUR, border, fill), op)
    of, (cells, usual) = plain(value.type), assignment.halo_for(value)
    border = cells if fill == usual else border  # one copy for all convolutions that read the image
    return assignment.convert(value, tensor(element_of(of), dims(of), None, border) if any(border) else of, op)


def assign_pointwise(op: Operation, assignment: Assignment) -> Operation | None:
    """Blocked where an operand already is, and every operand can be read by blocks."""
    assert isinstance(op, PointwiseOp)
    if len(op.outputs) != 1 or not is_plain_image(op.outputs[0]) or not any(is_blocked(v.type) for v in op.inputs):
        return None
    if any(isinstance(inner, IndexOp) for inner in op.body.block.ops):
        return None
    inputs, access, result_channels = list(op.inputs), list(op.access), channel_count(op.outputs[0].type)
    if not all_fit(inputs, access, result_channels, assignment):
        return None
    values, accesses = read_all(inputs, access, result_channels, assignment, op)
    return PointwiseOp(values, accesses, [assignment.blocked_type(op.outputs[0])], op.detach_region(op.body))


def assign_window(op: Operation, assignment: Assignment) -> Operation | None:
    """Pooling over height and width keeps the blocks of its input."""
    assert isinstance(op, WindowOp)
    spatial = op.axis.value.data == 2 and len(list(op.window.iter_values())) == 2
    if not spatial or not is_blocked(op.input.type) or op.extras or element_of(op.output.type) not in BLOCKED:
        return None
    return _retyped(op, assignment.blocked_type(op.output))


def assign_reduction(op: Operation, assignment: Assignment) -> Operation | None:
    """Reducing height and width keeps the blocks: of an image of one pixel, which is plain where no axes of it are."""
    assert isinstance(op, ReductionOp)
    if len(op.inputs) != 1 or op.extras or not is_blocked(op.inputs[0].type):
        return None
    indices, keeps_axes = next(iter(op.access)).indices(), is_plain_image(op.output)
    if keeps_axes and indices == (iteration(0), iteration(1), iteration(4), iteration(5)):
        return _reduced_pixels(op, assignment.blocked_type(op.output))
    if indices != tuple(iteration(axis) for axis in range(4)) or rank(op.output.type) != 2:
        return None
    element, sizes = element_of(op.output.type), dims(op.output.type)
    if element not in BLOCKED or not isinstance(sizes[1], int):
        return None
    pixel = tensor(element, [*sizes, 1, 1])
    reduced = _reduced_pixels(op, blocked(pixel, assignment.lanes))
    reduced.location = op.location
    assert op.parent is not None
    op.parent.insert_op_before(reduced, op)
    return ViewOp(assignment.convert(reduced.output, pixel, op), op.output.type)


def _reduced_pixels(op: ReductionOp, result: Tensor) -> ReductionOp:
    access = AccessAttr.of([iteration(0), iteration(1), iteration(5), iteration(6), iteration(4)])
    body, epilogue = _regions(op)
    return ReductionOp(op.kind.data, list(op.inputs), [access], op.reduced.dims(), result, body, epilogue)


def assign_concat(op: Operation, assignment: Assignment) -> Operation | None:
    """Channels are joined block by block where every part but the last fills its blocks."""
    assert isinstance(op, ConcatOp)
    if op.axis.value.data != 1 or not any(is_blocked(value.type) for value in op.inputs):
        return None
    if not all(is_blocked(value.type) or is_plain_image(value) for value in op.inputs):
        return None
    counts = [channel_count(value.type) for value in op.inputs]
    if any(not isinstance(count, int) or count % assignment.lanes for count in counts[:-1]):
        return None
    made = ConcatOp([assignment.to_blocked(value, op) for value in op.inputs], 1, assignment.blocked_type(op.output))
    made.in_place = [flag and is_blocked(value.type) for flag, value in zip(op.in_place, op.inputs, strict=True)]
    return made


def assign_interleave(op: Operation, assignment: Assignment) -> Operation | None:
    """Pixels keep the blocks of their channels."""
    assert isinstance(op, InterleaveOp)
    if len(integers(op.factors)) != 2 or not all(is_blocked(value.type) for value in op.inputs):
        return None
    made = InterleaveOp(list(op.inputs), integers(op.factors), assignment.blocked_type(op.output))
    made.in_place = op.in_place
    return made


def assign_view(op: Operation, assignment: Assignment) -> Operation | None:
    """Other rows of the same pixels keep the blocks of their channels."""
    assert isinstance(op, ViewOp)
    before = plain(op.input.type)
    is_image = is_blocked(op.input.type) and rank(before) == rank(op.output.type) == 4
    if not is_image or any(halo(op.input.type) or ()) or dims(before)[:2] != dims(op.output.type)[:2]:
        return None
    return ViewOp(op.input, blocked(op.output.type, assignment.lanes))


def assign_resize(op: Operation, assignment: Assignment) -> Operation | None:
    """Height and width are resampled in each lane alike."""
    assert isinstance(op, ResizeOp)
    if not is_blocked(op.input.type) or op.roi is not None or op.antialias.value.data or not is_plain_image(op.output):
        return None
    if dims(plain(op.input.type))[:2] != dims(op.output.type)[:2]:
        return None
    factors = op.scale_factors()
    made = _retyped(op, assignment.blocked_type(op.output))
    if factors is not None:
        made.properties["scales"] = DenseArrayBase.from_list(f64, [*factors, 1.0])
    return made


def assign_gather(op: Operation, assignment: Assignment) -> Operation | None:
    """Channels that are known when the engine is built are gathered from blocks into blocks."""
    assert isinstance(op, GatherOp)
    if not is_blocked(op.data.type) or not is_plain_image(op.output):
        return None
    if gathered_channels(op, assignment.store) is None:
        return None
    return _retyped(op, assignment.blocked_type(op.output))


def _retyped(op: Operation, type_: Tensor) -> Operation:
    """The same op with another result type; takes the regions over."""
    return type(op).create(
        operands=list(op.operands),
        result_types=[type_],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
        regions=_regions(op),
    )


def _regions(op: Operation) -> list[Region]:
    return [op.detach_region(region) for region in list(op.regions)]


RULES: dict[type[Operation], Rule] = {
    ConvolutionOp: assign_convolution,
    PointwiseOp: assign_pointwise,
    WindowOp: assign_window,
    ReductionOp: assign_reduction,
    ConcatOp: assign_concat,
    InterleaveOp: assign_interleave,
    ResizeOp: assign_resize,
    GatherOp: assign_gather,
    ViewOp: assign_view,
}

__all__ = ["RULES", "Rule"]
