"""Networks that say themselves where they compute with integers: no scales are added to them (feature 10.1)."""

from __future__ import annotations

import warnings

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import BlockArgument

from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp


def is_explicit(module: ModuleOp) -> bool:
    """Whether a layer quantises inside of the network; the conversion of an 8-bit input or output does not count."""
    for op in module.walk():
        if isinstance(op, QuantizeOp) and not all(isinstance(use.operation, ReturnOp) for use in op.output.uses):
            return True
        if isinstance(op, DequantizeOp) and not isinstance(op.input, BlockArgument):
            return True
    return False


def warn_of_ranges() -> None:
    """Say that ranges were given for nothing."""
    warnings.warn(
        "Calibrator won't be used in explicit precision mode: the network has quantize and dequantize layers, "
        "which alone say where it computes with integers; leave the calibration out, or the layers",
        stacklevel=2,
    )
