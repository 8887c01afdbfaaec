"""What holds where a condition of a kernel does, as expressions that are at least 0."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from mlirt.builder.extents.index_values import IndexValues, is_integer
from mlirt.builder.extents.unknowns import Facts

_SIGNED = {6: 2, 7: 3}  # "ult" and "ule" as "slt" and "sle"
_OPPOSITES = {8: 7, 9: 6}  # where "ugt" and "uge" do not hold, "ule" and "ult" do


def known_where(values: IndexValues, condition: SSAValue) -> tuple[Facts, Facts]:
    """What holds where a condition does, and where it does not."""
    owner = condition.owner
    if isinstance(owner, arith.CmpiOp) and is_integer(owner.lhs.type):
        return _compared(values, owner)
    if isinstance(owner, arith.AndIOp):
        return known_where(values, owner.lhs)[0] + known_where(values, owner.rhs)[0], ()
    if isinstance(owner, arith.OrIOp):
        return (), known_where(values, owner.lhs)[1] + known_where(values, owner.rhs)[1]
    return (), ()


def _compared(values: IndexValues, op: arith.CmpiOp) -> tuple[Facts, Facts]:
    left, right = values.value(op.lhs), values.value(op.rhs)
    at_least, at_most = left - right, right - left
    rules: dict[int, tuple[Facts, Facts]] = {
        0: ((at_least, at_most), ()),  # eq
        1: ((), (at_least, at_most)),  # ne
        2: ((at_most.plus(-1),), (at_least,)),  # slt
        3: ((at_most,), (at_least.plus(-1),)),  # sle
        4: ((at_least.plus(-1),), (at_most,)),  # sgt
        5: ((at_least,), (at_most.plus(-1),)),  # sge
    }
    predicate = op.predicate.value.data
    if predicate in rules:
        return rules[predicate]
    # What is less than something natural, without a sign, is natural too.
    if not (values.ranges.is_given(right) and values.ranges.is_natural(right)):
        return (), ()
    below = (*rules[_SIGNED[_OPPOSITES.get(predicate, predicate)]][0], left)
    return ((), below) if predicate in _OPPOSITES else (below, ())
