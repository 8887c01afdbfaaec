"""Operators that move elements, or make them from sizes."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportOptionalMemberAccess=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

from onnx_rules.node import Node, Rule, Tensor, Unsupported, as_matrix, axes_of, number_of, of_one


def _reshape(node: Node, given: list[Any]) -> Tensor:
    keep = not node.get("allowzero", 0)
    return given[0].reshape([given[0].shape[k] if n == 0 and keep else n for k, n in enumerate(given[1])])


def _flatten(node: Node, given: list[Any]) -> Tensor:
    return as_matrix(given[0], node.get("axis", 1))


def _squeeze(node: Node, given: list[Any]) -> Tensor:
    axes = axes_of(node, given)
    return given[0].squeeze() if axes is None else given[0].squeeze(tuple(axes))


def _unsqueeze(node: Node, given: list[Any]) -> Tensor:
    x, axes = given[0], axes_of(node, given) or []
    rank = x.dim() + len(axes)
    for axis in sorted(a % rank for a in axes):
        x = x.unsqueeze(axis)
    return x


def _slice(node: Node, given: list[Any]) -> Tensor:
    x = given[0]
    if len(given) > 1:
        starts, ends = given[1], given[2]
        axes = given[3] if len(given) > 3 and given[3] is not None else range(len(starts))
        steps = given[4] if len(given) > 4 and given[4] is not None else [1] * len(starts)
    else:
        starts, ends = node.get("starts"), node.get("ends")
        axes, steps = node.get("axes", range(len(starts))), [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        x = _sliced(x, start, end, axis % x.dim(), step)
    return x


def _sliced(x: Tensor, start: int, end: int, axis: int, step: int) -> Tensor:
    length = x.shape[axis]
    places = range(length)[slice(start, end, step)]
    if step < 0:  # PyTorch's slices go forward only
        x = x.flip(axis)
        places = range(length - 1 - places.start, length - 1 - places.stop, -step)
    if len(places) == 0:
        return x.narrow(axis, 0, 0)
    return x[(slice(None),) * axis + (slice(places.start, places.stop, abs(step)),)]


def _gather(node: Node, given: list[Any]) -> Tensor:
    x, indices = given
    axis = node.get("axis", 0) % x.dim()
    flat = indices.reshape(-1).long()
    flat = torch.where(flat < 0, flat + x.shape[axis], flat)
    return x.index_select(axis, flat).reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


def _gather_nd(node: Node, given: list[Any]) -> Tensor:
    x, indices = given
    if node.get("batch_dims", 0):
        raise Unsupported("GatherND with batch dimensions")
    return x[tuple(indices.unbind(-1))]


def _cast(node: Node, given: list[Any]) -> Tensor:
    dtype = torch.from_numpy(np.zeros(1, onnx.helper.tensor_dtype_to_np_dtype(node.get("to")))).dtype
    on_device = given[0].is_cuda or node.dtype == torch.float64
    return given[0].to(node.dtype if on_device and dtype in (torch.float32, torch.float64) else dtype)


def _pad(node: Node, given: list[Any]) -> Tensor:
    x = given[0]
    pads = given[1] if len(given) > 1 else node.get("pads")
    value = number_of(given[2]) if len(given) > 2 and given[2] is not None else node.get("value", 0.0)
    mode = node.get("mode", "constant")
    turned = [n for k in reversed(range(x.dim())) for n in (pads[k], pads[x.dim() + k])]
    if mode == "constant":
        return F.pad(x, turned, value=value)
    while len(turned) > 4 and not any(turned[-2:]):  # PyTorch takes as many as are padded
        turned = turned[:-2]
    return F.pad(x, turned, "replicate" if mode == "edge" else mode)


def _split(node: Node, given: list[Any]) -> list[Tensor]:
    axis = node.get("axis", 0)
    sizes = given[1] if len(given) > 1 and given[1] is not None else node.get("split")
    return list(torch.split(given[0], sizes or -(-given[0].shape[axis] // len(node.outputs)), axis))


def _constant_of_shape(node: Node, given: list[Any]) -> Tensor:
    value = node.get("value")
    filled = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    return torch.from_numpy(np.full(given[0], filled.reshape(-1)[0]))


def _range(node: Node, given: list[Any]) -> Tensor:
    whole = all(isinstance(one, int) for one in given)
    return torch.from_numpy(np.arange(*given, dtype=np.int64 if whole else np.float32))


def _expand(node: Node, given: list[Any]) -> Tensor:
    return given[0].expand(torch.broadcast_shapes(given[0].shape, tuple(given[1])))


def _permute(node: Node, given: list[Any]) -> Tensor:
    return given[0].permute(list(node.get("perm", range(given[0].dim())[::-1])))


RULES: dict[str, Rule] = {
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Transpose": _permute,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Slice": _slice,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "Concat": lambda node, given: torch.cat(given, node.get("axis")),
    "Split": _split,
    "Cast": _cast,
    "Shape": lambda node, given: torch.from_numpy(node.shape_of(given[0])),
    "ConstantOfShape": _constant_of_shape,
    "Identity": of_one(lambda x: x),
    "Dropout": of_one(lambda x: x),
    "Pad": _pad,
    "Range": _range,
    "Expand": _expand,
}
