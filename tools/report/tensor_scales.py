"""The scales with which a network is quantised, read off its IR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.locations import name_of
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.tools.report.network_graph import type_text

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.dialects.context import RtContext


@dataclass(frozen=True)
class TensorScale:
    """Where numbers become bytes or come back: the layer, the type of the bytes, the least and the largest scale."""

    layer: str
    op: str
    type: str
    scales: int
    least: float
    largest: float
    zero_points: str

    @property
    def largest_number(self) -> float:
        """The magnitude that the largest scale can hold in 8 bits."""
        return self.largest * 127


def scales_in(module: ModuleOp, ctx: RtContext) -> list[TensorScale]:
    """The scales of all quantisations whose scale is constant, in their order."""
    found: list[TensorScale] = []
    for op in module.walk():
        if isinstance(op, QuantizeOp | DequantizeOp):
            scale = array_of(op.scale, ctx)
            if scale is None or not scale.size:
                continue
            zeros = None if op.zero_point is None else array_of(op.zero_point, ctx)
            points = "0" if zeros is None or not zeros.size else f"{zeros.min()} to {zeros.max()}"
            least, largest = float(scale.min()), float(scale.max())
            integers = op.output if isinstance(op, QuantizeOp) else op.input
            kind = op.name.partition(".")[2]
            found.append(TensorScale(name_of(op), kind, type_text(integers.type), scale.size, least, largest, points))
    return found
