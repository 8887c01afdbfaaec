"""A plugin: one launch, which the host makes by calling it, of tensors that lie densely."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.plugin import PluginOp
from mlirt.dialects.kernel.plugin import PluginOp as PluginKernel
from mlirt.dialects.locations import name_of
from mlirt.dialects.plan.expression import ExpressionAttr, PointerAttr
from mlirt.dialects.tensor_types import byte_width, dims, element_count, element_of, rank
from mlirt.dialects.weights import WeightsAttr
from mlirt.errors import UnsupportedError
from mlirt.kernels.lib.builder.placement import Placement
from mlirt.kernels.lib.copying import copy, copy_dense, dense
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.tensorrt.plugins.functions.function_plugin import FunctionCreator
from mlirt.tensorrt.plugins.registry import get_plugin_registry

OPS = (PluginOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0

_ALIGNMENT = 64


def lower(op: PluginOp, lowering: Lowering) -> bool:
    """Tensors that lie in another way are copied in front of the call, or behind it."""
    _check_target(op, lowering)
    read = [_read(value, op, lowering) for value in op.inputs]
    written = [_written(value, lowering) for value in op.outputs]
    tensors, places = [*op.inputs, *op.outputs], [*read, *written]
    kernel = PluginKernel(
        (op.plugin, op.version, op.plugin_namespace),
        _state(op, lowering),
        [element_of(value.type) for value in tensors],
        [rank(value.type) for value in tensors],
        len(op.inputs),
    )
    buffers = list(dict.fromkeys(place.buffer for place in places))
    pointers = [PointerAttr.of(buffers.index(place.buffer), place.offset, place.part) for place in places]
    lengths = [ExpressionAttr.of(length) for value in tensors for length in dims(value.type)]
    lowering.launch(kernel, buffers, [*pointers, *lengths], op, [1, 1, 1])
    for value, place in zip(op.outputs, written, strict=True):
        if place is not lowering.placements[value]:
            copy(value, lowering.placements[value], op, lowering, place)
    return True


def _check_target(op: PluginOp, lowering: Lowering) -> None:
    """Functions of arrays run on the host; raises `UnsupportedError` where that is not the target."""
    domain, name = op.plugin_namespace.data, op.plugin.data
    creator = get_plugin_registry().get_creator(name, op.version.data, domain)
    if isinstance(creator, FunctionCreator) and lowering.target.kind not in creator.op.targets:
        why = f" ({creator.op.refusal})" if creator.op.refusal else ""
        raise UnsupportedError(
            f"layer {name_of(op)}: {creator.op.label} is a Python function that runs on CPUs{why}; for a GPU write it "
            "as a function of numbers, or register its kernel with mlirt.plugin.impl; or build with target='cpu'"
        )


def _read(value: SSAValue, op: PluginOp, lowering: Lowering) -> Placement:
    if _is_plain(value, lowering):
        return lowering.placements[value]
    return dense(copy_dense(value, op, lowering), dims(value.type))


def _written(value: SSAValue, lowering: Lowering) -> Placement:
    if _is_plain(value, lowering):
        return lowering.placements[value]
    size = element_count(value.type) * byte_width(element_of(value.type))
    return dense(lowering.placements.scratch(size), dims(value.type))


def _is_plain(value: SSAValue, lowering: Lowering) -> bool:
    """Whether a tensor lies as plugins may expect it: without gaps, from a good address on."""
    offset = lowering.placements[value].offset
    return lowering.placements.is_dense(value) and isinstance(offset, int) and offset % _ALIGNMENT == 0


def _state(op: PluginOp, lowering: Lowering) -> WeightsAttr | None:
    """The plugin's bytes in the weight store; None where there are none."""
    import numpy as np

    state = lowering.constant_array(op.state)
    if state is None:
        raise UnsupportedError(f"layer {name_of(op)}: the state of a plugin is a constant")
    if not state.size:
        return None
    return weights_of(lowering.ctx).put(np.ascontiguousarray(state), f"{name_of(op)}.state")
