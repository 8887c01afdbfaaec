"""Which numbers can be the scale of integers: positive ones; 0 too for numbers that are all 0 when they come back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizationOp, QuantizeOp
from mlirt.dialects.trt.shuffle import ShuffleOp

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def wrong_scale(numbers: Array, *, zeros_too: bool = False) -> float | None:
    """The first number with which integers stand for nothing: negative, infinite or NaN, and 0 unless that is one."""
    import numpy as np

    wide = np.asarray(numbers).reshape(-1).astype(np.float64)
    wrong = wide[~((wide >= 0 if zeros_too else wide > 0) & np.isfinite(wide))]
    return float(wrong[0]) if wrong.size else None


def scaled_layers(value: SSAValue) -> Iterator[QuantizeOp | DequantizeOp]:
    """The layers whose scale a constant is, be it converted or reshaped before."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, QuantizationOp) and use.index == 1:
            assert isinstance(op, QuantizeOp | DequantizeOp)
            yield op
        elif isinstance(op, IdentityOp | ShuffleOp) and use.index == 0:
            yield from scaled_layers(op.results[0])
