"""The layers behind the last products of a network: what their rounding does, no sum evens out any more."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.layer_precisions import LayerPrecisions, Precision
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import element_of, is_tensor
from mlirt.passes.quantization.integer_operands import SMOOTHING


def unsmoothed_layers(module: ModuleOp) -> set[Operation]:
    """The layers from the last product on each way to a float32 output, which stay float for its sake
    (tensorrt-features.md#9.24).

    None of a way where a layer is asked to be int8, that holds a plugin, or on which there is no product.
    """
    last = entry_function(module).body.block.last_op
    asked = LayerPrecisions(module)
    found: set[Operation] = set()
    for value in () if last is None else last.operands:
        if is_tensor(value.type) and element_of(value.type) == f32:
            way = list(_way(value))
            products = [op for op in way if isinstance(op, SMOOTHING)]
            if products and not any(_breaks(op, asked) for op in way):
                found.update(op for op in way if not isinstance(op, SMOOTHING))
    return found


def _way(value: SSAValue) -> Iterator[Operation]:
    """The ops that a value is made of, back to the first products, which are among them."""
    seen: set[Operation] = set()
    todo = [value]
    while todo:
        op = todo.pop().owner
        if not isinstance(op, Operation) or op in seen:
            continue
        seen.add(op)
        yield op
        if not isinstance(op, SMOOTHING):
            todo.extend(op.operands)


def _breaks(op: Operation, asked: LayerPrecisions) -> bool:
    return not isinstance(op, TensorOp) or asked.of(op) is Precision.INT8
