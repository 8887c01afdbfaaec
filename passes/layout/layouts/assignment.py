"""Assigns blocked layouts (NCHWc) in one walk over a function, and converts operands where they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType, bf16, f16, f32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirt.dialects.blocked_layout import block_array, blocked, is_blocked, plain
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.locations import fuse
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import Tensor, dims, element_of, element_type, halo, is_row_major, rank, tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore
from mlirt.passes.layout.layouts.io_borders import direct_values, is_io_border

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


# The elements of which each takes a lane in a block.
BYTES: frozenset[Attribute] = frozenset({element_type("uint8"), element_type("int8")})
BLOCKED: frozenset[Attribute] = BYTES | {f32, f16, bf16, element_type("int32")}


class Assignment:
    """The state of one walk: which conversions exist already, and where new ops go."""

    def __init__(self, store: WeightStore, lanes: int) -> None:
        self.store = store
        self.lanes = lanes
        self._conversions: dict[tuple[SSAValue, Attribute], SSAValue] = {}
        self._constants: dict[tuple[SSAValue, str], SSAValue] = {}

    def run(self, block: Block) -> None:
        """Rewrite every fused op of a block, in order."""
        from mlirt.passes.layout.layouts.rules import RULES

        direct = direct_values(block)
        for op in list(block.ops):
            stays = any(value in direct for value in (*op.operands, *op.results))
            rule = None if stays else RULES.get(type(op))
            made = rule(op, self) if rule is not None else None
            if made is None:
                self._make_plain(op)
            else:
                self._replace(op, made)

    def _replace(self, op: Operation, made: Operation) -> None:
        block = op.parent
        assert block is not None
        made.location = op.location
        if made.parent is None:
            block.insert_op_before(made, op)
        for old, new in zip(op.results, made.results, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        op.detach()
        op.erase()

    def _make_plain(self, op: Operation) -> None:
        for position, value in enumerate(op.operands):
            if is_tensor_with_layout(value) and not is_io_border(op, value):
                op.operands[position] = self.convert(value, plain(value.type), op)

    def convert(self, value: SSAValue, wanted: Tensor, before: Operation) -> SSAValue:
        """The value in another layout, converted once in front of its first reader."""
        if value.type == wanted:
            return value
        key = (value, wanted)
        if key not in self._conversions:
            op = ReformatOp(value, wanted)
            owner = value.owner
            op.location = fuse(owner) if isinstance(owner, Operation) else before.location
            block = before.parent
            assert block is not None
            block.insert_op_before(op, before)
            self._conversions[key] = op.output
        return self._conversions[key]

    def to_blocked(self, value: SSAValue, before: Operation) -> SSAValue:
        """The value in blocks, with the halo that its readers want where it has to be converted."""
        if is_blocked(value.type):
            return value
        array = self.constant(value)
        if array is not None:
            return self.packed(value, "blocked", lambda: block_array(array, self.lanes), before)
        return self.convert(value, self.blocked_type(value), before)

    def blocked_type(self, value: SSAValue) -> Tensor:
        """The blocked type for a value, with a halo for the padded convolutions that read it."""
        cells, fill = self.halo_for(value)
        return blocked(value.type, self.lanes, cells, fill)

    def halo_for(self, value: SSAValue) -> tuple[tuple[int, int], int]:
        """The border that the convolutions reading a value need, and its bytes: those that most cells ask for."""
        preferences: dict[int, tuple[int, int]] = {}
        for use in value.uses:
            user = use.operation
            if isinstance(user, ConvolutionOp) and use.index == 0:
                fill = fill_of(user)
                preferences[fill] = widest(preferences.get(fill, (0, 0)), padding_of(user))
        if not preferences:
            return (0, 0), 0
        fill = max(preferences, key=lambda fill: (sum(preferences[fill]), -fill))
        return preferences[fill], fill

    def constant(self, value: SSAValue) -> Array | None:
        """The elements of a constant."""
        owner = value.owner
        return owner.array(self.store) if isinstance(owner, ConstantOp) else None

    def packed(self, value: SSAValue, purpose: str, make: Callable[[], Array], before: Operation) -> SSAValue:
        """A constant made from another, once for each purpose; it stands beside the first."""
        key = (value, purpose)
        if key not in self._constants:
            owner = value.owner
            assert isinstance(owner, ConstantOp)
            array = make()
            hint = f"{purpose} {value.name_hint or 'constant'}"
            op = ConstantOp.from_array(array, self.store, hint, owner.location)
            if purpose == "blocked":
                count = dims(value.type)[1]
                typed = tensor(element_of(value.type), dims(op.output.type), count)
                op = ConstantOp.build(properties={"value": op.value}, result_types=[typed])
                op.location = owner.location
            block = owner.parent  # around the block of its reader, where that is a branch or a loop
            assert block is not None
            block.insert_op_after(op, owner)
            self._constants[key] = op.output
        return self._constants[key]


def is_tensor_with_layout(value: SSAValue) -> bool:
    """Whether a value lies in memory in another way than row by row: in blocks, with a halo, in another order."""
    of = value.type
    return of.name == TensorType.name and (is_blocked(of) or bool(halo(of)) or not is_row_major(of))


def is_plain_image(value: SSAValue) -> bool:
    """Whether a value is a plain `[n, c, h, w]` tensor of floats or bytes with a known number of channels."""
    of = value.type
    return rank(of) == 4 and not is_blocked(of) and element_of(of) in BLOCKED and isinstance(dims(of)[1], int)


def padding_of(op: ConvolutionOp) -> tuple[int, int]:
    """The cells around height and width that a convolution reads beyond its input."""
    if op.transposed.value.data or len(op.spatial()) != 2:
        return (0, 0)
    (_, _, top, bottom), (_, _, left, right) = op.spatial()
    return max(top, bottom, 0), max(left, right, 0)


def fill_of(op: ConvolutionOp) -> int:
    """The byte that the padding of a convolution consists of."""
    return op.padding_value.value.data % 256 if element_of(op.input.type) in BYTES else 0


def widest(left: Sequence[int], right: Sequence[int]) -> tuple[int, int]:
    """The larger border on each axis."""
    return max(left[0], right[0]), max(left[1], right[1])


def channel_count(of: Attribute) -> Dim:
    """The channels of an image, blocked or not."""
    return dims(plain(of))[1]


__all__ = ["BLOCKED", "Assignment", "channel_count", "is_plain_image", "padding_of", "widest"]
