"""Converts the layers of a network to fused ops, each of which is one launch."""

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
from mlirt.dialects.symbolic import symbols
from mlirt.dialects.tensor_types import dims, is_tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.dialects.trt.require import RequireOp
from mlirt.dialects.trt.require_lengths import RequireLengthsOp
from mlirt.errors import UnsupportedError
from mlirt.passes.fusion import trt_to_fused
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Convert, require_known
from mlirt.passes.plugin_layers import brought_conversions, level_of


@dataclass(frozen=True)
class ConvertTrtToFusedPass(ModulePass):
    """Replace each layer by fused ops, whose scalar bodies say in `arith` and `math` what the layer computes.

    Constants stay. Half-precision numbers are computed in float32. A layer without a conversion raises
    `UnsupportedError`, and so does one whose dimensions do not follow from those of the function's inputs.

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
        for function in op.ops:
            _convert(function, ctx)


def _convert(function: Operation, ctx: Context) -> None:
    table = conversions() | brought_conversions()
    known = _known_symbols(function)
    for layer in [inner for inner in function.walk() if level_of(inner) == "trt"]:
        if isinstance(layer, ConstantOp | DefineSizeOp | RequireOp | RequireLengthsOp):
            continue
        convert = table.get(type(layer))
        if convert is None:
            raise UnsupportedError(f"layer {name_of(layer)}: {layer.name} cannot be compiled for a device yet")
        at = Conversion(ctx, layer)
        for result in layer.results:
            require_known(at, dims(result.type), "shape", known)
        convert(at)


def _known_symbols(function: Operation) -> frozenset[str]:
    """The names of dimensions that the inputs of a function determine, or that ops in it give a value."""
    types = [argument.type for region in function.regions for block in region.blocks for argument in block.args]
    given = {name for of in types if is_tensor(of) for length in dims(of) for name in symbols(length)}
    return frozenset(given | {op.symbol.data for op in function.walk() if isinstance(op, DefineSizeOp)})


@cache
def conversions() -> dict[type[Operation], Convert]:
    """The conversion of each layer class, from the tables in `trt_to_fused/`."""
    table: dict[type[Operation], Convert] = {}
    for entry in pkgutil.iter_modules(trt_to_fused.__path__):
        module = import_module(f"{trt_to_fused.__name__}.{entry.name}")
        table |= getattr(module, "CONVERSIONS", {})
    return table
