"""Bufferization: the buffer, the byte offset and the strides of each tensor value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.joining import JoiningOp
from mlirt.dialects.fused.moves import is_written_through, permutation
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.slices import is_shown, slice_starts
from mlirt.dialects.fused.view import ViewOp, joins_axes
from mlirt.dialects.layout import Layout
from mlirt.dialects.plan.border import Border
from mlirt.dialects.plan.ops import BufferOp, InputOp, WeightOp
from mlirt.dialects.regions import inner_blocks
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import (
    byte_width,
    dims,
    element_of,
    halo,
    stored_bytes,
    strides,
)
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightsAttr

if TYPE_CHECKING:
    from xdsl.context import Context

    from mlirt.dialects.tensor_op import Array
    from mlirt.kernels.lib.tactics.recipes import Recording

Pack: TypeAlias = "Callable[[Array], Array]"


@dataclass(frozen=True)
class Packed:
    """A constant in another order: `array` is what `pack` makes of its elements, in half precision where they are to be
    stored `as_halves`, and of those of any equal op.

    `pack` has nothing from the op but what types, attributes and placements say.
    """

    value: SSAValue
    pack: Pack
    array: Array
    as_halves: bool = False


@dataclass(frozen=True)
class Placement:
    """Element `i..` of a tensor lies `sum of i * stride` elements after the byte `offset` of a buffer.

    Inputs of a concatenation have parts of its buffer, by their positions, from the outermost concatenation inwards: no
    two parts have bytes in common, but for a part of another one.
    """

    buffer: SSAValue
    offset: Dim
    strides: tuple[Dim, ...]
    part: tuple[int, ...] = ()


class Placements:
    """The placement of every tensor value of a function; buffers come into being when they are first asked for."""

    def __init__(self, ctx: Context, block: Block) -> None:
        self._ctx = ctx
        self._block = block
        self._known: dict[SSAValue, Placement] = {}
        self._weights: dict[WeightsAttr, SSAValue] = {}
        self._concat_of: dict[SSAValue, tuple[JoiningOp, int]] = {}
        self._view_of: dict[SSAValue, SSAValue] = {}  # of what is written through a view, which is in a concatenation
        self._move_of: dict[SSAValue, PointwiseOp] = {}  # of what is written where a move puts it
        self._parts: dict[JoiningOp, list[tuple[Dim, tuple[Dim, ...]]]] = {}  # of the inputs, in elements
        self._head: Operation | None = None
        self.recording: Recording | None = None
        """What is told of memory as it comes into being, while an op is lowered."""
        self.anchor: Operation | None = block.first_op
        """New buffers stand before this op, or before the branch or loop that it is in."""
        for value in block.args:
            buffer = self._insert_first(InputOp(value))
            self._known[value] = Placement(buffer, 0, strides(value.type)[0])
        for inner in (block, *inner_blocks(block)):
            for op in inner.ops:
                if isinstance(op, JoiningOp):
                    self._plan_in_place(op)
                elif isinstance(op, PointwiseOp) and is_written_through(op):
                    self._plan_moved(op)

    def _plan_in_place(self, op: JoiningOp) -> None:
        for position, (value, allowed) in enumerate(zip(op.inputs, op.in_place, strict=True)):
            view = value.owner
            made = view.input if isinstance(view, ViewOp) else value
            computed = isinstance(made.owner, FusedOp) and not isinstance(made.owner, ViewOp)
            here = value.owner.parent is made.owner.parent is op.parent
            if allowed and computed and here and _is_shown_to_all(value) and value not in self._concat_of:
                if made is not value:
                    if not made.has_one_use() or not _is_shown_to_all(made) or not _is_written_through(made, value):
                        continue
                    self._view_of[made] = value
                self._concat_of[value] = (op, position)

    def _plan_moved(self, op: PointwiseOp) -> None:
        moved = op.inputs[0]
        self._move_of[moved] = op
        if isinstance(moved.owner, ViewOp):
            self._view_of[moved.owner.input] = moved

    def is_in_place(self, value: SSAValue) -> bool:
        """Whether a value lies in the result of a concatenation, or of a move."""
        return value in self._concat_of or value in self._view_of or value in self._move_of

    def writes_into(self, op: JoiningOp, position: int) -> bool:
        """Whether the producer of a concatenation's input writes it straight into the result."""
        return self._concat_of.get(op.inputs[position]) == (op, position)

    def __getitem__(self, value: SSAValue) -> Placement:
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = self._place(value)
        return found

    def find(self, value: SSAValue) -> Placement | None:
        """The placement of a value that has been asked for before."""
        return self._known.get(value)

    def find_joined(self, value: SSAValue) -> Placement | None:
        """The placement of a value that lies in the result of a concatenation or a move, where that has been asked
        for.
        """
        moved = self._move_of.get(self._view_of.get(value, value))
        if moved is not None:
            return self[value] if moved.outputs[0] in self._known else None
        whole = self._concat_of[self._view_of.get(value, value)][0].output
        if whole in self._known or (self.is_in_place(whole) and self.find_joined(whole) is not None):
            return self[value]
        return None

    def find_shown(self, value: SSAValue) -> Placement | None:
        """The same, also of a view or a slice of such a value that has no memory of its own; nothing is made."""
        owner = value.owner
        if value in self._known or not (isinstance(owner, ViewOp) or is_shown(owner)):
            return self._known.get(value)
        assert isinstance(owner, Operation)
        source = owner.operands[0]
        if self.is_in_place(value) or self.is_in_place(source) or self.find_shown(source) is None:
            return None
        return self[value] if not isinstance(owner, ViewOp) or self.shown(owner) is not None else None

    def _place(self, value: SSAValue) -> Placement:
        owner = value.owner
        if isinstance(owner, ConstantOp):
            attr = owner.value
            attr = (
                attr
                if isinstance(attr, WeightsAttr)
                else weights_of(self._ctx).put(owner.array(weights_of(self._ctx)), "constant")
            )
            buffer = self._weight(attr)
            if self.recording is not None:
                self.recording.constant(buffer, value)
            return Placement(buffer, 0, strides(value.type)[0])
        if value in self._concat_of:
            op, position = self._concat_of[value]
            return self.part(op, position)
        if value in self._view_of:
            return self._behind(value, self._view_of[value])
        if value in self._move_of:
            return self._moved(self._move_of[value])
        if isinstance(owner, ViewOp):
            shown = self.shown(owner)
            if shown is not None:
                return shown
        if isinstance(owner, PointwiseOp) and is_shown(owner):
            return self._slice(owner)
        return self._fresh(value)

    def shown(self, op: ViewOp) -> Placement | None:
        """Where a view's result lies in its input; None where only a copy has the result's order."""
        if halo(op.input.type):
            return None
        if op.input in self._view_of:
            return self[op.output]
        source = self[op.input]
        found = Layout(dims(op.input.type), source.strides).reshaped(dims(op.output.type))
        return None if found is None else Placement(source.buffer, source.offset, found.strides(), source.part)

    def _behind(self, value: SSAValue, view: SSAValue) -> Placement:
        """Where a tensor lies that is written through a view which adds or drops axes of length 1, or joins axes."""
        place = self[view]
        if _units_apart(value, view):
            reshaped = Layout(dims(view.type), place.strides).reshaped(dims(value.type))
            assert reshaped is not None
            return Placement(place.buffer, place.offset, reshaped.strides(), place.part)
        steps = iter([step for size, step in zip(dims(view.type), place.strides, strict=True) if size != 1])
        found = tuple(1 if size == 1 else next(steps) for size in dims(value.type))
        return Placement(place.buffer, place.offset, found, place.part)

    def _moved(self, op: PointwiseOp) -> Placement:
        """Where the operand of a move lies in the result."""
        place, axes = self[op.outputs[0]], permutation(op)
        assert axes is not None
        return Placement(place.buffer, place.offset, tuple(place.strides[axis] for axis in axes), place.part)

    def _slice(self, op: PointwiseOp) -> Placement:
        """Where a slice lies in its operand."""
        source, starts = self[op.inputs[0]], slice_starts(op)
        assert starts is not None
        offset = source.offset
        for start, step in zip(starts, source.strides, strict=True):
            offset = offset + start * step * byte_width(element_of(op.inputs[0].type))
        return Placement(source.buffer, offset, source.strides, source.part)

    def part(self, op: JoiningOp, position: int) -> Placement:
        """Where an input of a concatenation lies in the result."""
        whole = self[op.output]
        if op not in self._parts:
            self._parts[op] = op.parts(whole.strides)
        start, steps = self._parts[op][position]
        offset = whole.offset + start * byte_width(element_of(op.output.type))
        return Placement(whole.buffer, offset, steps, (*whole.part, position))

    def assume(self, value: SSAValue, place: Placement) -> None:
        """Let a value lie at a place, in the order of its strides."""
        self._known[value] = place

    def put(self, value: SSAValue, place: Placement) -> None:
        """Let a value lie at a place, in row-major order: its producer, or a copy, will write it there."""
        self._known[value] = Placement(place.buffer, place.offset, strides(value.type)[0])

    def fresh(self, value: SSAValue) -> Placement:
        """Memory of its own for a value, which it keeps."""
        place = self._known[value] = self._fresh(value)
        return place

    def _fresh(self, value: SSAValue) -> Placement:
        steps, start = strides(value.type)
        buffer = self.scratch(stored_bytes(value.type), Border.of(value.type))
        return Placement(buffer, start * byte_width(element_of(value.type)), steps)

    def scratch(self, size: Dim, border: Border | None = None) -> SSAValue:
        """A new buffer of `size` bytes."""
        op = BufferOp(size, border)
        anchor = self.anchor
        while anchor is not None and anchor.parent is not self._block:
            anchor = anchor.parent_op()
        if anchor is None:
            self._block.add_op(op)
        else:
            self._block.insert_op_before(op, anchor)
        if self.recording is not None:
            self.recording.scratch(op.buffer, size, border)
        return op.buffer

    def weight(self, attr: WeightsAttr) -> SSAValue:
        """The buffer of an array in the weight store."""
        buffer = self._weight(attr)
        if self.recording is not None:
            self.recording.weight(buffer, attr)
        return buffer

    def _weight(self, attr: WeightsAttr) -> SSAValue:
        if attr not in self._weights:
            array = weights_of(self._ctx).get(attr)
            self._weights[attr] = self._insert_first(WeightOp(attr, array.nbytes))
        return self._weights[attr]

    def uses(self, attr: WeightsAttr) -> bool:
        """Whether a launch reads an array as it is."""
        return attr in self._weights

    def new_weight(self, made: Array | Packed, hint: str) -> SSAValue:
        """The buffer of an array made by a lowering."""
        if not isinstance(made, Packed):
            return self.weight(weights_of(self._ctx).put_packed(made, hint))
        buffer = self._weight(weights_of(self._ctx).put_packed(made.array, hint))
        if self.recording is not None:
            self.recording.packed(buffer, made, hint)
        return buffer

    def is_dense(self, value: SSAValue) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return self._lies_with(value, Layout.row_major(dims(value.type)).strides())

    def lies_as_typed(self, value: SSAValue) -> bool:
        """Whether the elements lie as they do in a tensor of the value's type that has memory of its own."""
        return self._lies_with(value, strides(value.type)[0])

    def _lies_with(self, value: SSAValue, steps: Sequence[Dim]) -> bool:
        places = zip(dims(value.type), self[value].strides, steps, strict=True)
        return not halo(value.type) and all(size == 1 or step == expected for size, step, expected in places)

    def size_of(self, buffer: SSAValue) -> Dim:
        """The bytes of a buffer."""
        owner = buffer.owner
        if isinstance(owner, BufferOp):
            return owner.bytes.value()
        if isinstance(owner, WeightOp):
            return owner.bytes.value.data
        assert isinstance(owner, InputOp)
        return stored_bytes(owner.source.type)

    def _insert_first(self, op: InputOp | WeightOp) -> SSAValue:
        first = self._block.first_op
        if self._head is not None:
            self._block.insert_op_after(op, self._head)
        elif first is not None:
            self._block.insert_op_before(op, first)
        else:
            self._block.add_op(op)
        self._head = op
        return op.buffer


def _is_shown_to_all(value: SSAValue) -> bool:
    """Whether every reader finds a tensor wherever it lies."""
    return value.has_one_use() or not (is_blocked(value.type) or halo(value.type))


def _is_written_through(made: SSAValue, view: SSAValue) -> bool:
    """Whether all that a view of a tensor shows can be written where the view lies, whatever its strides."""
    if any(is_blocked(value.type) or halo(value.type) for value in (made, view)):
        return False
    return not _units_apart(made, view) or joins_axes(dims(made.type), dims(view.type))


def _units_apart(one: SSAValue, other: SSAValue) -> bool:
    """Whether the dimensions of two tensors differ in more than axes of length 1."""
    sizes = [[size for size in dims(value.type) if size != 1] for value in (one, other)]
    return sizes[0] != sizes[1]
