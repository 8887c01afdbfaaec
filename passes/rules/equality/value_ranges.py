"""Value ranges of tensors: which numbers a layer can give, by interval arithmetic that allows for rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from xdsl.context import Context
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirt.dialects.constant_values import array_of, rounded, splat_of
from mlirt.dialects.integer_list import integers
from mlirt.dialects.slicing import SliceMode
from mlirt.dialects.tensor_types import byte_width, dims, element_count, element_of, integer_range, is_bool, is_float
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.broadcast import BroadcastOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.unary import UnaryKind, UnaryOp

_MAX_ELEMENTS = 1 << 16  # of a constant whose numbers are looked at
_ROUNDING = {2: 2.0**-6, 4: 2.0**-20, 8: 2.0**-48}  # relative, by the bytes of a type; bfloat16 is the worst of two
_MIN_NORMAL = {2: 6.2e-5, 4: 1.2e-38, 8: 2.3e-308}  # smaller numbers may become 0
_MAX_FINITE = {2: 6e4, 4: 3e38, 8: 1e308}  # larger ones may become infinite


@dataclass(frozen=True)
class Interval:
    """All numbers from `low` to `high`, infinities included; and not-a-number, where that may be."""

    low: float = -math.inf
    high: float = math.inf
    may_be_nan: bool = True

    def __and__(self, other: Interval) -> Interval:
        nan = self.may_be_nan and other.may_be_nan
        return Interval(max(self.low, other.low), min(self.high, other.high), nan)

    def __or__(self, other: Interval) -> Interval:
        nan = self.may_be_nan or other.may_be_nan
        return Interval(min(self.low, other.low), max(self.high, other.high), nan)

    def within(self, low: float, high: float) -> bool:
        """Whether every number that it holds is between two others; not-a-number counts for nothing."""
        return low <= self.low and self.high <= high

    @property
    def is_bounded(self) -> bool:
        """Whether it holds no infinity."""
        return -math.inf < self.low and self.high < math.inf


ANY = Interval()
_Ranges: TypeAlias = "Callable[[SSAValue], Interval]"


class ValueRanges:
    """The ranges of values, each found once. What layers say of their results holds for the rounded ones."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._known: dict[SSAValue, Interval] = {}

    def of(self, value: SSAValue) -> Interval:
        """The range of a value."""
        found = self._known.get(value)
        if found is not None:
            return found
        waiting = [value]
        while waiting:
            one = waiting[-1]
            needed = [other for other in _needed(one) if other not in self._known]
            if needed and one not in self._known:
                waiting += needed
                continue
            waiting.pop()
            if one not in self._known:
                self._known[one] = self._range(one)
        return self._known[value]

    def _range(self, value: SSAValue) -> Interval:
        owner = value.owner
        if isinstance(owner, Block):
            return _any(value)
        if isinstance(owner, ConstantOp):
            return _constant_range(value, self._ctx)
        transfer = _TRANSFERS.get(type(owner))
        if transfer is None:
            return _any(value)
        found = transfer(owner, self._known.__getitem__)
        element = element_of(value.type)
        return found if is_float(element) and not _is_computed(owner) else _rounded(found, element)


def _is_computed(op: Operation) -> bool:
    """Whether bounds of an op follow from arithmetic, and are no bounds of its operands or its own."""
    return isinstance(op, IdentityOp) or (isinstance(op, ElementwiseOp) and op.kind.data not in _CHOICES)


_CHOICES = (ElementwiseKind.MAX, ElementwiseKind.MIN)


def _needed(value: SSAValue) -> Sequence[SSAValue]:
    owner = value.owner
    return owner.operands if isinstance(owner, Operation) and type(owner) in _TRANSFERS else ()


def _any(value: SSAValue) -> Interval:
    try:
        element = element_of(value.type)
    except Exception:  # no tensor
        return ANY
    return _of_type(element)


def _of_type(element: Attribute) -> Interval:
    if is_float(element):
        return ANY
    if is_bool(element):
        return Interval(0, 1, False)
    low, high = integer_range(element)
    return Interval(low, high, False)


def _rounded(found: Interval, element: Attribute) -> Interval:
    """With room for the rounding of a type; of integers nothing is known where they may wrap around."""
    if not is_float(element):
        whole = _of_type(element)
        return replace(found, may_be_nan=False) if found.within(whole.low, whole.high) else whole
    width = max(2, byte_width(element))
    return Interval(_outward(found.low, -1, width), _outward(found.high, 1, width), found.may_be_nan)


def _outward(number: float, sign: int, width: int) -> float:
    """A bound further out (`sign` is -1 below, 1 above), where the type has no such number."""
    if number in _EXACT:
        return number
    if sign * number > _MAX_FINITE[width]:
        return sign * math.inf
    return 0.0 if 0 < -sign * number < _MIN_NORMAL[width] else number + sign * abs(number) * _ROUNDING[width]


_EXACT = (0.0, 1.0, -1.0, math.inf, -math.inf)  # numbers of every type: rounding stays on their side


def _constant_range(value: SSAValue, ctx: Context) -> Interval:
    number = splat_of(value)
    if number is not None:
        return Interval() if math.isnan(number) else Interval(number, number, False)
    count = element_count(value.type)
    array = array_of(value, ctx) if isinstance(count, int) and 0 < count <= _MAX_ELEMENTS else None
    if array is None:
        return _any(value)
    wide = array.astype("float64")
    low, high = float(wide.min()), float(wide.max())
    return Interval() if math.isnan(low) or math.isnan(high) else Interval(low, high, False)


def _activation(op: ActivationOp, of: _Ranges) -> Interval:
    kind, x = op.kind.data, of(op.input)
    alpha, beta = op.alpha.value.data, op.beta.value.data
    nan = x.may_be_nan
    if kind is ActivationKind.RELU:
        return Interval(max(x.low, 0.0), max(x.high, 0.0), nan)
    if kind is ActivationKind.CLIP:
        low, high = clip_bounds(op)
        return Interval(min(max(x.low, low), high), min(max(x.high, low), high), nan)
    if kind in _FIXED:
        low, high = _FIXED[kind]
        return Interval(max(low, 0.0) if x.low >= 0 and kind in _ODD else low, high, nan)
    if kind in _KEEP_SIGN and x.low >= 0 and _keeps_positive(kind, alpha, beta):
        return Interval(0.0, math.inf, nan or x.high == math.inf)
    if kind in _LOW_ENDS:
        return Interval(_LOW_ENDS[kind], math.inf, True)
    if kind is ActivationKind.SOFTPLUS and alpha >= 0:
        return Interval(0.0, math.inf, nan)
    if kind is ActivationKind.THRESHOLDED_RELU and alpha >= 0:
        return Interval(0.0, max(x.high, 0.0), nan)
    return ANY


def clip_bounds(op: ActivationOp) -> tuple[float, float]:
    """The bounds of a clip in the type of its numbers; what is no number bounds nothing."""
    low, high = (rounded(one.value.data, element_of(op.output.type)) for one in (op.alpha, op.beta))
    return -math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high


_FIXED = {
    ActivationKind.SIGMOID: (0.0, 1.0),
    ActivationKind.TANH: (-1.0, 1.0),
    ActivationKind.SOFTSIGN: (-1.0, 1.0),
    ActivationKind.HARD_SIGMOID: (0.0, 1.0),
}
_ODD = (ActivationKind.TANH,)
_KEEP_SIGN = (
    ActivationKind.LEAKY_RELU,
    ActivationKind.ELU,
    ActivationKind.SELU,
    ActivationKind.CELU,
    ActivationKind.GELU_ERF,
    ActivationKind.GELU_TANH,
    ActivationKind.HARD_SWISH,
    ActivationKind.MISH,
)
"""Of these a number that is not negative gives one that is not."""
_LOW_ENDS = {ActivationKind.GELU_ERF: -0.18, ActivationKind.GELU_TANH: -0.18, ActivationKind.MISH: -0.32}


def _keeps_positive(kind: ActivationKind, alpha: float, beta: float) -> bool:
    if kind is ActivationKind.SELU:
        return beta >= 0
    return kind is not ActivationKind.HARD_SWISH or (alpha >= 0 and beta >= 0)


def _unary(op: UnaryOp, of: _Ranges) -> Interval:
    kind, x = op.kind.data, of(op.input)
    nan = x.may_be_nan
    if kind is UnaryKind.EXP:
        return Interval(0.0 if x.low < 0 else 1.0, 1.0 if x.high <= 0 else math.inf, nan)
    if kind is UnaryKind.SQRT:
        low = 0.999 * math.sqrt(x.low) if 0 < x.low < 1 else float(x.low >= 1)
        return Interval(low, 1.0 if x.high <= 1 else math.inf, nan or x.low < 0)
    if kind is UnaryKind.LOG and x.low >= 1:
        return Interval(0.0, math.inf, nan)
    if kind is UnaryKind.ABS:
        low = 0.0 if x.low <= 0 <= x.high else min(abs(x.low), abs(x.high))
        return Interval(low, max(abs(x.low), abs(x.high)), nan)
    if kind is UnaryKind.NEG:
        return Interval(-x.high, -x.low, nan)
    if kind in (UnaryKind.SIN, UnaryKind.COS):
        return Interval(-1.0, 1.0, nan or not x.is_bounded)
    if kind in (UnaryKind.ERF, UnaryKind.SIGN):
        return Interval(0.0 if x.low >= 0 else -1.0, 0.0 if x.high <= 0 else 1.0, nan)
    if kind is UnaryKind.RECIP and x.low > 0:
        return Interval(0.0, 1.001 / x.low, nan)
    if kind is UnaryKind.COSH:
        return Interval(1.0, math.inf, nan)
    return _of_type(element_of(op.output.type))


def _elementwise(op: ElementwiseOp, of: _Ranges) -> Interval:
    kind, a, b = op.kind.data, of(op.lhs), of(op.rhs)
    nan = a.may_be_nan or b.may_be_nan
    if kind is ElementwiseKind.MAX:
        return Interval(max(a.low, b.low), max(a.high, b.high), nan)
    if kind is ElementwiseKind.MIN:
        return Interval(min(a.low, b.low), min(a.high, b.high), nan)
    if kind is ElementwiseKind.SUM:
        return _sum(a, b)
    if kind is ElementwiseKind.SUB:
        return _sum(a, Interval(-b.high, -b.low, b.may_be_nan))
    if kind is ElementwiseKind.PROD:
        found = _product(a, b)
        return found & Interval(0.0) if op.lhs is op.rhs else found
    if kind is ElementwiseKind.DIV and b.low > 0:
        low = 0.0 if a.low >= 0 else -math.inf
        return Interval(low, 0.0 if a.high <= 0 else math.inf, nan or not (a.is_bounded or b.is_bounded))
    return _of_type(element_of(op.output.type))


def _sum(a: Interval, b: Interval) -> Interval:
    """Infinities of both signs give not-a-number, which is no number of the interval."""
    nan = a.may_be_nan or b.may_be_nan
    nan = nan or (a.high == math.inf and b.low == -math.inf) or (a.low == -math.inf and b.high == math.inf)
    low, high = a.low + b.low, a.high + b.high
    return Interval(-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high, nan)


def _product(a: Interval, b: Interval) -> Interval:
    zero_times_infinity = not (a.is_bounded and b.is_bounded)
    ends = [0.0 if 0 in (x, y) else x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return Interval(min(ends), max(ends), a.may_be_nan or b.may_be_nan or zero_times_infinity)


def _reduce(op: ReduceOp, of: _Ranges) -> Interval:
    kind, x = op.kind.data, of(op.input)
    lengths = [dims(op.input.type)[axis] for axis in integers(op.axes)]
    if not all(isinstance(length, int) and length > 0 for length in lengths):
        return _of_type(element_of(op.output.type))
    if kind in (ReduceKind.MAX, ReduceKind.MIN):
        return x
    mixed = x.low == -math.inf and x.high == math.inf
    if kind is ReduceKind.AVG:
        low, high = (end if math.isinf(end) else end + _SUMS * sign * abs(end) for end, sign in _ends(x))
        return Interval(low, high, x.may_be_nan or mixed)
    if kind is ReduceKind.SUM:
        low = 0.0 if x.low >= 0 else -math.inf
        return Interval(low, 0.0 if x.high <= 0 else math.inf, x.may_be_nan or mixed)
    return Interval(0.0) if x.low >= 0 else ANY


def _ends(x: Interval) -> Sequence[tuple[float, int]]:
    return ((x.low, -1), (x.high, 1))


_SUMS = 2.0**-8  # relative, for the rounding of a mean's sum


def _softmax(op: SoftmaxOp, of: _Ranges) -> Interval:
    return Interval(-math.inf, 0.0) if op.log.value.data else Interval(0.0, 1.0)


def _moved(op: ShuffleOp | BroadcastOp, of: _Ranges) -> Interval:
    return of(op.input)


def _slice(op: SliceOp, of: _Ranges) -> Interval:
    whole = _of_type(element_of(op.output.type))
    return of(op.input) if op.mode.data is SliceMode.STRICT_BOUNDS else whole


def _identity(op: IdentityOp, of: _Ranges) -> Interval:
    x = of(op.input)
    return x if is_float(element_of(op.output.type)) else _of_type(element_of(op.output.type))


def _joined(op: ConcatenationOp, of: _Ranges) -> Interval:
    found = of(op.inputs[0])
    for value in op.inputs[1:]:
        found = found | of(value)
    return found


def _selected(op: SelectOp, of: _Ranges) -> Interval:
    return of(op.then_input) | of(op.else_input)


_TRANSFERS: dict[type, Callable[[Any, _Ranges], Interval]] = {
    ActivationOp: _activation,
    UnaryOp: _unary,
    ElementwiseOp: _elementwise,
    ReduceOp: _reduce,
    SoftmaxOp: _softmax,
    ShuffleOp: _moved,
    BroadcastOp: _moved,
    SliceOp: _slice,
    IdentityOp: _identity,
    ConcatenationOp: _joined,
    SelectOp: _selected,
}
