"""What the arguments of a kernel are called: what they are to the layer, so that layers with one kernel agree on it.

A tensor is called after the operand or the result of the fused op that it is, never as the network calls it. What an
epilogue adds is a `bias` or, with more than one dimension, a `residual`; what attention adds to scores is a `mask`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, Region, SSAValue

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.plan.ops import WeightOp
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.lib.builder.placement import Placements

_WORDS = {"inputs": "input", "outputs": "output", "kernel": "weights", "extras": "extra"}
_CASTS = {"arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.extsi", "arith.extui", "arith.bitcast"}
_SUMS, _PRODUCTS = {"arith.addf", "arith.addi", "arith.subf"}, {"arith.mulf", "arith.muli"}
_LIMITS = {"arith.maximumf", "arith.minimumf", "arith.maxsi", "arith.minsi"}


class TensorRoles:
    """The roles of a layer's tensors, and of the memory that they lie in."""

    def __init__(self, layer: Operation, placements: Placements) -> None:
        self._placements = placements
        self._of = dict(_roles(layer))

    def of_tensor(self, value: SSAValue | None) -> str | None:
        """The role of an operand or a result; None for another value."""
        return None if value is None else self._of.get(value)

    def of_memory(self, buffer: SSAValue, offset: str) -> str:
        """The role of what lies in a buffer; it may have moved on from the byte at which the tensor starts."""
        found = dict[str, str]()
        for value, role in self._of.items():
            place = self._placements.find(value)
            if place is not None and place.buffer is buffer:
                found.setdefault(str(place.offset), role)
        if found:
            return found.get(offset, next(iter(found.values())))
        return "weights" if isinstance(buffer.owner, WeightOp) else "scratch"


def number_role(number: SSAValue) -> str:
    """What a number is for, by the ops that take it."""
    readers = {use.operation.name for use in number.uses}
    if readers and readers <= _LIMITS:
        return "limit"
    if readers and readers <= _PRODUCTS:
        return "factor"
    divides = all(use.operation.name == "arith.divf" and use.index == 1 for use in number.uses)
    return "divisor" if readers and divides else "number"


def _roles(layer: Operation) -> Iterator[tuple[SSAValue, str]]:
    """Operands before results: what a layer changes in place is its output."""
    if not isinstance(layer, FusedOp):
        return
    definition = layer.get_irdl_definition()
    for name, _ in [*definition.operands, *definition.results]:
        role, values = _WORDS.get(name, name), _values(layer, name)
        region = _epilogue(layer) if name == "extras" else None
        if region is None:
            yield from ((value, role) for value in values)
            continue
        scalars = region.block.args[1:]  # behind what is accumulated
        for value, scalar in zip(values, scalars, strict=True):
            yield value, _role_of_extra(layer, value, scalar)


def _values(layer: Operation, name: str) -> Sequence[SSAValue]:
    found: SSAValue | Sequence[SSAValue] | None = getattr(layer, name)
    if found is None:
        return ()
    return (found,) if isinstance(found, SSAValue) else found


def _epilogue(layer: Operation) -> Region | None:
    """The region that takes the extra operands."""
    region: Region | None = getattr(layer, "score" if isinstance(layer, AttentionOp) else "epilogue", None)
    return region if region is not None and region.blocks and region.block.args else None


def _role_of_extra(layer: Operation, value: SSAValue, scalar: SSAValue) -> str:
    readers = {use.operation.name for use in _without_casts(scalar).uses}
    if readers and readers <= _PRODUCTS:
        return "scale"
    if not readers or not readers <= _SUMS:
        return "extra"
    if isinstance(layer, AttentionOp):
        return "mask"
    axes = sum(size != 1 for size in dims(value.type)) - is_blocked(value.type)
    return "residual" if axes > 1 else "bias"


def _without_casts(scalar: SSAValue) -> SSAValue:
    """The one number that a number is turned into."""
    while len(list(scalar.uses)) == 1 and (reader := next(iter(scalar.uses)).operation).name in _CASTS:
        scalar = reader.results[0]
    return scalar
