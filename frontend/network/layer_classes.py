"""Which class of layers shows an op."""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation

from mlirt.frontend.network import (
    layers_index,
    layers_move,
    layers_pointwise,
    layers_product,
    layers_quantize,
    layers_reduce,
    layers_sample,
    layers_source,
    layers_window,
)
from mlirt.frontend.network.layer import ILayer
from mlirt.tensorrt.layer_enums import LayerType

_FAMILIES = (
    layers_index,
    layers_move,
    layers_pointwise,
    layers_product,
    layers_quantize,
    layers_reduce,
    layers_sample,
    layers_source,
    layers_window,
)


class ImportedLayer(ILayer):
    """A layer of a model for which TensorRT has no class: a branch or a loop as a whole, or an op of mlirt's."""

    KIND, TYPE = "PluginV2", LayerType.PLUGIN_V2


def layer_class_of(op: Operation) -> type[ILayer]:
    """The class of layers that make such ops."""
    return _classes().get(type(op), ImportedLayer)


@cache
def _classes() -> dict[type[Operation], type[ILayer]]:
    found: dict[type[Operation], type[ILayer]] = {}
    for family in _FAMILIES:
        for one in vars(family).values():
            if isinstance(one, type) and issubclass(one, ILayer) and one.OP is not None:
                found[one.OP] = one
    return found
