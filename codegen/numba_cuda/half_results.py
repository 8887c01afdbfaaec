"""Functions of float32 numbers whose results only halves are made of: their last bits do not matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation, SSAValue

from mlirt.codegen.python_expressions import Expression, Rule, call
from mlirt.dialects.tensor_types import is_half

_MAX_READERS = 64
# What makes the relative error of an operand no larger, or loses no more of a difference than exact operands do.
_SMOOTH = (
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp),
    *(arith.MinimumfOp, arith.MaximumfOp, arith.MinnumfOp, arith.MaxnumfOp),
    *(math.ExpOp, math.ExpM1Op, math.ErfOp, math.TanhOp, math.SqrtOp, math.AbsFOp, math.FmaOp),
)
_CLOSE = {
    "arith.divf": "divide_closely",
    "math.erf": "erf_closely",
    "math.exp": "exp_closely",
    "math.expm1": "expm1_closely",
    "math.log1p": "log1p_closely",
}


def for_half_results(rules: Mapping[str, Rule]) -> dict[str, Rule]:
    """Rules that take the functions without branches, off by some last bits, where only halves are made of a result."""
    return {**rules, **{name: _where_rounded(rules[name], call(close)) for name, close in _CLOSE.items()}}


def _where_rounded(exact: Rule, close: Rule) -> Rule:
    def chosen(op: Operation, operands: Sequence[Expression]) -> Expression:
        return (close if _becomes_halves(op.results[0]) else exact)(op, operands)

    return chosen


def _becomes_halves(value: SSAValue) -> bool:
    """Whether all that is computed of a float32 number is rounded to halves, without comparisons or sums of many."""
    if not isinstance(value.type, Float32Type):
        return False
    waiting, seen = [value], {value}
    while waiting:
        for use in waiting.pop().uses:
            reader = use.operation
            if isinstance(reader, arith.TruncFOp) and is_half(reader.results[0].type):
                continue
            is_selected = isinstance(reader, arith.SelectOp) and use.index > 0
            if not (is_selected or isinstance(reader, _SMOOTH)) or len(seen) > _MAX_READERS:
                return False
            if reader.results[0] not in seen:
                seen.add(reader.results[0])
                waiting.append(reader.results[0])
    return True
