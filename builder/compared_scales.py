"""Scales that a build compares: where two are equal, layers are joined or moved (tensorrt-features.md#10.18)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.locations import name_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.errors import InvalidInputError
from mlirt.passes.quantization.commuting_layers import movement_of, sources_of

if TYPE_CHECKING:
    from mlirt.dialects.weights import WeightStore


@dataclass(frozen=True)
class ComparedScales:
    """The scales of a quantize layer and of a dequantize layer that are in one path of moved numbers."""

    first: ConstantOp
    second: ConstantOp
    layers: tuple[str, str]

    def are_equal(self, store: WeightStore) -> bool:
        import numpy as np

        one, other = (constant.array(store).reshape(-1) for constant in (self.first, self.second))
        return one.size == other.size and bool(np.array_equal(one, other))


def equal_scales(module: ModuleOp, store: WeightStore) -> list[ComparedScales]:
    """The pairs of constants that are equal now: of quantize layers whose numbers come from dequantize layers, or whose
    integers go to them, through layers that only move them.
    """
    found: list[ComparedScales] = []
    for op in module.walk():
        if isinstance(op, QuantizeOp | DequantizeOp):
            other = DequantizeOp if isinstance(op, QuantizeOp) else QuantizeOp
            found += [pair for before in _behind(op.operands[0], other) if (pair := _pair(before, op)) is not None]
    return [pair for pair in found if pair.are_equal(store)]


def check_equal(pairs: list[ComparedScales], store: WeightStore) -> None:
    """Raise `InvalidInputError`, naming both layers, where scales that were equal are not any more."""
    for pair in pairs:
        if not pair.are_equal(store):
            one, other = (constant.array(store).reshape(-1)[:1].tolist() for constant in (pair.first, pair.second))
            raise InvalidInputError(
                f"the scales of {pair.layers[0]} and {pair.layers[1]} were equal when the engine was built, and layers "
                f"were joined by that: expected equal ones, got {one[0]:g} and {other[0]:g}; set both"
            )


def _behind(value: SSAValue, kind: type[Operation]) -> Iterator[Operation]:
    """The layers of a kind that a tensor comes from without being computed with."""
    op = value.owner
    if isinstance(op, kind):
        yield op
    elif isinstance(op, Operation) and (movement := movement_of(op)) is not None:
        for source in sources_of(op, movement):
            yield from _behind(source, kind)


def _pair(before: Operation, after: Operation) -> ComparedScales | None:
    first, second = (_constant(op.operands[1]) for op in (before, after))
    if first is None or second is None or first is second:
        return None
    return ComparedScales(first, second, (name_of(before), name_of(after)))


def _constant(value: SSAValue) -> ConstantOp | None:
    op = value.owner
    if isinstance(op, IdentityOp | ShuffleOp):
        return _constant(op.operands[0])
    return op if isinstance(op, ConstantOp) else None
