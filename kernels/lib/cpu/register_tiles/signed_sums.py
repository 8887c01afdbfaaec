"""Sums of uint8 by int8 on processors that multiply int8 alone: what the sums start with instead of zeros."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.kernel.tile_products import SIGNED
from mlirt.dialects.layout import arranged

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def multiplies_signed(cpu: CpuDevice, special: Collection[str]) -> bool:
    """Whether a processor adds four products of int8 in a lane (SDOT), and none of uint8 by int8 (USDOT)."""
    return cpu.multiplies_by_lane and "dotprod" in special and "i8mm" not in special


def first_sums(width: int, weights: Array) -> Array:
    """For weights `[.., outputs, inputs]` 128 times the sum of each output's, as `[.., panels, width]`.

    That is what products with numbers lack from which 128 was taken off.
    """
    return arranged(weights.sum(-1, dtype="int32") * SIGNED, "... (p k)", "... p k", k=width)
