"""Plugins: the fused op has the operands of the layer."""

from __future__ import annotations

from mlirt.dialects.fused.plugin import PluginOp as FusedPluginOp
from mlirt.dialects.trt.plugin import PluginOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions


def convert_plugin(at: Conversion) -> None:
    """`trt.plugin` becomes `fused.plugin`."""
    op = at.op
    assert isinstance(op, PluginOp)
    names = (op.plugin, op.version, op.plugin_namespace)
    fused = FusedPluginOp(op.state, op.inputs, names, op.made, [result.type for result in op.results])
    at.emit(fused)
    at.replace(*fused.results)


CONVERSIONS: Conversions = {PluginOp: convert_plugin}
