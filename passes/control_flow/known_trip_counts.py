"""The trip count of a counted loop, where it is known when the engine is built."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.ir import SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.regions import source_of_index


def known_trip_count(op: scf.ForOp, ctx: Context) -> int | None:
    """The trip count of a loop whose bounds are constants."""
    bounds = [_known(bound, ctx) for bound in (op.lb, op.ub, op.step)]
    if None in bounds:
        return None
    first, limit, step = (bound for bound in bounds if bound is not None)
    return max(0, -(-(limit - first) // step))


def _known(bound: SSAValue, ctx: Context) -> int | None:
    try:
        found = source_of_index(bound)
    except ValueError:
        return None
    if isinstance(found, int):
        return found
    array = array_of(found, ctx)
    return None if array is None else int(array.reshape(-1)[0])


def known_number(bound: SSAValue, ctx: Context) -> int:
    """A bound that is known; raises `ValueError` where it is not."""
    found = _known(bound, ctx)
    if found is None:
        raise ValueError("the bound of the loop is known only to the run")
    return found


def same_bound(left: SSAValue, right: SSAValue, ctx: Context) -> bool:
    """Whether two bounds are surely the same number."""
    try:
        sources = source_of_index(left), source_of_index(right)
    except ValueError:
        return False
    if sources[0] is sources[1]:
        return True
    known = _known(left, ctx), _known(right, ctx)
    return known[0] is not None and known[0] == known[1]
