"""A pointwise op with an operand that lies across its result, such as a transpose: squares of elements are transposed
in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import bf16, f16, f32

from mlirt.dialects.fused.fused_op import is_identity
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.tensor_types import element_of
from mlirt.kernels.lib.cpu.transposed_squares import TransposedSquares, cross_loop, moved_as
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.words import inline
from mlirt.kernels.lib.loops.block_lanes import lane_axes
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.pointwise.generic import splat
from mlirt.kernels.pointwise.streams import flat_nest

OPS = (PointwiseOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 20

_WRITTEN = (f32, f16, bf16)


def lower(op: PointwiseOp, lowering: Lowering) -> bool:
    """An op of float32 operands, or one that only moves elements, with just one operand across its result."""
    nest = None if lane_axes(op.outputs[0].type) else flat_nest(op, lowering)
    found = None if nest is None else _across(nest)
    if nest is None or found is None:
        return False
    operand, cross = found
    source, target = (element_of(nest.operands[one].value.type) for one in (operand, -1))
    is_moved = source == target and len(op.inputs) == 1 and is_identity(op.body)
    if not is_moved and (source != f32 or target not in _WRITTEN):
        return False
    k = lowering.kernel("transposed")
    code = NestCode(k, nest, element=moved_as(source) if is_moved else None)
    squares = TransposedSquares(code, operand, cross, source, lowering.target)
    build(k, _transposed, op, squares, [splat(k, value, lowering) for value in op.inputs])
    k.finish(op)
    return True


def _across(nest: Nest) -> tuple[int, int] | None:
    """The operand that lies across the result, and the loop along which it is contiguous; None unless just one does."""
    across = [number for number, one in enumerate(nest.operands[:-1]) if one.steps[-1:] not in ((0,), (1,))]
    cross = cross_loop(nest, across[0]) if len(across) == 1 else None
    return None if cross is None else (across[0], cross)


@kernel
def _transposed(op: PointwiseOp, squares: TransposedSquares, numbers: Sequence[Value | None]) -> None:
    """`for each square, and each d.. of it: y = body(x..)`."""
    code, output = squares.code, len(op.inputs)

    def each(element: Value, at: Sequence[Value], row: Value, lane: Value) -> None:
        inputs = [
            element
            if one == squares.operand
            else (code.load(one, at, squares.places(one, row, lane)) if number is None else number)
            for one, number in enumerate(numbers)
        ]
        (value,) = inline(op.body, inputs, at)
        code.store(value, output, at, squares.places(output, row, lane))

    squares.write(each)
