"""How large outputs may become whose lengths only the data of a run tell (tensorrt-features.md#12.14, 12.16)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.non_zero import NonZeroOp
from mlirt.errors import MlirtError
from mlirt.frontend.network.layers_index import INonZeroLayer
from mlirt.frontend.network.layers_pointwise import IActivationLayer, IIdentityLayer, IUnaryLayer
from mlirt.frontend.network.layers_suppress import INMSLayer

if TYPE_CHECKING:
    from mlirt.frontend.network.tensor import ITensor

_MAX_DEPTH = 16


def largest_shape(tensor: ITensor, depth: int = 0) -> list[Dim] | None:
    """The lengths of a tensor, each as large as it may become; None where nothing says so."""
    lengths = _lengths(tensor)
    if lengths is None or _follow_from_inputs(tensor, lengths):
        return lengths
    if tensor.producer is None or depth == _MAX_DEPTH:
        return None
    layer = tensor.producer.view()
    if isinstance(tensor.producer.template, NonZeroOp):
        return _of_non_zero(layer)
    if isinstance(layer, IActivationLayer | IIdentityLayer | IUnaryLayer):
        x = layer.get_input(0)
        return None if x is None else largest_shape(x, depth + 1)
    rule = next((rule for kind, rule in _RULES.items() if isinstance(layer, kind)), None)
    return None if rule is None else rule(layer)


def _lengths(tensor: ITensor | None) -> list[Dim] | None:
    if tensor is None:
        return None
    try:
        return list(dims(tensor.graph.type_of(tensor)))
    except MlirtError:
        return None


def _follow_from_inputs(tensor: ITensor, lengths: list[Dim]) -> bool:
    of_inputs = {name for one in tensor.graph.inputs for length in _lengths(one) or () for name in symbols(length)}
    return all(symbols(length) <= of_inputs for length in lengths)


def _of_non_zero(layer: Any) -> list[Dim] | None:
    """All elements may be other than zero."""
    lengths = _lengths(layer.get_input(0))
    return None if lengths is None else [len(lengths), _product(lengths)]


def _of_suppression(layer: Any) -> list[Dim] | None:
    """All boxes of each class may be kept, up to the limit that is known."""
    scores = _lengths(layer.get_input(1))
    if scores is None or len(scores) != 3:
        return None
    batch, boxes, classes = scores
    most = layer.get_input(2)
    maker = None if most is None or most.producer is None else most.producer.view()
    limit = getattr(maker, "weights", None)
    if isinstance(boxes, int):
        boxes = min(boxes, layer.topk_box_limit)
        if limit is not None and limit.size == 1:
            boxes = min(boxes, max(int(limit.ravel()[0]), 0))
    return [_product([batch, boxes, classes]), 3]


def _product(lengths: list[Dim]) -> Dim:
    count: Dim = 1
    for length in lengths:
        count = count * length
    return count


_RULES: dict[type, Callable[[Any], list[Dim] | None]] = {INonZeroLayer: _of_non_zero, INMSLayer: _of_suppression}
