"""Shuffle layers as rearrangements, and back."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.integer_list import integer_list, integers
from mlirt.dialects.tensor_types import dims, is_unknown
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.cleanup.permutations import Rearrangement, identity, is_identity


def rearrangement(op: ShuffleOp) -> Rearrangement | None:
    """What a shuffle does; None where its shape is known at run time only."""
    source, target = dims(op.input.type), dims(op.output.type)
    if any(map(is_unknown, (*source, *target))):
        return None
    first = identity(len(source)) if op.first_transpose is None else integers(op.first_transpose)
    second = identity(len(target)) if op.second_transpose is None else integers(op.second_transpose)
    middle = list(target)
    for axis, place in enumerate(second):
        middle[place] = target[axis]
    return Rearrangement(source, first, tuple(middle), second)


def shuffle(value: SSAValue, how: Rearrangement) -> ShuffleOp:
    """A layer for a rearrangement."""
    properties: dict[str, Attribute | None] = {"zero_is_placeholder": BoolAttr.from_bool(False)}
    if not is_identity(how.first):
        properties["first_transpose"] = integer_list(how.first)
    if how.transposition is None:
        properties["reshape_dims"] = DimsAttr.of(how.middle)
    if not is_identity(how.second):
        properties["second_transpose"] = integer_list(how.second)
    return ShuffleOp.build_inferred([value, None], properties)
