"""What PyTorch calls for each ONNX operator: a table of functions from a node and its inputs to its outputs.

Inputs that say sizes (HOST_INPUTS) are lists and numbers of Python, all others are tensors on one device. No rule reads
a tensor back or makes one from numbers of the host: such a call cannot be captured in a CUDA graph.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportOptionalMemberAccess=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

Tensor: TypeAlias = Any
Array = np.ndarray[Any, np.dtype[Any]]


class Unsupported(Exception):
    """The graph has an operator, or a use of one, that is not here."""


@dataclass(frozen=True)
class Node:
    """An ONNX node with its attributes as Python values."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    opset: int
    half: bool

    @staticmethod
    def of(proto: onnx.NodeProto, opset: int, half: bool) -> Node:
        attributes = {one.name: onnx.helper.get_attribute_value(one) for one in proto.attribute}
        return Node(proto.op_type, tuple(proto.input), tuple(proto.output), attributes, opset, half)

    def get(self, name: str, default: Any = None) -> Any:
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def constant(self) -> Array:
        """The array of a Constant node."""
        ((name, value),) = self.attributes.items()
        if name == "value":
            return numpy_helper.to_array(value)
        return np.array(value, np.float32 if "float" in name else np.int64)

    def shape_of(self, x: Any) -> Array:
        """The result of a Shape node."""
        return np.array(x.shape[self.get("start", 0) : self.get("end")], np.int64)


Rule: TypeAlias = Callable[[Node, list[Any]], Any]

# Positions of the inputs that say sizes or are numbers of the call.
HOST_INPUTS: dict[str, tuple[int, ...]] = {
    "Reshape": (1,),
    "Squeeze": (1,),
    "Unsqueeze": (1,),
    "Slice": (1, 2, 3, 4),
    "Expand": (1,),
    "Tile": (1,),
    "Split": (1,),
    "Resize": (1, 2, 3),
    "Upsample": (1,),
    "Pad": (1, 2, 3),
    "Clip": (1, 2),
    "Range": (0, 1, 2),
    "ConstantOfShape": (0,),
    "ReduceSum": (1,),
    "ReduceMean": (1,),
    "ReduceMax": (1,),
    "ReduceMin": (1,),
    "ReduceProd": (1,),
    "Pow": (1,),
    "Dropout": (1, 2),
    "GRU": (1, 2, 3, 4),
    "LSTM": (1, 2, 3, 4),
}


def _number(value: Any) -> float:
    """A number, or the only one of a list."""
    while isinstance(value, list):
        if len(value) != 1:
            raise Unsupported("an array where a number is expected")
        value = value[0]
    return float(value)


def _pads(node: Node, x: Tensor, window: Sequence[int]) -> tuple[list[int], list[int]]:
    """The padding before and after each spatial dimension."""
    rank = len(window)
    auto = node.get("auto_pad", "NOTSET")
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        pads = list(node.get("pads", [0] * (2 * rank)))
        return pads[:rank], pads[rank:]
    strides, dilations = node.get("strides", [1] * rank), node.get("dilations", [1] * rank)
    small, large = list[int](), list[int]()
    for length, stride, dilation, size in zip(x.shape[2:], strides, dilations, window, strict=True):
        total = max(0, (-(-length // stride) - 1) * stride + dilation * (size - 1) + 1 - length)
        small.append(total // 2)
        large.append(total - total // 2)
    return (large, small) if auto == "SAME_LOWER" else (small, large)


def _padded(x: Tensor, before: Sequence[int], after: Sequence[int], value: float = 0.0) -> Tensor:
    turned = [n for pair in reversed(list(zip(before, after, strict=True))) for n in pair]
    return F.pad(x, turned, value=value)


def _conv(node: Node, given: list[Any]) -> Tensor:
    x, weight, bias = (*given, None)[:3]
    rank = weight.dim() - 2
    before, after = _pads(node, x, weight.shape[2:])
    if before != after:
        x, before = _padded(x, before, after), [0] * rank
    strides, dilations = node.get("strides", [1] * rank), node.get("dilations", [1] * rank)
    made = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    return made(x, weight, bias, strides, before, dilations, node.get("group", 1))


def _conv_transpose(node: Node, given: list[Any]) -> Tensor:
    x, weight, bias = (*given, None)[:3]
    rank = weight.dim() - 2
    pads = node.get("pads", [0] * (2 * rank))
    if pads[:rank] != pads[rank:] or node.get("auto_pad", "NOTSET") != "NOTSET" or node.get("output_shape"):
        raise Unsupported("ConvTranspose whose padding differs at both ends or is inferred")
    strides, dilations = node.get("strides", [1] * rank), node.get("dilations", [1] * rank)
    made = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    extra = node.get("output_padding", [0] * rank)
    return made(x, weight, bias, strides, pads[:rank], extra, node.get("group", 1), dilations)


def _max_pool(node: Node, given: list[Any]) -> Tensor:
    x, window = given[0], node.get("kernel_shape")
    rank = len(window)
    before, after = _pads(node, x, window)
    if before != after or any(2 * pad > size for pad, size in zip(before, window, strict=True)):
        x, before = _padded(x, before, after, float("-inf")), [0] * rank
    made = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
    ceil, strides = bool(node.get("ceil_mode", 0)), node.get("strides", [1] * rank)
    return made(x, window, strides, before, node.get("dilations", [1] * rank), ceil)


def _average_pool(node: Node, given: list[Any]) -> Tensor:
    x, window = given[0], node.get("kernel_shape")
    rank = len(window)
    before, after = _pads(node, x, window)
    made = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1]
    ceil, counted = bool(node.get("ceil_mode", 0)), bool(node.get("count_include_pad", 0))
    strides = node.get("strides", [1] * rank)
    if before == after and all(2 * pad <= size for pad, size in zip(before, window, strict=True)):
        return made(x, window, strides, before, ceil, counted)
    average = made(_padded(x, before, after), window, strides, 0, ceil)
    if counted:
        return average
    # The mean over the elements that are there: the padded mean, over the share of them in each window.
    return average / made(_padded(torch.ones_like(x[:1, :1]), before, after), window, strides, 0, ceil)


def _batch_norm(node: Node, given: list[Any]) -> Tensor:
    x, scale, bias, mean, variance = given
    return F.batch_norm(x, mean, variance, scale, bias, False, 0.0, node.get("epsilon", 1e-5))


def _layer_norm(node: Node, given: list[Any]) -> Tensor:
    x, scale, bias = (*given, None)[:3]
    axis = node.get("axis", -1) % x.dim()
    return F.layer_norm(x, x.shape[axis:], scale, bias, node.get("epsilon", 1e-5))


def _lrn(node: Node, given: list[Any]) -> Tensor:
    size = node.get("size")
    if size % 2 == 0:
        raise Unsupported("LRN over an even number of channels")
    return F.local_response_norm(given[0], size, node.get("alpha", 1e-4), node.get("beta", 0.75), node.get("bias", 1.0))


def _gemm(node: Node, given: list[Any]) -> Tensor:
    a, b = (x.t() if node.get(flag, 0) else x for x, flag in zip(given[:2], ("transA", "transB"), strict=True))
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    if len(given) > 2 and given[2] is not None:
        return torch.addmm(given[2], a, b, beta=beta, alpha=alpha)
    return alpha * (a @ b) if alpha != 1 else a @ b


def _reshape(node: Node, given: list[Any]) -> Tensor:
    keep = not node.get("allowzero", 0)
    return given[0].reshape([given[0].shape[k] if n == 0 and keep else n for k, n in enumerate(given[1])])


def _flatten(node: Node, given: list[Any]) -> Tensor:
    return _matrix(given[0], node.get("axis", 1))


def _matrix(x: Tensor, axis: int) -> Tensor:
    """The dimensions before `axis` as one, and those from it on as another."""
    axis = axis % x.dim() if axis < x.dim() else axis
    return x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1)


def _axes(node: Node, given: list[Any]) -> list[int] | None:
    if len(given) > 1 and given[1] is not None:
        return given[1]
    axes = node.get("axes")
    return None if axes is None else list(axes)


def _squeeze(node: Node, given: list[Any]) -> Tensor:
    axes = _axes(node, given)
    return given[0].squeeze() if axes is None else given[0].squeeze(tuple(axes))


def _unsqueeze(node: Node, given: list[Any]) -> Tensor:
    x, axes = given[0], _axes(node, given) or []
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
    half = node.half and given[0].is_cuda and dtype in (torch.float32, torch.float64)
    return given[0].to(torch.float16 if half else dtype)


def _resize(node: Node, given: list[Any]) -> Tensor:
    x = given[0]
    sizes = given[3] if len(given) > 3 and given[3] is not None else None
    scales = given[1] if node.kind == "Upsample" or len(given) == 2 else (*given, None)[2]
    target = sizes if sizes is not None else [int(n * s) for n, s in zip(x.shape, scales, strict=True)]
    mode = node.get("mode", "nearest")
    place = "asymmetric" if node.kind == "Upsample" else node.get("coordinate_transformation_mode", "half_pixel")
    if mode == "nearest":
        whole = all(wide % own == 0 for wide, own in zip(target, x.shape, strict=True))
        floored = place == "asymmetric" and node.get("nearest_mode", "round_prefer_floor") == "floor"
        if not whole and not floored and node.kind == "Resize":
            raise Unsupported("Resize to the nearest other than PyTorch's")
        return F.interpolate(x, target[2:], mode="nearest")
    if place not in ("align_corners", "half_pixel", "pytorch_half_pixel"):
        raise Unsupported(f"Resize with {place} coordinates")
    names = {1: "linear", 2: "bilinear", 3: "trilinear"}
    how = names[x.dim() - 2] if mode == "linear" else "bicubic"
    return F.interpolate(x, target[2:], mode=how, align_corners=place == "align_corners")


def _pad(node: Node, given: list[Any]) -> Tensor:
    x = given[0]
    pads = given[1] if len(given) > 1 else node.get("pads")
    value = _number(given[2]) if len(given) > 2 and given[2] is not None else node.get("value", 0.0)
    mode = node.get("mode", "constant")
    turned = [n for k in reversed(range(x.dim())) for n in (pads[k], pads[x.dim() + k])]
    if mode == "constant":
        return F.pad(x, turned, value=value)
    while len(turned) > 4 and not any(turned[-2:]):  # PyTorch takes as many as are padded
        turned = turned[:-2]
    return F.pad(x, turned, "replicate" if mode == "edge" else mode)


def _reduce(function: Callable[..., Tensor]) -> Rule:
    def rule(node: Node, given: list[Any]) -> Tensor:
        axes = _axes(node, given)
        if not axes and node.get("noop_with_empty_axes", 0):
            return given[0]
        return function(given[0], axes or list(range(given[0].dim())), bool(node.get("keepdims", 1)))

    return rule


def _product(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    for axis in sorted((a % x.dim() for a in axes), reverse=True):
        x = x.prod(axis, keep)
    return x


def _split(node: Node, given: list[Any]) -> list[Tensor]:
    axis = node.get("axis", 0)
    sizes = given[1] if len(given) > 1 and given[1] is not None else node.get("split")
    return list(torch.split(given[0], sizes or -(-given[0].shape[axis] // len(node.outputs)), axis))


def _softmax(node: Node, given: list[Any]) -> Tensor:
    x = given[0]
    if node.opset >= 13:
        return torch.softmax(x, node.get("axis", -1))
    return torch.softmax(_matrix(x, node.get("axis", 1)), -1).reshape(x.shape)


def _clip(node: Node, given: list[Any]) -> Tensor:
    low, high = ((*given, None, None)[1:3]) if len(given) > 1 else (node.get("min"), node.get("max"))
    x = given[0]
    if isinstance(low, torch.Tensor) or isinstance(high, torch.Tensor):
        for bound, limited in ((low, torch.clamp_min), (high, torch.clamp_max)):
            x = x if bound is None else limited(x, bound if isinstance(bound, torch.Tensor) else _number(bound))
        return x
    return torch.clamp(x, None if low is None else _number(low), None if high is None else _number(high))


def _hard_sigmoid(node: Node, given: list[Any]) -> Tensor:
    alpha, beta = node.get("alpha", 0.2), node.get("beta", 0.5)
    if abs(alpha - 1 / 6) < 1e-6 and beta == 0.5:
        return F.hardsigmoid(given[0])
    return torch.clamp(alpha * given[0] + beta, 0, 1)


def _folded(function: Callable[[Tensor, Tensor], Tensor]) -> Rule:
    """An operator of any number of inputs from one of two."""

    def rule(node: Node, given: list[Any]) -> Tensor:
        result = given[0]
        for one in given[1:]:
            result = function(result, one)
        return result

    return rule


def _constant_of_shape(node: Node, given: list[Any]) -> Tensor:
    value = node.get("value")
    filled = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    return torch.from_numpy(np.full(given[0], filled.reshape(-1)[0]))


def _range(node: Node, given: list[Any]) -> Tensor:
    whole = all(isinstance(one, int) for one in given)
    return torch.from_numpy(np.arange(*given, dtype=np.int64 if whole else np.float32))


def _power(node: Node, given: list[Any]) -> Tensor:
    x, exponent = given
    if isinstance(exponent, torch.Tensor):
        return torch.pow(x, exponent)
    return torch.pow(x, _number(exponent))


def _divide(node: Node, given: list[Any]) -> Tensor:
    a, b = given
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def _expand(node: Node, given: list[Any]) -> Tensor:
    return given[0].expand(torch.broadcast_shapes(given[0].shape, tuple(given[1])))


def _permute(node: Node, given: list[Any]) -> Tensor:
    return given[0].permute(list(node.get("perm", range(given[0].dim())[::-1])))


def _one(function: Callable[[Tensor], Tensor]) -> Rule:
    return lambda node, given: function(given[0])


def _two(function: Callable[[Tensor, Tensor], Tensor]) -> Rule:
    return lambda node, given: function(given[0], given[1])


RULES: dict[str, Rule] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda node, given: given[0].mean(tuple(range(2, given[0].dim())), keepdim=True),
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "LRN": _lrn,
    "Gemm": _gemm,
    "MatMul": _two(torch.matmul),
    "Add": _two(torch.add),
    "Sub": _two(torch.sub),
    "Mul": _two(torch.mul),
    "Div": _divide,
    "Pow": _power,
    "Equal": _two(torch.eq),
    "Less": _two(torch.lt),
    "Greater": _two(torch.gt),
    "GreaterOrEqual": _two(torch.ge),
    "And": _two(torch.logical_and),
    "Not": _one(torch.logical_not),
    "IsNaN": _one(torch.isnan),
    "Sum": _folded(torch.add),
    "Max": _folded(torch.maximum),
    "Min": _folded(torch.minimum),
    "Relu": _one(torch.relu),
    "Sigmoid": _one(torch.sigmoid),
    "Tanh": _one(torch.tanh),
    "Sqrt": _one(torch.sqrt),
    "Exp": _one(torch.exp),
    "Log": _one(torch.log),
    "Erf": _one(torch.erf),
    "Sin": _one(torch.sin),
    "Cos": _one(torch.cos),
    "Floor": _one(torch.floor),
    "Neg": _one(torch.neg),
    "Abs": _one(torch.abs),
    "HardSwish": _one(F.hardswish),
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": lambda node, given: F.leaky_relu(given[0], node.get("alpha", 0.01)),
    "Clip": _clip,
    "Softmax": _softmax,
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
    "Identity": _one(lambda x: x),
    "Dropout": _one(lambda x: x),
    "Resize": _resize,
    "Upsample": _resize,
    "Pad": _pad,
    "Range": _range,
    "Expand": _expand,
    "Where": lambda node, given: torch.where(given[0], given[1], given[2]),
    "ReduceMean": _reduce(lambda x, axes, keep: x.mean(axes, keep)),
    "ReduceSum": _reduce(lambda x, axes, keep: x.sum(axes, keep)),
    "ReduceMax": _reduce(lambda x, axes, keep: x.amax(axes, keep)),
    "ReduceMin": _reduce(lambda x, axes, keep: x.amin(axes, keep)),
    "ReduceProd": _reduce(_product),
}
