"""Strength reduction of conversions: small integers become floats by additions, as GPUs convert slowly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, f32, i32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.contraction import ConvolutionOp, MatmulOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.rounded_values import LIMIT, Rounding, float_constant, is_whole
from mlirt.dialects.fused.scalar_builder import integer_type
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.tensor_types import element_of, is_unsigned
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore
from mlirt.kernels.lib.value_ranges.contraction_ranges import accumulator_range
from mlirt.kernels.lib.value_ranges.range_analysis import Range, ValueRanges, type_range

_SHIFT = 1.5 * 2.0**23
"""Plus a whole number up to the limit: a float32 whose lower bits are the number, and whose step is 1."""
_SHIFT_BITS = 0x4B400000
_MIN_DIVISOR = 2.0**-100  # divisors, whose quotients neither overflow nor get too small to be corrected


@dataclass(frozen=True)
class StrengthReduceConversionsPass(ModulePass):
    """Replace conversions in the scalar regions of fused ops by additions, with the same results but for signs of zero.

    A GPU converts an eighth as many numbers as it adds. 12582912 = 1.5 * 2**23 is a float32 from which on neighbours
    are 1 apart up to 2**22 in both directions: adding it rounds half to even and leaves the integer in the lower bits,
    adding its bits to an integer makes a float. How large numbers are follows from the integers and constants that
    they are made of; sums of products from the weights. Others are left alone, such as all that may not be finite.

    - an integer to float32;
    - a float32 that is rounded, shifted by a zero point, clamped, and made an integer;
    - a quotient by a constant, which is rounded next or the argument of an error function, becomes a product that is
      corrected by its remainder, and where it undoes a product of a whole number by that constant, that number;
    - a float32 that was rounded to an integer on the way stays one.

    Before:

        %0 = math.roundeven %x : f32
        %1 = arith.maximumf %0, %low : f32
        %2 = arith.minimumf %1, %high : f32
        %3 = arith.fptosi %2 : f32 to i32

    After:

        %0 = arith.addf %x, %shift : f32
        %1 = arith.bitcast %0 : f32 to i32
        %2 = arith.subi %1, %bits : i32
        %3 = arith.maxsi %2, %low : i32
        %4 = arith.minsi %3, %high : i32
    """

    name = "strength-reduce-conversions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        store = weights_of(ctx)
        for inner in op.walk():
            if isinstance(inner, PointwiseOp):
                _Region(inner.body.block, inner.inputs, store).run()
            elif isinstance(inner, ReductionOp):
                _Region(inner.body.block, inner.inputs, store).run()
                _Region(inner.epilogue.block, inner.extras, store).run()
            elif isinstance(inner, ConvolutionOp | MatmulOp):
                _Region(inner.epilogue.block, inner.extras, store, accumulator_range(inner, store)).run()
            elif isinstance(inner, WindowOp):
                _Region(inner.epilogue.block, inner.extras, store).run()


class _Region:
    """A scalar region; its last arguments are elements of the operands, the one before may be a sum."""

    def __init__(
        self, block: Block, operands: Sequence[SSAValue], store: WeightStore, accumulators: Range | None = None
    ) -> None:
        self.block = block
        self.ranges = ValueRanges()
        if accumulators is not None:
            self.ranges.set(block.args[0], accumulators)
        elements = block.args[len(block.args) - len(operands) :]
        for argument, operand in zip(elements, operands, strict=True):
            self.ranges.set(argument, _elements(operand, store))

    def run(self) -> None:
        for op in list(self.block.ops):
            if isinstance(op, arith.SIToFPOp | arith.UIToFPOp):
                self._stay_float(op)
            elif isinstance(op, arith.DivfOp):
                self._divide(op)
            elif isinstance(op, arith.AddfOp | arith.SubfOp):
                self._drop_zero(op)
            elif isinstance(op, math.RoundEvenOp) and is_whole(op.operand):
                Rewriter.replace_op(op, [], [op.operand])
        for op in list(self.block.ops):
            if isinstance(op, arith.FPToSIOp):
                self._round(op)
        for op in list(self.block.ops):
            if isinstance(op, arith.SIToFPOp | arith.UIToFPOp):
                self._widen(op)
            elif isinstance(op, math.RoundEvenOp):
                self._round_float(op)
        for op in reversed(list(self.block.ops)):
            if op.results and all(result.first_use is None for result in op.results):
                self.block.erase_op(op)

    def _replace(self, op: Operation, new: Sequence[Operation]) -> None:
        self.ranges.set(new[-1].results[0], self.ranges.of(op.results[0]))
        Rewriter.replace_op(op, new)

    def _stay_float(self, op: arith.SIToFPOp | arith.UIToFPOp) -> None:
        """An integer that a whole float became, without wrapping around, is that float."""
        value, known = op.input, self.ranges.unsigned if isinstance(op, arith.UIToFPOp) else self.ranges.of
        while isinstance(value.owner, arith.TruncIOp | arith.ExtSIOp | arith.ExtUIOp | arith.BitcastOp):
            value = value.owner.operands[0]
        owner = value.owner
        if not isinstance(owner, arith.FPToSIOp) or owner.input.type != op.result.type or not is_whole(owner.input):
            return
        if self.ranges.of(owner.input) is not None and known(op.input) == self.ranges.of(owner.input):
            Rewriter.replace_op(op, [], [owner.input])

    def _drop_zero(self, op: arith.AddfOp | arith.SubfOp) -> None:
        """A zero point of zero. The sign of a zero does not outlive the shift that rounds."""
        whole = is_whole(op.lhs) and self.ranges.of(op.lhs) is not None
        if float_constant(op.rhs) == 0.0 and (whole or isinstance(op, arith.SubfOp)):
            Rewriter.replace_op(op, [], [op.lhs])

    def _round_float(self, op: math.RoundEvenOp) -> None:
        """The shift is added and taken away again."""
        x = self.ranges.of(op.operand)
        if op.result.type == f32 and x is not None and x.within(-LIMIT, LIMIT):
            shift = _float(_SHIFT)
            moved = arith.AddfOp(op.operand, shift.result)
            self._replace(op, [shift, moved, arith.SubfOp(moved.result, shift.result)])

    def _widen(self, op: arith.SIToFPOp | arith.UIToFPOp) -> None:
        """An integer plus the bits of the shift is the shift plus the integer."""
        source, unsigned = op.input, isinstance(op, arith.UIToFPOp)
        known = self.ranges.unsigned(source) if unsigned else self.ranges.of(source)
        if op.result.type != f32 or known is None or not known.within(-LIMIT, LIMIT) or _width(source) > 32:
            return
        wide: list[Operation] = []
        if _width(source) < 32:
            wide.append((arith.ExtUIOp if unsigned else arith.ExtSIOp)(source, i32))
            source = wide[0].results[0]
        bits, shift = arith.ConstantOp(IntegerAttr(_SHIFT_BITS, i32)), _float(_SHIFT)
        moved = arith.AddiOp(source, bits.result)
        as_float = arith.BitcastOp(moved.result, f32)
        self._replace(op, [*wide, bits, shift, moved, as_float, arith.SubfOp(as_float.result, shift.result)])

    def _round(self, op: arith.FPToSIOp) -> None:
        """`fptosi(clamp(roundeven(x) + zero))` as `clamp` of the lower bits of `x + shift` plus zero.

        Where x itself may be too large for that, the float is clamped.
        """
        found = Rounding.of(op)
        if found is None or op.input.type != f32 or _width(op.result) > 32:
            return
        x = self.ranges.of(found.input)
        low, high = found.low - found.zero, found.high - found.zero
        if x is None or max(low, x.low) < -LIMIT or min(high, x.high) > LIMIT:
            return
        below, above, is_small = x.low < low, x.high > high, x.within(-LIMIT, LIMIT)
        new: list[Operation] = []
        value = found.input
        for bound, needed, clamp in ((low, below, arith.MaximumfOp), (high, above, arith.MinimumfOp)):
            if needed and not is_small:
                limit = _float(bound)
                new += [limit, clamp(value, limit.result)]
                value = new[-1].results[0]
        shift = _float(_SHIFT)
        moved = arith.AddfOp(value, shift.result)
        bits = arith.BitcastOp(moved.result, i32)
        back = arith.ConstantOp(IntegerAttr(_SHIFT_BITS - int(found.zero), i32))
        new += [shift, moved, bits, back, arith.SubiOp(bits.result, back.result)]
        for bound, needed, clamp in ((found.low, below, arith.MaxSIOp), (found.high, above, arith.MinSIOp)):
            if needed and is_small:
                limit = arith.ConstantOp(IntegerAttr(int(bound), i32))
                new += [limit, clamp(new[-1].results[0], limit.result)]
        if _width(op.result) < 32:
            new.append(arith.TruncIOp(new[-1].results[0], op.result.type))  # pyright: ignore[reportArgumentType]
        self._replace(op, new)

    def _divide(self, op: arith.DivfOp) -> None:
        """With the reciprocal r of d: q = x * r, corrected by (x - q * d) * r."""
        import numpy as np

        divisor, x = float_constant(op.rhs), self.ranges.of(op.lhs)
        rounded = all(isinstance(use.operation, math.RoundEvenOp | math.ErfOp) for use in op.result.uses)
        if op.result.type == f32 and divisor == 1.0:
            Rewriter.replace_op(op, [], [op.lhs])
            return
        if op.result.type != f32 or divisor is None or x is None or not rounded:
            return
        if self._undo(op, divisor):
            return
        if not _MIN_DIVISOR <= abs(divisor) <= 1 / _MIN_DIVISOR or not x.within(-1 / _MIN_DIVISOR, 1 / _MIN_DIVISOR):
            return
        reciprocal = _float(float(np.float32(1) / np.float32(divisor)))
        quotient = arith.MulfOp(op.lhs, reciprocal.result)
        minus = arith.NegfOp(quotient.result)
        rest = math.FmaOp(minus.result, op.rhs, op.lhs)
        corrected = math.FmaOp(rest.result, reciprocal.result, quotient.result)
        self.ranges.set(op.result, (x * Range(1 / divisor, 1 / divisor)).widened())
        self._replace(op, [reciprocal, quotient, minus, rest, corrected])

    def _undo(self, op: arith.DivfOp, divisor: float) -> bool:
        """`n * d / d`, where n is whole: both roundings together are less than half of one. Or `max(n * d, 0) / d`."""
        above: arith.MaximumfOp | None = None
        scaled = op.lhs.owner
        if isinstance(scaled, arith.MaximumfOp) and float_constant(scaled.rhs) == 0.0 and divisor > 0:
            above, scaled = scaled, scaled.lhs.owner
        if not isinstance(scaled, arith.MulfOp) or float_constant(scaled.rhs) != divisor or not is_whole(scaled.lhs):
            return False
        known = self.ranges.of(scaled.lhs)
        if known is None or not known.within(-LIMIT, LIMIT):
            return False
        if above is None:
            Rewriter.replace_op(op, [], [scaled.lhs])
        else:
            Rewriter.replace_op(op, [arith.MaximumfOp(scaled.lhs, above.rhs)])
        return True


def _float(value: float) -> arith.ConstantOp:
    return arith.ConstantOp(FloatAttr(value, f32))


def _width(value: SSAValue) -> int:
    return integer_type(value.type).width.data


def _elements(operand: SSAValue, store: WeightStore) -> Range | None:
    """The range of a tensor's elements: of known ones what they are, of other integers what their type holds."""
    import numpy as np

    owner = operand.owner
    if not isinstance(owner, ConstantOp):
        element = element_of(operand.type)
        return type_range(element, unsigned=is_unsigned(element))
    array = owner.array(store)
    if array.dtype.kind not in "iuf" or not array.size or not np.isfinite(array).all():
        return None
    return Range(float(array.min()), float(array.max()))
