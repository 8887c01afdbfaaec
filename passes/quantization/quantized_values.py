"""The bytes that a dequantised tensor stands for, also behind layers that only move them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.ir import SSAValue

from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.quantization.scalings import Refusal, Scaling, quantized_input


@dataclass(frozen=True, eq=False)
class Bytes:
    """The bytes that a float32 tensor stands for, once they have been moved as `moves` say, the first one first."""

    value: SSAValue
    moves: tuple[ShuffleOp, ...]
    scaling: Scaling


def dequantized_from(value: SSAValue, ctx: Context) -> Bytes | None:
    """The bytes, with one scale for all, that a float32 tensor stands for; None where it is computed otherwise."""
    moves: list[ShuffleOp] = []
    while isinstance(move := value.owner, ShuffleOp) and move.shape is None:
        moves.insert(0, move)
        value = move.input
    found = quantized_input(value, ctx)
    return None if isinstance(found, Refusal) else Bytes(found[0], tuple(moves), found[1])
