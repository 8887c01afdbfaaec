"""Sampling at computed positions: for each neighbour of a position its place and its weight, then one gather."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as combinations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.fused.scalar_builder import Scalars, compute_type
from mlirt.dialects.grid_sampling import SampleMode
from mlirt.dialects.indexing import GatherMode
from mlirt.dialects.interpolation import ResizeKind
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, element_of, is_float, tensor
from mlirt.dialects.trt.grid_sample import GridSampleOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions

# Offsets of the cells that a position lies between, from the one before it.
_NEIGHBOURS = {ResizeKind.NEAREST: (0,), ResizeKind.LINEAR: (0, 1), ResizeKind.CUBIC: (-1, 0, 1, 2)}
_CUBIC_COEFFICIENT = -0.75


@dataclass(frozen=True)
class _Axis:
    """Positions along one axis of the image, in scalar ops: what `dialects.grid_sampling` says of whole arrays."""

    s: Scalars
    length: SSAValue
    kind: ResizeKind
    mode: SampleMode
    align_corners: bool

    def cell_and_weight(self, grid: SSAValue, offset: int) -> tuple[SSAValue, SSAValue]:
        """The index of a neighbour, inside of the image, and its weight."""
        s = self.s
        position = self._position(grid)
        base = s.function(math.FloorOp, position)
        cell = s.add(base, s.constant(offset))
        weight = self._weight(s.sub(position, base), offset)
        if self.mode is SampleMode.REFLECT:
            cell = s.function(math.TruncOp, self._reflected(cell))
        if self.mode is SampleMode.FILL:
            low, high = s.compare("ge", cell, s.constant(0)), s.compare("le", cell, self._last())
            weight = s.select(s.add_op(arith.AndIOp(low, high)), weight, s.constant(0))
        return self._inside(cell), weight

    def _last(self) -> SSAValue:
        return self.s.sub(self.length, self.s.constant(1))

    def _inside(self, cell: SSAValue) -> SSAValue:
        return self.s.min(self.s.max(cell, self.s.constant(0)), self._last())

    def _edges(self) -> tuple[SSAValue, SSAValue]:
        s = self.s
        if self.align_corners:
            return s.constant(0), self._last()
        return s.constant(-0.5), s.sub(self.length, s.constant(0.5))

    def _position(self, grid: SSAValue) -> SSAValue:
        s, half, one = self.s, self.s.constant(0.5), self.s.constant(1)
        from_edge = s.add(grid, one)
        if self.align_corners:
            position = s.mul(s.mul(from_edge, half), self._last())
        else:
            position = s.mul(s.sub(s.mul(from_edge, self.length), one), half)
        if self.kind is ResizeKind.NEAREST:
            position = s.function(math.RoundEvenOp, position)
        if self.mode is SampleMode.CLAMP and self.kind is not ResizeKind.CUBIC:
            return self._if_beyond(position, self._inside(position))
        if self.mode is SampleMode.REFLECT:
            return self._if_beyond(position, self._reflected(position))
        return position

    def _if_beyond(self, position: SSAValue, other: SSAValue) -> SSAValue:
        s = self.s
        low, high = self._edges()
        beyond = s.add_op(arith.OrIOp(s.compare("lt", position, low), s.compare("gt", position, high)))
        return s.select(beyond, other, position)

    def _reflected(self, position: SSAValue) -> SSAValue:
        """The position folded back at both edges; an image without extent has one position."""
        s = self.s
        low, high = self._edges()
        span = s.sub(high, low)
        twice, from_low = s.add(span, span), s.sub(position, low)
        rounds = s.function(math.FloorOp, s.div(from_low, twice))
        folded = s.sub(from_low, s.mul(rounds, twice))
        mirrored = s.add(low, s.min(folded, s.sub(twice, folded)))
        return s.select(s.compare("gt", span, s.constant(0)), mirrored, low)

    def _weight(self, fraction: SSAValue, offset: int) -> SSAValue:
        s = self.s
        if self.kind is ResizeKind.NEAREST:
            return s.constant(1)
        if self.kind is ResizeKind.LINEAR:
            return fraction if offset else s.sub(s.constant(1), fraction)
        return self._cubic(s.abs(s.sub(fraction, s.constant(offset))), near=offset in (0, 1))

    def _cubic(self, distance: SSAValue, *, near: bool) -> SSAValue:
        """Keys' kernel at a distance of at most 1, or of 1 to 2."""
        a = _CUBIC_COEFFICIENT
        coefficients = (a + 2, -(a + 3), 0, 1) if near else (a, -5 * a, 8 * a, -4 * a)
        value = self.s.constant(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self.s.add(self.s.mul(value, distance), self.s.constant(coefficient))
        return value


def convert_grid_sample(at: Conversion) -> None:
    """`trt.grid_sample` becomes, per neighbour, a pointwise op for places, one for weights, a gather and a sum."""
    op = at.op
    assert isinstance(op, GridSampleOp)
    batch, channels, *image = dims(op.input.type)
    positions = dims(op.grid.type)[1:-1]
    flat = at.viewed(op.input, [batch, channels, product(image)])
    element = element_of(op.input.type)
    compute = compute_type(element) if is_float(element) else f64
    total: SSAValue | None = None
    for offsets in combinations(_NEIGHBOURS[op.kind.data], repeat=len(image)):
        places = at.viewed(_over_grid(at, op, image, offsets, weigh=False), [batch, product(positions)])
        picked = tensor(element, [batch, channels, product(positions)])
        values = at.emit(GatherOp(flat, places, picked, GatherMode.DEFAULT, 2, 1))
        values = at.viewed(values, dims(op.output.type))
        weights = _over_grid(at, op, image, offsets, weigh=True)
        total = _weighted(at, op, values, weights, total, compute)
    assert total is not None
    at.replace(at.pointwise([total], op.output.type, compute, lambda s, x: x[0]))


def _over_grid(
    at: Conversion, op: GridSampleOp, image: Sequence[Dim], offsets: Sequence[int], *, weigh: bool
) -> SSAValue:
    """For each position the place of one neighbour in the flattened image, or its weight."""
    grid, count = op.grid, len(image)
    space = dims(grid.type)[:-1]
    element = compute_type(element_of(grid.type))
    places = [iteration(axis) for axis in range(len(space))]
    # The first coordinate belongs to the innermost axis.
    access = [AccessAttr.of([*places, count - 1 - axis]) for axis in range(count)]

    def formula(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
        whole, result = s.on(i64), None
        for coordinate, length, offset in zip(x, image, offsets, strict=True):
            axis = _Axis(s, s.size(length), op.kind.data, op.mode.data, bool(op.align_corners.value.data))
            cell, weight = axis.cell_and_weight(coordinate, offset)
            if weigh:
                result = weight if result is None else s.mul(result, weight)
            else:
                index = whole.cast(cell, element)
                result = index if result is None else whole.add(whole.mul(result, whole.size(length)), index)
        assert result is not None
        return result

    yields = element if weigh else i64
    return at.pointwise([grid] * count, tensor(yields, space), element, formula, yields, access)


def _weighted(
    at: Conversion, op: GridSampleOp, values: SSAValue, weights: SSAValue, total: SSAValue | None, compute: Attribute
) -> SSAValue:
    """total + values * weights; the weights are the same for all channels."""
    own = [iteration(axis) for axis in range(len(dims(values.type)))]
    access = [AccessAttr.of(own), AccessAttr.of([own[0], *own[2:]]), AccessAttr.of(own)]

    def formula(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
        term = s.mul(x[0], x[1])
        return term if len(x) == 2 else s.add(x[2], term)

    operands = [values, weights] if total is None else [values, weights, total]
    result = tensor(compute, dims(op.output.type))
    return at.pointwise(operands, result, compute, formula, access=access[: len(operands)])


CONVERSIONS: Conversions = {GridSampleOp: convert_grid_sample}
