"""Arithmetic around quantised numbers, whose results are the same on every machine: each step is rounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.arith import ConstantOp, MaximumfOp, MaxnumfOp, MinimumfOp, MinnumfOp
from xdsl.dialects.builtin import FloatAttr, f32, i32
from xdsl.dialects.math import RoundEvenOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from mlirt.codegen.python_expressions import Expression, Rule, call, expressions_for
from mlirt.dialects.kernel.buffers import Memory
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.tensor_types import element_type

_INT32 = 2.0**31
_BYTES = (element_type("int8"), element_type("uint8"))
_PLAIN = expressions_for("cpu")


def works_on_int8(func: FuncOp) -> bool:
    """Whether a kernel reads or writes integers of 8 bits, or rounds to integers: quantised numbers."""
    if any(isa(arg.type, Memory) and arg.type.element_type in _BYTES for arg in func.body.block.args):
        return True
    return any(isinstance(op, RoundEvenOp) for op in func.walk())


def _to_signed(op: Operation, operands: Sequence[Expression]) -> Expression:
    """A float between limits that an int32 can hold needs no check on its way to one."""
    value = op.operands[0]
    if value.type == f32 and op.results[0].type == i32 and _stays_in_range(value):
        return Expression(f"int32_in_range({operands[0].text})")
    return _PLAIN["arith.fptosi"](op, operands)


def _stays_in_range(value: SSAValue) -> bool:
    """Whether both a least and a greatest number are known, and lie within the range of an int32."""
    has_low = has_high = False
    owner = value.owner
    while isinstance(owner, MaximumfOp | MaxnumfOp | MinimumfOp | MinnumfOp):
        limit = _number(owner.rhs)
        if limit is None or not -_INT32 <= limit < _INT32:
            return False
        is_low = isinstance(owner, MaximumfOp | MaxnumfOp)
        has_low, has_high = has_low or is_low, has_high or not is_low
        owner = owner.lhs.owner
    return has_low and has_high


def _number(value: SSAValue) -> float | None:
    owner = value.owner
    return owner.value.value.data if isinstance(owner, ConstantOp) and isinstance(owner.value, FloatAttr) else None


RULES: Mapping[str, Rule] = {"arith.fptosi": _to_signed}
# Where rounding must be that of the definition, a product is not contracted with the sum that takes it.
EXACT_RULES: Mapping[str, Rule] = {"arith.mulf": call("rounded_product")}
