"""Turns the layers of a network into launches."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from mlirt.dialects.locations import name_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.errors import UnsupportedError
from mlirt.passes.lowering import trt_to_fused
from mlirt.passes.lowering.trt_to_fused.conversion import Conversion, Convert


@dataclass(frozen=True)
class ConvertTrtToFusedPass(ModulePass):
    """Replace each layer by fused ops, whose scalar bodies say in `arith` and `math` what the layer computes.

    Constants stay. Half-precision numbers are computed in float32. A layer without a conversion raises
    `UnsupportedError`.

    Before:

        %y = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>

    After:

        %y = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<4xf32>) -> tensor<4xf32> {
        ^bb0(%e: f32):
          %zero = arith.constant 0.0 : f32
          %m = arith.maximumf %e, %zero : f32
          fused.yield %m : f32
        }
    """

    name = "convert-trt-to-fused"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        table = conversions()
        for layer in [inner for inner in op.walk() if inner.dialect_name() == "trt"]:
            if isinstance(layer, ConstantOp):
                continue
            convert = table.get(type(layer))
            if convert is None:
                raise UnsupportedError(f"layer {name_of(layer)}: {layer.name} cannot be compiled for a device yet")
            convert(Conversion(ctx, layer))


@cache
def conversions() -> dict[type[Operation], Convert]:
    """The conversion of each layer class, from the tables in `trt_to_fused/`."""
    table: dict[type[Operation], Convert] = {}
    for entry in pkgutil.iter_modules(trt_to_fused.__path__):
        module = import_module(f"{trt_to_fused.__name__}.{entry.name}")
        table |= getattr(module, "CONVERSIONS", {})
    return table
