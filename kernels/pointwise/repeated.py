"""A pointwise op with an operand that a run may repeat along the last loop: a launch for runs that do, one for others.

The host computes which of both has iterations. Where no operand is repeated lengths are equal, and loops are as few and
as wide as for lengths of one name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from mlirt.dialects.fused.access import iteration, repeat_factor, repeated_lengths, unrepeated
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.symbolic import Dim, coefficient_of, product, substitute, symbols
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.lib.loops.loop_nest import Nest, collapse
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.pointwise.generic import kept_axes, nest_of, write

OPS = (PointwiseOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 30

# A last loop of fewer iterations leaves lanes unused that one over whole matrices would use.
_MIN_ITERATIONS = 16


def lower(op: PointwiseOp, lowering: Lowering) -> bool:
    """`if no operand is repeated { loops with fixed steps } else { loops with steps that may be 0 }`."""
    repeated = _repeated(op)
    nest, kept = nest_of(op, lowering), kept_axes(op)
    if not repeated or not _is_slow(collapse(nest, kept)):
        return False
    is_plain = product(repeat_factor(length) for length in repeated)
    same = _same(repeated)
    plain = _mapped(nest, lambda dim: substitute(unrepeated(dim), same))
    write(op, lowering, _only(is_plain, collapse(plain, kept)))
    write(op, lowering, _only(1 - is_plain, collapse(nest, kept)))
    return True


def _repeated(op: PointwiseOp) -> dict[Dim, Dim]:
    """The lengths that a run may find to be 1, with those that they are beside."""
    space = dims(op.outputs[0].type)
    found: dict[Dim, Dim] = {}
    for access in op.access:
        for index in access.indices():
            for axis, extent in enumerate(space):
                factor = coefficient_of(index, str(iteration(axis)))
                found.update(dict.fromkeys(repeated_lengths(factor), extent))
    return found


def _is_slow(nest: Nest) -> bool:
    """Whether lanes have to be loaded one by one, or a loop is too short for them."""
    if not nest.extents:
        return False
    last = nest.extents[-1]
    is_short = isinstance(last, int) and last < _MIN_ITERATIONS and len(nest.extents) > 1
    return is_short or any(repeated_lengths(one.steps[-1]) for one in nest.operands)


def _same(repeated: Mapping[Dim, Dim]) -> dict[str, Dim]:
    """Symbols that stand for one length where nothing is repeated, by the first of those that are beside it."""
    first: dict[Dim, Dim] = {}
    for length, extent in repeated.items():
        first.setdefault(extent, length)
    pairs = [(length, first[extent]) for length, extent in repeated.items()] + list(first.items())
    return {str(one): other for one, other in pairs if one != other and _is_name(one)}


def _is_name(length: Dim) -> bool:
    return len(symbols(length)) == 1 and str(length) in symbols(length)


def _mapped(nest: Nest, change: Callable[[Dim], Dim]) -> Nest:
    operands = tuple(
        replace(one, steps=tuple(map(change, one.steps)), offset=change(one.offset)) for one in nest.operands
    )
    return Nest(tuple(map(change, nest.extents)), operands, nest.groups)


def _only(is_run: Dim, nest: Nest) -> Nest:
    """The nest with its iterations where a number is 1, and with none where it is 0."""
    return replace(nest, extents=(nest.extents[0] * is_run, *nest.extents[1:]))
