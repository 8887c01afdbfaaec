"""Suppression: groups in parallel, in each one box after the other against all that stay before it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, f32, i32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.suppress import SuppressOp
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (SuppressOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0

_BOOLEAN = IntegerType(1)


def lower(op: SuppressOp, lowering: Lowering) -> bool:
    """`parallel (g) { for i: y[g, i] = allowed[g, i] && count < limit && no j < i: y[g, j] && overlap(i, j) }`."""
    groups, length = dims(op.allowed.type)
    k = lowering.kernel("suppress")
    limit, threshold = k.load(op.limit, []), k.load(op.threshold, [])
    with k.parallel([groups]) as (group,):

        def step(place: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            own = _corners(k, op, group, place)

            def hides(at: list[SSAValue]) -> SSAValue:
                kept = k.load(op.output, [group, at[0]])
                overlap = _overlap(k, own, _corners(k, op, group, at[0]), threshold)
                return k.value(arith.ExtUIOp(k.value(arith.AndIOp(kept, overlap)), i32))

            hidden = k.reduce(ReduceKind.MAX, [place], k.constant(0, i32), hides)
            count = k.scalars(limit.type)
            free = k.value(arith.AndIOp(k.load(op.allowed, [group, place]), count.compare("lt", carried[0], limit)))
            stays = k.value(arith.AndIOp(free, k.scalars(i32).compare("eq", hidden, k.constant(0, i32))))
            k.store(stays, op.output, [group, place])
            return [count.add(carried[0], count.cast(stays, _BOOLEAN))]

        k.loop(length, [k.constant(0, limit.type)], step)
    k.finish(op)
    return True


def _corners(k: KernelBuilder, op: SuppressOp, group: SSAValue, place: SSAValue) -> list[SSAValue]:
    return [k.load(op.boxes, [group, place, k.constant(corner)]) for corner in range(4)]


def _overlap(k: KernelBuilder, a: Sequence[SSAValue], b: Sequence[SSAValue], threshold: SSAValue) -> SSAValue:
    """Whether the common area, divided by the area of both together, is larger than the threshold."""
    s = k.scalars(f32)
    zero = k.constant(0, f32)
    sides = [s.max(s.sub(s.min(a[axis + 2], b[axis + 2]), s.max(a[axis], b[axis])), zero) for axis in (0, 1)]
    common = s.mul(*sides)
    area = s.sub(s.add(_area(k, a), _area(k, b)), common)
    exceeds = s.compare("gt", s.div(common, area), threshold)
    return k.value(arith.AndIOp(s.compare("gt", common, zero), exceeds))


def _area(k: KernelBuilder, box: Sequence[SSAValue]) -> SSAValue:
    s = k.scalars(f32)
    return s.mul(s.sub(box[2], box[0]), s.sub(box[3], box[1]))
