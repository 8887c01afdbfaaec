"""Rewrites weights of an ONNX model so that two of each four are zero, as `trtexec --sparsity=force` does (16.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import numpy_helper

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]

_GROUP = 4
_KEPT = 2


def two_of_four(weights: Array, axis: int) -> Array:
    """The weights with zeros for all but the two largest of each four that follow one another along an axis.

    Of equal ones the first are kept. An axis whose length is no multiple of four stays as it is.
    """
    if weights.shape[axis] % _GROUP or not weights.size:
        return weights
    groups = np.moveaxis(weights, axis, -1).reshape(-1, _GROUP)
    order = np.argsort(-np.abs(groups), axis=1, kind="stable")
    kept: Array = groups.copy()
    np.put_along_axis(kept, order[:, _KEPT:], 0, axis=1)
    moved: Array = kept.reshape(np.moveaxis(weights, axis, -1).shape)
    return np.ascontiguousarray(np.moveaxis(moved, -1, axis))


def with_sparse_weights(path: str) -> tuple[onnx.ModelProto, list[str]]:
    """The model of a file with such weights for convolutions and products, and the names of those that were changed."""
    changed: onnx.ModelProto = onnx.load(path)  # pyright: ignore[reportUnknownMemberType]
    axes = dict(found for node in changed.graph.node if (found := _weights(node)) is not None)
    names: list[str] = []
    for tensor in changed.graph.initializer:
        axis = axes.get(tensor.name)
        if axis is None or tensor.data_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16):
            continue
        before = numpy_helper.to_array(tensor)
        if before.ndim < 2:
            continue
        after = two_of_four(before, axis)
        if not np.array_equal(before, after, equal_nan=True):
            tensor.CopyFrom(numpy_helper.from_array(after, tensor.name))
            names.append(tensor.name)
    return changed, names


def _weights(node: onnx.NodeProto) -> tuple[str, int] | None:
    """The tensor that a node multiplies by, and the axis that it sums over."""
    if node.domain not in ("", "ai.onnx") or len(node.input) < 2:
        return None
    if node.op_type == "Conv":
        return node.input[1], 1
    if node.op_type == "MatMul":
        return node.input[1], -2
    if node.op_type == "Gemm":
        is_transposed = any(one.name == "transB" and one.i for one in node.attribute)
        return node.input[1], 1 if is_transposed else 0
    return None
