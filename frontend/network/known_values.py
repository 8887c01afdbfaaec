"""Small tensors whose elements follow from constants and from lengths that are numbers (tensorrt-features.md#6.4, 6.7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure

from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims, element_count
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.plugin import PluginOp
from mlirt.dialects.trt.shape import ShapeOp
from mlirt.dialects.weights import WeightStore
from mlirt.errors import MlirtError

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

MAX_ELEMENTS = 64
_MAX_OPS = 256


def known_value(value: SSAValue, store: WeightStore) -> Array | None:
    """The elements of a tensor; None where the inputs of the network decide, or there are many."""
    ops = _sources(value)
    if ops is None:
        return None
    found: dict[SSAValue, Array] = {}
    for op in ops:
        try:
            results = _evaluated(op, found, store)
        except MlirtError:
            return None
        found.update(zip(op.results, results, strict=True))
    return found[value]


def _evaluated(op: TensorOp, found: dict[SSAValue, Array], store: WeightStore) -> list[Array]:
    import numpy as np

    if isinstance(op, ConstantOp):
        return [op.array(store)]
    if isinstance(op, ShapeOp):
        return [np.array(dims(op.input.type), np.int64)]
    return list(op.reference(*[found[operand] for operand in op.operands]))


def _sources(value: SSAValue) -> list[TensorOp] | None:
    """The ops that compute a value, each after those that it reads; None where it is not known."""
    ordered: dict[Operation, None] = {}
    todo: list[tuple[SSAValue, bool]] = [(value, False)]
    while todo:
        current, done = todo.pop()
        op = current.owner
        if not isinstance(op, TensorOp) or isinstance(op, PluginOp) or not op.has_trait(Pure()):
            return None
        if not _is_small(current):
            return None
        if done:
            ordered[op] = None
        elif op not in ordered:
            todo.append((current, True))
            if isinstance(op, ShapeOp):
                if not all(isinstance(length, int) for length in dims(op.input.type)):
                    return None
            else:
                todo.extend((operand, False) for operand in op.operands)
        if len(todo) > _MAX_OPS:
            return None
    return [op for op in ordered if isinstance(op, TensorOp)]


def _is_small(value: SSAValue) -> bool:
    count = element_count(value.type)
    return isinstance(count, int) and count <= MAX_ELEMENTS
