"""Mean and squared deviations of rows in one pass, for rows that are read from memory each time.

Sums of differences from a number near the mean give both: the sum of squares, less the square of the sum over their
number. The mean of a part of the row is near enough: its distance from the row's mean is at most the standard deviation
times the square root of how many such parts the row has, so that sums of squares lose no more than that factor squared.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.fused.fused_op import yielded
from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.symbolic import Dim

PARTS = 32
"""Parts of a row, of which the first one is read before the others."""
_MIN_LENGTH = 1 << 16
_STAGES = 2


def reads_once(op: NormalizationOp, row: Sequence[Dim]) -> bool:
    """Whether the stages are the mean of something and the sum of its squared deviations, of long rows."""
    lengths = [size for size in row if isinstance(size, int)]
    length = prod(lengths)
    stages = op.reductions()
    if len(lengths) != len(row) or not lengths or lengths[-1] % PARTS or length < _MIN_LENGTH or len(stages) != _STAGES:
        return False
    (kind, element, finish), (other_kind, deviation, other_finish) = stages
    if {kind, other_kind} != {ReduceKind.ADD} or any(one.block.args[0].type != f32 for one in (finish, other_finish)):
        return False
    return _is_mean(finish, length) and _is_squared_deviation(deviation, element, len(op.inputs))


def _is_mean(finish: Region, length: int) -> bool:
    """Whether a sum is divided by the number of its elements."""
    (result,) = yielded(finish)
    made, total = result.owner, finish.block.args[0]
    if isinstance(made, arith.DivfOp):
        return made.lhs is total and _number(made.rhs) == length
    if isinstance(made, arith.MulfOp):
        others = [value for value in made.operands if value is not total]
        number = _number(others[0]) if len(others) == 1 else None
        return number is not None and abs(number * length - 1) < 1e-6
    return False


def _is_squared_deviation(region: Region, element: Region, inputs: int) -> bool:
    """Whether a region squares the difference of what another one gives and the first total."""
    (result,), (plain,) = yielded(region), yielded(element)
    square = result.owner
    if not isinstance(square, arith.MulfOp) or not _same(square.lhs, square.rhs):
        return False
    difference, mean = square.lhs.owner, region.block.args[inputs]
    return isinstance(difference, arith.SubfOp) and difference.rhs is mean and _same(difference.lhs, plain)


def _same(one: SSAValue, other: SSAValue) -> bool:
    """Whether two values are computed in the same way of arguments at the same places."""
    if one is other:
        return True
    if isinstance(one, BlockArgument) or isinstance(other, BlockArgument):
        return isinstance(one, BlockArgument) and isinstance(other, BlockArgument) and one.index == other.index
    a, b = one.owner, other.owner
    if isinstance(a, Block) or isinstance(b, Block) or a.regions or b.regions:
        return False
    alike = a.name == b.name and a.properties == b.properties and a.attributes == b.attributes
    return alike and _alike_operands(a, b) and one.type == other.type


def _alike_operands(a: Operation, b: Operation) -> bool:
    return len(a.operands) == len(b.operands) and all(map(_same, a.operands, b.operands))


def _number(value: SSAValue) -> float | None:
    made = value.owner
    known = made.value if isinstance(made, arith.ConstantOp) else None
    return known.value.data if isinstance(known, FloatAttr) else None


__all__ = ["PARTS", "reads_once"]
