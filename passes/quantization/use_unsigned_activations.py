"""Shifts int8 activations to uint8, zero point 128, as the vector instructions of CPUs (VNNI) take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i8
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_types import element_of
from mlirt.dialects.trt.int8_products import ui8
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.passes.quantization.commuting_layers import Movement, fill_of, movement_of, rebuilt, sources_of
from mlirt.passes.quantization.int8_layers import Int8Layers
from mlirt.passes.quantization.shifted_int8 import (
    has_known_zero,
    lowered_bytes,
    raised_array,
    raised_bytes,
    raised_quantization,
    replace_dequantization,
)
from mlirt.passes.quantization.shifted_products import Product, is_shiftable, shift_product


@dataclass(frozen=True)
class UseUnsignedActivationsPass(ModulePass):
    """Store int8 that a layer multiplies with constant weights as uint8, with a zero point that is 128 more.

    The zero point of quantisations in front and of dequantisations behind grows by 128, padding holds 128 more, and 128
    times the sum of each column of the weights goes from the sums. Layers in between that move or compare bytes do so
    with unsigned ones; what else makes or reads the bytes does so through a conversion.

    Before:

        %q = trt.quantize %x, %s : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xi8>
        %y = trt.matrix_multiply %q, %w : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi32>

    After:

        %q = trt.quantize %x, %s, %z : (tensor<2x3xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x3xui8>
        %p = trt.matrix_multiply %q, %w : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
        %y = trt.elementwise sum %p, %c : (tensor<2x4xi32>, tensor<1x4xi32>) -> tensor<2x4xi32>
    """

    name = "use-unsigned-activations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            _Stretch(block, ctx).convert()


class _Stretch:
    """The int8 of a block that products read, and all that are moved from or to where these are."""

    def __init__(self, block: Block, ctx: Context) -> None:
        self.block, self.ctx = block, ctx
        self.members: dict[SSAValue, None] = {}
        waiting = [op.operands[0] for op in block.ops if is_shiftable(op, ctx)]
        while waiting:
            value = waiting.pop()
            if value in self.members:
                continue
            self.members[value] = None
            waiting += self._neighbours(value)

    def _neighbours(self, value: SSAValue) -> list[SSAValue]:
        found: list[SSAValue] = []
        movement = self._movement(value.owner)
        if movement is not None and isinstance(value.owner, Operation):
            found += sources_of(value.owner, movement)
        for use in value.uses:
            behind = self._movement(use.operation)
            if behind is not None and use.index in behind.sources:
                found.append(use.operation.results[0])
        return found

    def _movement(self, op: Operation | Block) -> Movement | None:
        """How a layer of this block moves bytes; None where it does not, or fills cells with what the run computes."""
        if not isinstance(op, Operation) or op.parent is not self.block:
            return None
        movement = movement_of(op)
        if movement is None or element_of(op.results[0].type) != i8:
            return None
        fill = fill_of(op, movement)
        return movement if fill is None or array_of(fill, self.ctx) is not None else None

    def convert(self) -> None:
        """Make unsigned versions in the order of the block, then let everything read them."""
        raised: dict[SSAValue, SSAValue] = {}
        readers = [use for value in self.members for use in value.uses]
        places = {op: place for place, op in enumerate(self.block.ops)}
        in_order = sorted(self.members, key=lambda value: _place(value, places))
        for value in in_order:
            raised[value] = self._raised(value, raised)
        for use in readers:
            movement = self._movement(use.operation)
            if movement is None or use.index not in movement.sources:
                self._read(use.operation, use.index, raised[use.operation.operands[use.index]])
        for value in reversed(in_order):
            if isinstance(value.owner, Operation) and value.first_use is None and value.owner.parent is self.block:
                self.block.erase_op(value.owner)

    def _raised(self, value: SSAValue, raised: Mapping[SSAValue, SSAValue]) -> SSAValue:
        """The unsigned version of a value, next to where that is made."""
        owner, first = value.owner, self.block.first_op
        inside = isinstance(owner, Operation) and owner.parent is self.block
        if isinstance(owner, Operation) and inside:
            first = owner.next_op
        assert first is not None
        write = Int8Layers.in_front_of(first, self.ctx, owner if isinstance(owner, Operation) else first)
        movement = self._movement(owner)
        if movement is not None and isinstance(owner, Operation):
            made = write.value(self._moved(owner, movement, raised, write))
        elif inside and isinstance(owner, QuantizeOp) and has_known_zero(owner, self.ctx):
            made = raised_quantization(owner, write)
        else:
            array = array_of(value, self.ctx)
            made = raised_bytes(value, write) if array is None else write.constant(raised_array(array))
        made.name_hint = value.name_hint
        return made

    def _moved(
        self, op: Operation, movement: Movement, raised: Mapping[SSAValue, SSAValue], write: Int8Layers
    ) -> Operation:
        import numpy as np

        fill = None
        if movement.fill:
            operand = fill_of(op, movement)
            number = np.zeros((), np.int8) if operand is None else array_of(operand, self.ctx)
            assert number is not None
            fill = write.constant(raised_array(number))
        return rebuilt(op, movement, [raised[source] for source in sources_of(op, movement)], fill, ui8)

    def _read(self, op: Operation, index: int, value: SSAValue) -> None:
        """Let an op that does not move bytes read the unsigned version of one of its operands."""
        if index == 0 and isinstance(op, Product) and is_shiftable(op, self.ctx):
            shift_product(op, value, self.ctx)
            return
        write = Int8Layers.in_front_of(op, self.ctx)
        if index == 0 and isinstance(op, DequantizeOp) and has_known_zero(op, self.ctx):
            replace_dequantization(op, value, write)
        else:
            op.operands[index] = lowered_bytes(value, write)


def _place(value: SSAValue, places: Mapping[Operation, int]) -> int:
    """Where a value is made, arguments and values from outside first."""
    return places.get(value.owner, -1) if isinstance(value.owner, Operation) else -1
