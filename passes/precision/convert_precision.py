"""Lets a network compute in another floating-point format than the one in which it was trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr, bf16, f16, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.context import weights_of
from mlirt.dialects.indexing import ScatterReduction
from mlirt.dialects.layer_precisions import HALVES, WIDE, LayerPrecisions
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import element_of, element_type, with_element
from mlirt.dialects.trt.activation import ActivationKind, ActivationKindAttr, ActivationOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.identity import ROUNDS, IdentityOp
from mlirt.dialects.trt.packed_weights import DequantizeBlocksOp, PackedMatrixMultiplyOp
from mlirt.dialects.trt.plugin import PluginOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.dialects.trt.scatter import ScatterOp
from mlirt.dialects.trt.suppress import SuppressOp
from mlirt.passes.precision.float32_layers import POINTWISE, float32_layers
from mlirt.passes.precision.half_constants import converted, in_range, is_exact
from mlirt.passes.precision.weight_issues import WeightIssues

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}
_ROUNDED = {
    ActivationKind.RATIONAL_SIGMOID: ActivationKind.SIGMOID,
    ActivationKind.RATIONAL_TANH: ActivationKind.TANH,
}
"""Functions whose last bits of float32 are the same on every target, and those that are rounded to half precision."""


@dataclass(frozen=True)
class ConvertPrecisionPass(ModulePass):
    """Store the float32 tensors inside of the network in half precision, or with `to=f32` the other way round.

    The inputs and outputs of the network keep their type. Inputs are converted where they are first read, outputs at
    the end, constants here. What half precision holds badly stays float32:

    - results of powers, exponentials, logarithms, reciprocals and of sums along an axis, and what is computed from such
      results alone: so the statistics of a normalization stay float32. A pointwise layer that joins them with other
      numbers reads them in float32 and rounds its own result: 1 / sqrt(variance + epsilon) of a row of equal numbers
      overflows in half precision, its product with the row does not;
    - sums and maxima with a constant below the normal numbers of half precision, which keep a divisor from zero;
    - the signal of which a logarithm is taken, back to the first activation, as in a spectrogram;
    - products with weights that overflow in half precision, or that are so small that it holds them only coarsely;
    - biases, the constants of pointwise layers, positions in images, and scales of quantization;
    - sums of int8 products, while they are scaled;
    - boxes of which the overlap is compared;
    - the tensors of plugins, which have the types that those ask for.

    Sigmoids and tanhs of quantised networks (`use-rational-activations`) are plain ones in half precision.

    A layer that the user asks for float32 or half precision (`trt.layer_precisions`, `trt.precision`) computes in it.

    With `to=f32` a tensor that is cast to half precision and back is rounded all the same: that is what it is cast for.
    Layers that gather, join or scatter halves of inputs and constants do so with the halves; their readers widen them.

    Sums of products are accumulated in float32 in any case. A finite constant beyond the range in a pointwise layer,
    such as the bias of a mask, is clamped, with a warning.

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
        asked, issues = LayerPrecisions(op), WeightIssues()
        for function in op.ops:
            if isinstance(function, FuncOp):
                for block in function.body.blocks:
                    _Conversion(ctx, block, element_type(_NAMES[self.to]), asked, issues).run()
        issues.warn()


class _Conversion:
    """The conversion of one block.

    `new` has the version in the other format of each value that has one, `wide` the float32 version of such a version.
    Ops in `replaced` have new ones; those in `rounded` compute in float32, but their readers see half precision.
    """

    def __init__(
        self, ctx: Context, block: Block, element: Attribute, asked: LayerPrecisions, issues: WeightIssues
    ) -> None:
        self.issues = issues
        self.ctx = ctx
        self.block = block
        self.element = element
        self.asked = asked
        self.to_half = element != f32
        self.sources = (f32,) if self.to_half else (f16, bf16)
        self.new: dict[SSAValue, SSAValue] = {}
        self.wide: dict[SSAValue, SSAValue] = {}
        self.replaced: dict[Operation, None] = {}
        self.rounded: set[Operation] = set()

    def run(self) -> None:
        kept = self._float32_layers() if self.to_half else set[Operation]()
        for op in list(self.block.ops):
            if not isinstance(op, TensorOp) or isinstance(op, PluginOp):
                self._hand_over(op)
            elif isinstance(op, ConstantOp) or not self._concerns(op):
                continue
            elif not self.to_half and self._only_moves(op):
                self._hand_over(op)
            elif op in kept or isinstance(op, SuppressOp):
                op.operands = [self._in_float32(value, op) for value in op.operands]
            elif self.to_half and self._computes_in_float32(op, kept):
                op.operands = [self._in_float32(value, op) for value in op.operands]
                self.rounded.add(op)
            elif not (self.to_half and isinstance(op, DequantizeOp | DequantizeBlocksOp)):
                if not self.to_half and isinstance(op, IdentityOp):
                    self._keep_rounding(op)
                self._replace(op)
        for op in reversed(list(self.replaced)):
            if all(result.first_use is None for result in op.results):
                self.block.erase_op(op)

    def _float32_layers(self) -> set[Operation]:
        """The layers that keep float32 by what they compute, as far as the user asks for nothing else."""
        kept = float32_layers(self.block, self._weight, self.element)
        for op in self.block.ops:
            asked = self.asked.of(op)
            if asked in WIDE:
                kept.add(op)
            elif asked is not None:
                kept.discard(op)
        return kept

    def _weight(self, constant: ConstantOp) -> Array:
        return constant.array(weights_of(self.ctx))

    def _computes_in_float32(self, op: Operation, kept: set[Operation]) -> bool:
        """Whether a pointwise layer whose result is stored in half precision has operands that would lose by it."""
        if not isinstance(op, POINTWISE) or self.asked.of(op) in HALVES:
            return False
        return any(value.owner in kept for value in op.operands) or self._has_fine_constants(op)

    def _has_fine_constants(self, op: Operation) -> bool:
        """Whether half precision would round a constant operand, none of them being out of its range."""
        owners = [value.owner for value in op.operands if element_of(value.type) in self.sources]
        arrays = [self._weight(owner) for owner in owners if isinstance(owner, ConstantOp)]
        exact = all(is_exact(array, self.element) for array in arrays)
        return not exact and all(in_range(array, self.element) for array in arrays)

    def _only_moves(self, op: TensorOp) -> bool:
        """Whether a layer chooses among numbers that nothing has computed: those of inputs and constants."""
        if isinstance(op, ScatterOp):
            chosen = [op.data] if op.reduction.data is ScatterReduction.NONE else []
        else:
            chosen = list(op.operands) if isinstance(op, GatherOp | ConcatenationOp) else []
        of_halves = [value for value in chosen if element_of(value.type) in self.sources]
        return bool(of_halves) and not any(self._is_narrow(value.owner) for value in of_halves)

    def _keep_rounding(self, op: IdentityOp) -> None:
        """Give readers that cast a tensor back from half precision a cast to it that stays."""
        element = element_of(op.output.type)
        if element not in self.sources or element_of(op.input.type) in self.sources:
            return
        uses = [use for use in op.output.uses if isinstance(use.operation, IdentityOp)]
        back = [use for use in uses if element_of(use.operation.results[0].type) not in self.sources]
        if back:
            rounding = IdentityOp.cast(op.input, element, op.location)
            rounding.attributes[ROUNDS] = UnitAttr()
            self._put(rounding, op, op)
            for use in back:
                use.operation.operands[use.index] = rounding.output

    def _replace(self, op: TensorOp) -> None:
        operands = [self._operand(op, position, value) for position, value in enumerate(op.operands)]
        types = [self._type(result.type) for result in op.results]
        new = type(op).create(operands=operands, properties=self._properties(op), result_types=types)
        new.attributes.update(op.attributes)
        new.location = op.location
        self.block.insert_op_before(new, op)
        for before, after in zip(op.results, new.results, strict=True):
            after.name_hint = before.name_hint
            if before.type == after.type:
                before.replace_all_uses_with(after)
            else:
                self.new[before] = after
        self.replaced[op] = None

    def _properties(self, op: TensorOp) -> dict[str, Attribute]:
        """Those of an op; quotients of polynomials, which take long, are for the last bits of float32."""
        properties = dict(op.properties)
        if self.to_half and isinstance(op, ActivationOp) and op.kind.data in _ROUNDED:
            properties["kind"] = ActivationKindAttr(_ROUNDED[op.kind.data])
        return properties

    def _operand(self, op: TensorOp, position: int, value: SSAValue) -> SSAValue:
        if element_of(value.type) not in self.sources:
            return value
        if isinstance(op, QuantizeOp) and (position > 0 or not self._is_narrow(value.owner)):
            return value  # rounding twice could move it to the next integer
        if isinstance(op, PackedMatrixMultiplyOp) and value is not op.input:
            return value  # scales of quantization
        if self.to_half and value in (getattr(op, "bias", None), getattr(op, "grid", None)):
            return self._in_float32(value, op)
        return self._narrow(value, op)

    def _narrow(self, value: SSAValue, reader: Operation) -> SSAValue:
        """The version in the other format, made where it is first read."""
        if value not in self.new:
            self.new[value] = self._converted(value, reader)
        return self.new[value]

    def _converted(self, value: SSAValue, reader: Operation) -> SSAValue:
        owner = value.owner
        if isinstance(owner, ConstantOp):
            self.issues.look(self._weight(owner), self.element, name_of(reader))
            before = self._weight(owner)
            array = converted(before, self.element, name_of(reader))
            source = None if self.to_half else before  # which takes half of the memory
            new: TensorOp = ConstantOp.from_array(array, weights_of(self.ctx), name_of(reader), source=source)
        else:
            new = IdentityOp.cast(
                value, self.element, owner.location if isinstance(owner, Operation) else reader.location
            )
        self._put(new, owner, reader)
        return new.results[0]

    def _in_float32(self, value: SSAValue, reader: Operation) -> SSAValue:
        """The value itself, or what is left of it where only its half-precision version is stored."""
        if element_of(value.type) not in self.sources or not self._is_narrow(value.owner):
            return value
        narrow = self._narrow(value, reader)
        if narrow not in self.wide:
            cast = IdentityOp.cast(narrow, element_of(value.type), reader.location)
            self._put(cast, narrow.owner, reader)
            self.wide[narrow] = cast.output
        return self.wide[narrow]

    def _is_narrow(self, owner: Operation | Block) -> bool:
        return isinstance(owner, Operation) and (owner in self.rounded or owner in self.replaced)

    def _put(self, new: Operation, owner: Operation | Block, reader: Operation) -> None:
        """Insert an op behind what it reads, so that all later readers may use it."""
        if isinstance(owner, Operation):
            self.block.insert_op_after(new, owner)
        else:
            self.block.insert_op_before(new, reader)

    def _hand_over(self, op: Operation) -> None:
        """Let an op read values in the format that they had: the network's return, a loop, a plugin."""
        for reader in op.walk():
            reader.operands = [self._as_before(value, op) for value in reader.operands]

    def _as_before(self, value: SSAValue, reader: Operation) -> SSAValue:
        new = self.new.get(value)
        if new is None or isinstance(value.owner, Block) or value.owner not in self.replaced:
            return value
        if new not in self.wide:
            cast = IdentityOp.cast(new, element_of(value.type), value.owner.location)
            self.block.insert_op_before(cast, reader)
            cast.output.name_hint = value.name_hint
            self.wide[new] = cast.output
        return self.wide[new]

    def _type(self, of: Attribute) -> Attribute:
        return with_element(of, self.element) if element_of(of) in self.sources else of

    def _concerns(self, op: TensorOp) -> bool:
        return any(element_of(value.type) in self.sources for value in (*op.operands, *op.results))
