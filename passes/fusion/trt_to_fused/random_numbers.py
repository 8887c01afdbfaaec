"""Random numbers: each element computes its own from the seed, the number of the run and its place."""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.scalar_builder import Scalars
from mlirt.dialects.random_numbers import FACTORS, FLOAT_BITS, SECOND_STREAM, SHIFTS, WORD_BITS, first_word
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.dialects.trt.random import RandomKind, RandomOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions


def convert_random(at: Conversion) -> None:
    """`trt.random` becomes a pointwise op over positions."""
    op = at.op
    assert isinstance(op, RandomOp)
    shape, seed, is_uniform = dims(op.output.type), op.seed.value.data, op.kind.data is RandomKind.UNIFORM
    scales = [operand for operand in (op.alpha, op.beta) if operand is not None]

    def formula(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
        s = s.on(f32)
        run, rest = (
            s.on(i32).cast(x[0], i64),
            [s.cast(one, element_of(of.type)) for one, of in zip(x[1:], scales, strict=True)],
        )
        alpha = rest.pop(0) if op.alpha is not None else s.constant(0.0)
        beta = rest.pop(0) if op.beta is not None else s.constant(1.0)
        number = _uniform(s, seed, run, shape)
        if is_uniform:
            return s.function(math.FmaOp, number, s.sub(beta, alpha), alpha)  # rounded once, on every target
        logarithm = s.function(math.LogOp, s.sub(s.constant(1.0), number))
        radius = s.function(math.SqrtOp, s.mul(s.constant(-2.0), logarithm))
        angle = s.mul(s.constant(2 * numbers.pi), _uniform(s, seed ^ SECOND_STREAM, run, shape))
        return s.function(math.FmaOp, s.mul(radius, s.function(math.CosOp, angle)), beta, alpha)

    operands = [op.run, *scales]
    access = [AccessAttr.of([]) for _ in operands]
    at.replace(at.pointwise(operands, op.output.type, None, formula, f32, access))


def _uniform(s: Scalars, seed: int, run: SSAValue, shape: Sequence[Dim]) -> SSAValue:
    """The number of [0, 1) at the position that the region computes."""
    words = s.on(i32)
    start = _mixed(words, words.add(_word(words, first_word(seed)), run))
    mixture = _mixed(words, words.add_op(arith.XOrIOp(start, _mixed(words, _place(words, shape)))))
    kept = words.add_op(arith.ShRUIOp(mixture, words.constant(WORD_BITS - FLOAT_BITS)))
    return s.mul(s.cast(kept, i32), s.constant(2.0**-FLOAT_BITS))


def _place(words: Scalars, shape: Sequence[Dim]) -> SSAValue:
    """How many elements come before this one."""
    whole = words.on(i64)
    place = whole.constant(0)
    for axis, length in enumerate(shape):
        place = whole.add(whole.mul(place, whole.size(length)), whole.index(axis))
    return words.cast(place, i64)


def _mixed(words: Scalars, value: SSAValue) -> SSAValue:
    """`random_numbers.mixed` of one word."""
    value = _folded(words, value, SHIFTS[0])
    for factor, shift in zip(FACTORS, SHIFTS[1:], strict=True):
        value = _folded(words, words.mul(value, _word(words, factor)), shift)
    return value


def _folded(words: Scalars, value: SSAValue, shift: int) -> SSAValue:
    return words.add_op(arith.XOrIOp(value, words.add_op(arith.ShRUIOp(value, words.constant(shift)))))


def _word(words: Scalars, bits: int) -> SSAValue:
    """A constant of 32 bits, whose first is no sign."""
    return words.constant(bits - 2**WORD_BITS if bits >= 2 ** (WORD_BITS - 1) else bits)


CONVERSIONS: Conversions = {RandomOp: convert_random}
