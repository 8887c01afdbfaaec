"""Reductions: in order, or each lane for itself and the lanes with each other at the end."""

from __future__ import annotations

from xdsl.ir import Attribute

from mlirt.codegen.numba_cpu.lane_source import VECTORS_AT_ONCE, LaneSource, is_short, lanes_of
from mlirt.codegen.python_expressions import PRODUCT, Expression, constant_text, literal, type_name
from mlirt.dialects.kernel.core import ReduceKind, ReduceOp
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_types import is_bool, is_float, is_unsigned
from mlirt.errors import CompileError

# How two values are combined, and the lanes of one vector.
_COMBINE = {
    ReduceKind.ADD: "{0} + {1}",
    ReduceKind.MUL: "{0} * {1}",
    ReduceKind.MAX: "maximum({0}, {1})",
    ReduceKind.MIN: "minimum({0}, {1})",
    ReduceKind.AND: "{0} & {1}",
    ReduceKind.OR: "{0} | {1}",
}
_ACROSS = {
    ReduceKind.ADD: "sum_of_lanes",
    ReduceKind.MUL: "product_of_lanes",
    ReduceKind.MAX: "maximum_of_lanes",
    ReduceKind.MIN: "minimum_of_lanes",
    ReduceKind.AND: "all_lanes",
    ReduceKind.OR: "any_lane",
}


# The same for a wide vector, until it is as wide as another one.
_FOLD = {
    ReduceKind.ADD: "fold_sum",
    ReduceKind.MUL: "fold_product",
    ReduceKind.MAX: "fold_maximum",
    ReduceKind.MIN: "fold_minimum",
    ReduceKind.AND: "fold_all",
    ReduceKind.OR: "fold_any",
}


class LaneReductions(LaneSource):
    """Writes `kernel.reduce`, on vectors where a mapping pass has given it lanes."""

    def kernel_reduce(self, op: ReduceOp) -> None:
        lanes = lanes_of(op)
        if lanes == 0:
            self._reduce_in_order(op)
        else:
            self._reduce_lanes(op, lanes)

    def _reduce_in_order(self, op: ReduceOp) -> None:
        total = self.names.define(op.result)
        self.line(f"{total} = {self.text_for(op.init, op.result)}")
        with self.nested(list(op.extents), list(op.body.block.args)):
            value = self.ops_but_last(op.body.block)
            assert value is not None
            self.line(f"{total} = {self.combined(op, total, self.expression(value))}")

    def _reduce_lanes(self, op: ReduceOp, lanes: int) -> None:
        """Each lane combines what falls to it, the lanes are combined at the end."""
        if self.loop is not None:
            raise CompileError(f"{name_of(op)}: a reduction over lanes stands inside of a loop over lanes")
        neutral = self.neutral(op)
        wide, known = lanes * VECTORS_AT_ONCE, literal(op.extents[-1])
        widths = [wide, lanes] if is_short(op) and (known is None or known >= wide) else [lanes]
        partials = {width: self.names.fresh("partial") for width in widths}
        for width, partial in partials.items():
            self.line(f"{partial} = splat({neutral}, {width})")

        def add() -> None:
            value = self.ops_but_last(op.body.block)
            assert value is not None
            assert self.loop is not None
            count, partial = self.loop.count, partials[self.loop.lanes]
            found = self.expression(value) if self.varies(value) else Expression(self.vector_text(value))
            kept = found if count is None else Expression(f"keep_first({found.text}, {count}, {neutral})")
            self.line(f"{partial} = {self.combined(op, partial, kept)}")

        extents, indices = list(op.extents), list(op.body.block.args)
        with self.nested(extents[:-1], indices[:-1]):
            self.over_lanes(op.body.block, extents[-1], indices[-1], widths, add)
        whole = partials[lanes]
        for width, partial in partials.items():
            if width > lanes:
                whole = self.combined(op, whole, Expression(f"{_FOLD[op.kind.data]}({partial}, {lanes})"))
        total = Expression(f"{_ACROSS[op.kind.data]}({whole})")
        starts_neutral = not is_float(op.result.type) and self.text(op.init) == neutral
        self.define(op.result, total.text if starts_neutral else self.combined(op, self.text(op.init, PRODUCT), total))

    def combined(self, op: ReduceOp, total: str, value: Expression) -> str:
        """The text of a total and a value combined."""
        kind, element = op.kind.data, op.result.type
        infix = kind not in (ReduceKind.MAX, ReduceKind.MIN)
        text = _COMBINE[kind].format(total, value.within(PRODUCT) if infix else value.text)
        narrow = not is_float(element) and infix and type_name(element) not in ("int64", "bool_")
        return f"{type_name(element)}({text})" if narrow else text

    def neutral(self, op: ReduceOp) -> str:
        """The number that changes nothing when it is combined."""
        kind, element = op.kind.data, op.result.type
        if kind in (ReduceKind.ADD, ReduceKind.OR):
            return constant_text(0.0 if is_float(element) else 0, element).text
        if kind is ReduceKind.MUL:
            return constant_text(1.0 if is_float(element) else 1, element).text
        if is_float(element):
            return constant_text(float("-inf" if kind is ReduceKind.MAX else "inf"), element).text
        return constant_text(_extreme(kind, element), element).text


def _extreme(kind: ReduceKind, element: Attribute) -> int:
    """The neutral integer of max, min and and."""
    if is_bool(element):
        return int(kind is not ReduceKind.MAX)
    bits, is_signed = int(type_name(element).removeprefix("u")[3:]), not is_unsigned(element)
    if kind is ReduceKind.AND:
        return -1 if is_signed else 2**bits - 1
    low = -(2 ** (bits - 1)) if is_signed else 0
    return low if kind is ReduceKind.MAX else low + 2**bits - 1
