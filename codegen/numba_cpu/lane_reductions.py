"""Reductions: in order, or each lane for itself and the lanes with each other at the end."""

from __future__ import annotations

from mlirt.codegen.numba_cpu.lane_source import VECTORS_AT_ONCE, LaneSource, is_short, lanes_of
from mlirt.codegen.python_expressions import PRODUCT, Expression, constant_text, literal, type_name
from mlirt.dialects.combine import COMBINES, identity
from mlirt.dialects.kernel.core import ReduceOp
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_types import is_float
from mlirt.errors import CompileError


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
                whole = self.combined(op, whole, Expression(f"{COMBINES[op.kind.data].fold}({partial}, {lanes})"))
        total = Expression(f"{COMBINES[op.kind.data].across}({whole})")
        starts_neutral = not is_float(op.result.type) and self.text(op.init) == neutral
        self.define(op.result, total.text if starts_neutral else self.combined(op, self.text(op.init, PRODUCT), total))

    def combined(self, op: ReduceOp, total: str, value: Expression) -> str:
        """The text of a total and a value combined."""
        combine, element = COMBINES[op.kind.data], op.result.type
        text = combine.text.format(total, value.within(PRODUCT) if combine.is_infix else value.text)
        narrow = not is_float(element) and combine.is_infix and type_name(element) not in ("int64", "bool_")
        return f"{type_name(element)}({text})" if narrow else text

    def neutral(self, op: ReduceOp) -> str:
        """The number that changes nothing when it is combined."""
        element = op.result.type
        number = identity(op.kind.data, type_name(element).rstrip("_"))
        return constant_text(float(number) if is_float(element) else number, element).text
