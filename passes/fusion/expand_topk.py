"""Finds the k largest elements of long rows among those of a few parts of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, i64
from xdsl.ir import SSAValue

from mlirt.dialects.indexing import GatherMode
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_unsigned
from mlirt.dialects.trt.elementwise import ElementwiseKind
from mlirt.dialects.trt.gather import GatherModeAttr, GatherOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceKindAttr, ReduceOp
from mlirt.dialects.trt.topk import TopkKind, TopkKindAttr, TopkOp
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

_MIN_PARTS, _MAX_PARTS = 2, 8  # times k: fewer leave most of a row, and many take long to compare with each other
_MIN_COMPARED = 512  # so many parts are compared with each other in no time
_MAX_COMPARED = 4096  # elements of what is left of a row


@dataclass(frozen=True)
class ExpandTopkPass(RulePass):
    """Look for the k largest elements of a row in the k parts of it whose largest elements are the largest.

    Each of the other parts has only elements that are no larger than the largest one of each of these k, and that stand
    behind it where they are equal, if a part in front wins over one behind it whose largest element is the same. So the
    results are those of the whole row, to the order of equal elements. The parts, in their order, are a shorter row,
    which is expanded in turn. A row is read once for all of it; picking reads it k times, and ranking n times.

    Rows of at least `longest` elements are expanded, where their length has a divisor that is a good number of parts,
    but not where only the place of one element is read, which is a reduction.

    Before: `%v, %i = trt.topk max %x {k = 100, axis = 1} : (tensor<16x65536xf32>) -> ..`
    After:

        %p = trt.shuffle %x {reshape_dims = [16, 512, 128]}
        %m = trt.reduce max %p {axes = [2]}
        %_, %c = trt.topk max %m {k = 100, axis = 1}
        %o, %_ = trt.topk min %c {k = 100, axis = 1}
        %r = trt.gather %p, %o {axis = 1, num_elementwise_dims = 1} : .. -> tensor<16x100x128xf32>
        %v, %j = trt.topk max (%r as tensor<16x12800xf32>) {k = 100, axis = 1}
        %i = 128 * %o[%j / 128] + %j % 128
    """

    name = "expand-topk"

    longest: int = option(16384, at_least=_MAX_COMPARED + 1)

    @rule(op(TopkOp).named("topk"))
    def expand(self, m: Match, ctx: Context, topk: TopkOp) -> Outcome:
        k, axis, shape = topk.count(), topk.axis.value.data, dims(topk.input.type)
        *outer, length = shape
        element = element_of(topk.input.type)
        if not isinstance(k, int) or not isinstance(length, int) or k < 1 or length < self.longest:
            return None
        if k == 1 and topk.values.first_use is None:
            return "the place of one element is a reduction"
        if topk.kind.data is not TopkKind.MAX or axis != len(outer):
            return "it looks for the smallest elements, or not along the last axis"
        if is_unsigned(element) or byte_width(element) < 2:
            return "its elements are unsigned, or bytes"
        if _parts(length, k) is None:
            return "its length has no divisor that is a good number of parts"
        rows = _Rows(LayerBuilder.in_front_of(topk, ctx), k, product(outer))
        values, places = rows.largest(rows.build.shaped(topk.input, [rows.count, length]))
        return [rows.build.shaped(one, [*outer, k]) for one in (values, places)]


def _parts(length: int, k: int) -> int | None:
    """How many parts of a row of this length are compared: a divisor of it near to the middle of what is good."""
    least, most = max(_MIN_PARTS * k, _MIN_COMPARED), max(_MAX_PARTS * k, _MAX_PARTS * _MIN_COMPARED)
    divisors = [n for n in range(least, min(most, length // 2) + 1) if length % n == 0]
    middle = (least * most) ** 0.5
    return min(divisors, key=lambda n: max(n / middle, middle / n), default=None)


@dataclass(frozen=True)
class _Rows:
    """Adds layers that find the `k` largest elements of each of `count` rows."""

    build: LayerBuilder
    k: int
    count: Dim

    def largest(self, x: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Of rows [count, n]: the elements, and where they are, [count, k] each."""
        length = dims(x.type)[1]
        assert isinstance(length, int)
        parts = _parts(length, self.k) if length > _MAX_COMPARED else None
        if parts is None:
            return self._topk(x, TopkKind.MAX)
        share = length // parts
        apart = self.build.reshaped(x, [self.count, parts, share])
        kind = {"kind": ReduceKindAttr(ReduceKind.MAX), "axes": DenseArrayBase.from_list(i64, [2])}
        most = self.build.layer(ReduceOp, [apart], {**kind, "keep_dims": BoolAttr.from_bool(False)})
        _, chosen = self._topk(most, TopkKind.MAX)
        in_order, _ = self._topk(chosen, TopkKind.MIN)
        left = self.build.reshaped(self._gathered(apart, in_order), [self.count, self.k * share])
        values, places = self.largest(left)
        size = self.build.constant(np.array([[share]], np.int64), f"of {share}")
        part = self.build.binary(ElementwiseKind.FLOOR_DIV, places, size)
        before = self.build.binary(ElementwiseKind.SUB, self._gathered(in_order, part), part)
        moved = self.build.binary(ElementwiseKind.PROD, before, size)
        return values, self.build.binary(ElementwiseKind.SUM, places, moved)

    def _topk(self, x: SSAValue, kind: TopkKind) -> tuple[SSAValue, SSAValue]:
        properties = {"kind": TopkKindAttr(kind), "k": IntegerAttr(self.k, i64), "axis": IntegerAttr(1, i64)}
        values, places = self.build.insert(TopkOp.build_inferred([x], properties, results=2)).results
        return values, places

    def _gathered(self, of: SSAValue, places: SSAValue) -> SSAValue:
        """The parts of each row at these places of it."""
        properties = {
            "mode": GatherModeAttr(GatherMode.DEFAULT),
            "axis": IntegerAttr(1, i64),
            "num_elementwise_dims": IntegerAttr(1, i64),
        }
        return self.build.layer(GatherOp, [of, places], properties)


__all__ = ["ExpandTopkPass"]
