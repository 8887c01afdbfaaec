"""What small integer tensors hold in terms of the network's dimensions: `shape(x)[0] * 2` of n x 3 is `2*n`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.indexing import GatherMode
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import Dim, floor_div, maximum, minimum, modulo, product
from mlirt.dialects.tensor_types import dims, element_of, is_bool, is_float, is_unknown, rank
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.shape import ShapeOp
from mlirt.dialects.trt.shape_values import shape_value
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp

Elements = tuple[Dim, ...]


class ShapeArithmetic:
    """The elements of scalars and vectors of integers, row by row; remembers what it found."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Elements | None] = {}

    def elements(self, value: SSAValue) -> Elements | None:
        """The elements of a 0-D or 1-D integer tensor; None where they do not follow from dimensions."""
        if value not in self._known:
            self._known[value] = self._evaluate(value)
        return self._known[value]

    def _evaluate(self, value: SSAValue) -> Elements | None:
        element = element_of(value.type)
        if rank(value.type) > 1 or is_float(element) or is_bool(element):
            return None
        op = value.owner
        rule = _RULES.get(type(op)) if isinstance(op, Operation) else None
        if rule is None:
            return shape_value(value)
        assert isinstance(op, Operation)
        found = rule(op, self.elements)
        return None if found is None or any(map(is_unknown, found)) else found


Lookup = Callable[[SSAValue], Elements | None]
Rule = Callable[[Operation, Lookup], Elements | None]


def _shape(op: Operation, known: Lookup) -> Elements | None:
    assert isinstance(op, ShapeOp)
    return dims(op.input.type)


def _same(op: Operation, known: Lookup) -> Elements | None:
    """A cast between integers, or a reshape between a scalar and a vector."""
    source = op.operands[0]
    return known(source) if rank(source.type) <= 1 and not is_float(element_of(source.type)) else None


def _concatenation(op: Operation, known: Lookup) -> Elements | None:
    parts = [known(part) for part in op.operands]
    return None if None in parts else tuple(length for part in parts if part is not None for length in part)


def _gather(op: Operation, known: Lookup) -> Elements | None:
    assert isinstance(op, GatherOp)
    data, places = known(op.data) if rank(op.data.type) == 1 else None, known(op.indices)
    if data is None or places is None or op.mode.data is not GatherMode.DEFAULT or op.elementwise_dims:
        return None
    inside = all(isinstance(place, int) and -len(data) <= place < len(data) for place in places)
    return tuple(data[place] for place in places if isinstance(place, int)) if inside else None


def _slice(op: Operation, known: Lookup) -> Elements | None:
    assert isinstance(op, SliceOp)
    data = known(op.input)
    if data is None or op.start is None or op.size is None or op.stride is None or rank(op.input.type) != 1:
        return None
    (start,), (size,), (step,) = op.start.dims(), op.size.dims(), integers(op.stride)
    if not isinstance(start, int) or not isinstance(size, int):
        return None
    places = [start + k * step for k in range(size)]
    return tuple(data[place] for place in places) if all(0 <= place < len(data) for place in places) else None


def _truncated(a: Dim, b: Dim) -> Dim:
    """Integer division; lengths are not negative, so that rounding down is truncation."""
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return floor_div(a, b)


_KIND = ElementwiseKind
_FORMULAS: dict[ElementwiseKind, Callable[[Dim, Dim], Dim]] = {
    _KIND.SUM: lambda a, b: a + b,
    _KIND.SUB: lambda a, b: a - b,
    _KIND.PROD: lambda a, b: a * b,
    _KIND.DIV: _truncated,
    _KIND.FLOOR_DIV: floor_div,
    _KIND.MOD: modulo,
    _KIND.MAX: maximum,
    _KIND.MIN: minimum,
}
_DIVISIONS = (_KIND.DIV, _KIND.FLOOR_DIV, _KIND.MOD)


def _elementwise(op: Operation, known: Lookup) -> Elements | None:
    assert isinstance(op, ElementwiseOp)
    formula, left, right = _FORMULAS.get(op.kind.data), known(op.lhs), known(op.rhs)
    if formula is None or left is None or right is None or (op.kind.data in _DIVISIONS and 0 in right):
        return None
    count = max(len(left), len(right)) if left and right else 0
    return tuple(formula(left[k % len(left)], right[k % len(right)]) for k in range(count))


def _reduce(op: Operation, known: Lookup) -> Elements | None:
    assert isinstance(op, ReduceOp)
    data = known(op.input)
    if (
        data is None
        or len(integers(op.axes)) != rank(op.input.type)
        or op.kind.data not in (ReduceKind.PROD, ReduceKind.SUM)
    ):
        return None
    if op.kind.data is ReduceKind.PROD:
        return (product(data),)
    total: Dim = 0
    for length in data:
        total = total + length
    return (total,)


_RULES: dict[type[Operation], Rule] = {
    ShapeOp: _shape,
    IdentityOp: _same,
    ShuffleOp: _same,
    ConcatenationOp: _concatenation,
    GatherOp: _gather,
    SliceOp: _slice,
    ElementwiseOp: _elementwise,
    ReduceOp: _reduce,
}


def numbers(elements: Sequence[Dim]) -> list[int] | None:
    """The elements where all of them are numbers."""
    found = [element for element in elements if isinstance(element, int)]
    return found if len(found) == len(elements) else None
