"""Elements of shape arithmetic as text, as TensorRT writes them: `(EQUAL (# 1 (SHAPE x)) (# 1 (SHAPE y)))`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.errors import MlirtError
from mlirt.frontend.network.layers_index import IGatherLayer
from mlirt.frontend.network.layers_move import IShapeLayer, ISliceLayer
from mlirt.frontend.network.layers_pointwise import IElementWiseLayer, IIdentityLayer, IUnaryLayer
from mlirt.frontend.network.layers_source import IConstantLayer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mlirt.frontend.network.layer import ILayer
    from mlirt.frontend.network.tensor import ITensor

_MAX_DEPTH = 16


def condition_text(tensor: ITensor, index: int, depth: int = 0) -> str:
    """Element `index` of a tensor of at most one dimension; one that no shape arithmetic makes has its own name."""
    own = f"(# {index} {tensor.name})" if len(tensor.shape) else tensor.name
    if tensor.producer is None or depth == _MAX_DEPTH:
        return own
    inputs = [one for one in tensor.producer.inputs if one is not None]
    try:
        return _made(tensor.producer.view(), inputs, index, depth + 1) or own
    except (MlirtError, LookupError):  # a layer that is not complete, or that TensorRT has no words for
        return own


def _made(layer: ILayer, inputs: Sequence[ITensor], index: int, depth: int) -> str | None:
    """The element as the layer makes it; None for a layer that is no shape arithmetic."""
    if isinstance(layer, IConstantLayer):
        return str(layer.weights.ravel()[index].item())
    if isinstance(layer, IShapeLayer):
        return f"(# {index} (SHAPE {inputs[0].name}))"
    if isinstance(layer, IIdentityLayer):
        return condition_text(inputs[0], index, depth)
    if isinstance(layer, ISliceLayer) and len(inputs) == 1:
        start, stride = (int((given or (0,))[0]) for given in (layer.start, layer.stride))
        return condition_text(inputs[0], start + index * stride, depth)
    if isinstance(layer, IGatherLayer):
        place = condition_text(inputs[1], index, depth)
        return condition_text(inputs[0], int(place), depth) if place.isdecimal() else None
    if isinstance(layer, IElementWiseLayer | IUnaryLayer):
        operands = (condition_text(one, 0 if _is_repeated(one) else index, depth) for one in inputs)
        return f"({layer.op.name} {' '.join(operands)})"
    return None


def _is_repeated(tensor: ITensor) -> bool:
    return tuple(tensor.shape) in ((), (1,))
