"""Lets a network compute in another floating-point format than the one in which it was trained."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, bf16, f16, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.context import weights_of
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import element_of, element_type, numpy_dtype, with_element
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}
# The largest finite and the smallest positive number.
_RANGE = {"float16": (65504.0, 2.0**-24), "bfloat16": (float.fromhex("0x1.fep127"), 2.0**-133)}


@dataclass(frozen=True)
class ConvertPrecisionPass(ModulePass):
    """Store every float32 tensor inside of the network in half precision, or with `to=f32` the other way round.

    The inputs and outputs of the network keep their type. Inputs are converted where they are first read, outputs at
    the end, constants here. Sums, softmax and normalizations of half-precision numbers are still accumulated in
    float32, which is how fused ops treat them. Scales of quantization stay float32. Finite constants beyond the range
    are clamped to it, with a warning; a single number that would vanish becomes the smallest one that does not, as it
    may be a divisor's epsilon.

    Before:

        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>

    After:

        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %h = trt.identity %x : (tensor<4xf32>) -> tensor<4xf16>
          %r = trt.activation relu %h : (tensor<4xf16>) -> tensor<4xf16>
          %y = trt.identity %r : (tensor<4xf16>) -> tensor<4xf32>
    """

    name = "convert-precision"

    to: Literal["f16", "bf16", "f32"] = "f16"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp):
                for block in function.body.blocks:
                    _Conversion(ctx, block, element_type(_NAMES[self.to])).run()


class _Conversion:
    """The conversion of one block; `new` has the version in the other format of each value that had one."""

    def __init__(self, ctx: Context, block: Block, element: Attribute) -> None:
        self.ctx = ctx
        self.block = block
        self.element = element
        self.sources = (f16, bf16) if element == f32 else (f32,)
        self.new: dict[SSAValue, SSAValue] = {}
        self.old: list[Operation] = []

    def run(self) -> None:
        for op in list(self.block.ops):
            if isinstance(op, ReturnOp):
                op.operands = [self._output(value, op) for value in op.operands]
            elif isinstance(op, TensorOp) and not isinstance(op, ConstantOp) and self._concerns(op):
                self._convert(op)
        for op in reversed(self.old):
            if all(result.first_use is None for result in op.results):
                self.block.erase_op(op)

    def _convert(self, op: TensorOp) -> None:
        if isinstance(op, DequantizeOp) and self.element != f32:
            return
        operands = [self._operand(op, position, value) for position, value in enumerate(op.operands)]
        types = [self._type(result.type) for result in op.results]
        new = type(op).create(operands=operands, properties=dict(op.properties), result_types=types)
        new.location = op.location
        self.block.insert_op_before(new, op)
        for before, after in zip(op.results, new.results, strict=True):
            after.name_hint = before.name_hint
            if before.type == after.type:
                before.replace_all_uses_with(after)
            else:
                self.new[before] = after
        self.old.append(op)

    def _operand(self, op: TensorOp, position: int, value: SSAValue) -> SSAValue:
        if element_of(value.type) not in self.sources or (isinstance(op, QuantizeOp) and position > 0):
            return value
        if value not in self.new:
            self.new[value] = self._converted(value, op)
        return self.new[value]

    def _converted(self, value: SSAValue, reader: Operation) -> SSAValue:
        owner = value.owner
        if isinstance(owner, ConstantOp):
            array = converted(owner.array(weights_of(self.ctx)), self.element, name_of(reader))
            new: TensorOp = ConstantOp.from_array(array, weights_of(self.ctx), name_of(reader))
        else:
            new = IdentityOp.cast(
                value, self.element, owner.location if isinstance(owner, Operation) else reader.location
            )
        if isinstance(owner, Operation):
            self.block.insert_op_after(new, owner)
        else:
            self.block.insert_op_before(new, reader)
        return new.results[0]

    def _output(self, value: SSAValue, last: Operation) -> SSAValue:
        """An output in the format that it had."""
        new = self.new.get(value)
        if new is None or isinstance(value.owner, Block) or value.owner not in self.old:
            return value
        cast = IdentityOp.cast(new, element_of(value.type), value.owner.location)
        self.block.insert_op_before(cast, last)
        cast.output.name_hint = value.name_hint
        return cast.output

    def _type(self, of: Attribute) -> Attribute:
        return with_element(of, self.element) if element_of(of) in self.sources else of

    def _concerns(self, op: TensorOp) -> bool:
        return any(element_of(value.type) in self.sources for value in (*op.operands, *op.results))


def converted(array: Array, element: Attribute, layer: str) -> Array:
    """An array in another format; warns where numbers are clamped to the range of half precision."""
    import numpy as np

    target = numpy_dtype(element)
    if target.name not in _RANGE:
        return array.astype(target)
    largest, smallest = _RANGE[target.name]
    beyond = np.isfinite(array) & (np.abs(array) > largest)
    if beyond.any():
        text = f"layer {layer}: {int(beyond.sum())} of {array.size} constants are beyond the range of {target.name}"
        warnings.warn(f"{text}; they become {largest:g} in magnitude", stacklevel=2)
        array = np.where(beyond, np.copysign(array.dtype.type(largest), array), array)
    with np.errstate(over="ignore", under="ignore"):
        result = array.astype(target)
    if array.size == 1 and np.all(array != 0) and np.all(result.astype(array.dtype) == 0):
        result = np.copysign(np.full(array.shape, smallest, array.dtype), array).astype(target)
    return result
