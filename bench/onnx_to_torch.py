"""A PyTorch module from an ONNX graph: a small interpreter of the operators that convolutional networks use.

For measuring only: it lets PyTorch run the same network with the same weights. Shape arithmetic stays on the host, so
that the module can be captured in a CUDA graph.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportArgumentType=false, reportReturnType=false
# pyright: reportUntypedBaseClass=false, reportOptionalMemberAccess=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

Tensor = Any
Rule = Callable[["Node", list[Any]], Any]


class Unsupported(Exception):
    """The graph has an operator that is not here."""


class Node:
    """An ONNX node with its attributes as Python values."""

    def __init__(self, proto: onnx.NodeProto) -> None:
        self.kind, self.inputs, self.outputs = proto.op_type, list(proto.input), list(proto.output)
        self.attributes = {one.name: onnx.helper.get_attribute_value(one) for one in proto.attribute}

    def get(self, name: str, default: Any = None) -> Any:
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value


class OnnxModule(torch.nn.Module):
    """`module(*inputs)` gives the outputs in the graph's order."""

    def __init__(self, model: onnx.ModelProto, device: str = "cuda", half: bool = False) -> None:
        super().__init__()
        graph = model.graph
        self.half = half
        self.nodes = [Node(proto) for proto in graph.node]
        unknown = sorted({node.kind for node in self.nodes} - set(RULES))
        if unknown:
            raise Unsupported(f"no rule for {', '.join(unknown)}")
        self.constants: dict[str, Any] = {}
        for one in graph.initializer:
            self.constants[one.name] = self._constant(numpy_helper.to_array(one), device)
        for node in self.nodes:
            if node.kind == "Constant":
                self.constants[node.outputs[0]] = self._constant(numpy_helper.to_array(node.get("value")), device)
        self.inputs = [one.name for one in graph.input if one.name not in self.constants]
        self.outputs = [one.name for one in graph.output]

    def _constant(self, array: np.ndarray, device: str) -> Tensor:
        """Integers describe shapes and stay on the host."""
        tensor = torch.from_numpy(np.array(array))
        if not tensor.is_floating_point():
            return tensor
        return tensor.to(device, torch.float16 if self.half else tensor.dtype)

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        values = {**self.constants, **dict(zip(self.inputs, inputs, strict=True))}
        for node in self.nodes:
            if node.kind == "Constant":
                continue
            results = RULES[node.kind](node, [values[name] if name else None for name in node.inputs])
            results = results if isinstance(results, list | tuple) else [results]
            values.update(zip(node.outputs, results, strict=False))
        return [values[name] for name in self.outputs]


def _pads(node: Node, x: Tensor, rank: int, window: Sequence[int]) -> tuple[Tensor, list[int]]:
    """Symmetric padding as a number per dimension; the rest is added to the input."""
    auto = node.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pads = _same_pads(node, x, rank, window, auto == "SAME_LOWER")
    else:
        pads = list(node.get("pads", [0] * (2 * rank)))
    before, after = pads[:rank], pads[rank:]
    if before == after:
        return x, before
    fill = float("-inf") if node.kind == "MaxPool" else 0.0
    turned = [n for k in reversed(range(rank)) for n in (before[k], after[k])]
    return F.pad(x, turned, value=fill), [0] * rank


def _same_pads(node: Node, x: Tensor, rank: int, window: Sequence[int], lower: bool) -> list[int]:
    strides, dilations = node.get("strides", [1] * rank), node.get("dilations", [1] * rank)
    total = [
        max(
            0, (-(-x.shape[2 + k] // strides[k]) - 1) * strides[k] + dilations[k] * (window[k] - 1) + 1 - x.shape[2 + k]
        )
        for k in range(rank)
    ]
    small, large = [n // 2 for n in total], [n - n // 2 for n in total]
    return [*large, *small] if lower else [*small, *large]


def _conv(node: Node, given: list[Any]) -> Tensor:
    x, weight, bias = (*given, None)[:3]
    rank = weight.dim() - 2
    x, pads = _pads(node, x, rank, weight.shape[2:])
    made = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    return made(
        x, weight, bias, node.get("strides", [1] * rank), pads, node.get("dilations", [1] * rank), node.get("group", 1)
    )


def _conv_transpose(node: Node, given: list[Any]) -> Tensor:
    x, weight, bias = (*given, None)[:3]
    rank = weight.dim() - 2
    pads = node.get("pads", [0] * (2 * rank))
    if pads[:rank] != pads[rank:]:
        raise Unsupported("ConvTranspose with different padding at both ends")
    made = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    return made(
        x,
        weight,
        bias,
        node.get("strides", [1] * rank),
        pads[:rank],
        node.get("output_padding", [0] * rank),
        node.get("group", 1),
        node.get("dilations", [1] * rank),
    )


def _max_pool(node: Node, given: list[Any]) -> Tensor:
    window = node.get("kernel_shape")
    rank = len(window)
    x, pads = _pads(node, given[0], rank, window)
    made = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
    ceil = bool(node.get("ceil_mode", 0))
    return made(x, window, node.get("strides", [1] * rank), pads, node.get("dilations", 1), ceil)


def _average_pool(node: Node, given: list[Any]) -> Tensor:
    window = node.get("kernel_shape")
    rank = len(window)
    x, pads = _pads(node, given[0], rank, window)
    made = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1]
    ceil, counted = bool(node.get("ceil_mode", 0)), bool(node.get("count_include_pad", 0))
    return made(x, window, node.get("strides", [1] * rank), pads, ceil, counted)


def _batch_norm(node: Node, given: list[Any]) -> Tensor:
    x, scale, bias, mean, variance = given
    return F.batch_norm(x, mean, variance, scale, bias, False, 0.0, node.get("epsilon", 1e-5))


def _lrn(node: Node, given: list[Any]) -> Tensor:
    return F.local_response_norm(
        given[0], node.get("size"), node.get("alpha", 1e-4), node.get("beta", 0.75), node.get("bias", 1.0)
    )


def _gemm(node: Node, given: list[Any]) -> Tensor:
    a, b = (x.t() if node.get(flag, 0) else x for x, flag in zip(given[:2], ("transA", "transB"), strict=True))
    product = node.get("alpha", 1.0) * (a @ b) if node.get("alpha", 1.0) != 1 else a @ b
    return product if len(given) < 3 or given[2] is None else torch.add(product, given[2], alpha=node.get("beta", 1.0))


def _together(function: Callable[[Tensor, Tensor], Tensor]) -> Rule:
    """A binary operator on tensors that may lie on different devices: small ones on the host follow."""

    def rule(node: Node, given: list[Any]) -> Tensor:
        a, b = given
        device = a.device if a.is_cuda else b.device
        return function(a.to(device), b.to(device))

    return rule


def _reshape(node: Node, given: list[Any]) -> Tensor:
    sizes = [given[0].shape[k] if n == 0 else n for k, n in enumerate(given[1].tolist())]
    return given[0].reshape(sizes)


def _axes(node: Node, given: list[Any]) -> list[int] | None:
    if len(given) > 1 and given[1] is not None:
        return given[1].tolist()
    return node.get("axes")


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
        starts, ends = given[1].tolist(), given[2].tolist()
        axes = given[3].tolist() if len(given) > 3 and given[3] is not None else range(len(starts))
        steps = given[4].tolist() if len(given) > 4 and given[4] is not None else [1] * len(starts)
    else:
        starts, ends = node.get("starts"), node.get("ends")
        axes, steps = node.get("axes", range(len(starts))), [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        places = range(x.shape[axis])[slice(start, end, step)]
        if step > 0:
            x = x[(slice(None),) * (axis % x.dim()) + (slice(places.start, places.stop, step),)]
        else:
            x = x.index_select(axis, torch.tensor(list(places), device=x.device))
    return x


def _gather(node: Node, given: list[Any]) -> Tensor:
    x, indices = given
    axis = node.get("axis", 0) % x.dim()
    flat = indices.reshape(-1).to(x.device)
    flat = torch.where(flat < 0, flat + x.shape[axis], flat)
    return x.index_select(axis, flat).reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


def _cast(node: Node, given: list[Any]) -> Tensor:
    dtype = torch.from_numpy(np.zeros(1, onnx.helper.tensor_dtype_to_np_dtype(node.get("to")))).dtype
    return given[0].to(dtype)


def _resize(node: Node, given: list[Any]) -> Tensor:
    x = given[0]
    sizes = given[3] if len(given) > 3 and given[3] is not None else None
    scales = given[2] if len(given) > 2 and sizes is None else (given[1] if node.kind == "Upsample" else None)
    target = (
        sizes.tolist() if sizes is not None else [int(n * s) for n, s in zip(x.shape, scales.tolist(), strict=True)]
    )
    mode = node.get("mode", "nearest")
    if mode == "nearest":
        return F.interpolate(x, target[2:], mode="nearest")
    corners = node.get("coordinate_transformation_mode", "half_pixel") == "align_corners"
    return F.interpolate(x, target[2:], mode="bilinear" if mode == "linear" else "bicubic", align_corners=corners)


def _pad(node: Node, given: list[Any]) -> Tensor:
    x = given[0]
    pads = given[1].tolist() if len(given) > 1 else node.get("pads")
    value = float(given[2]) if len(given) > 2 and given[2] is not None else node.get("value", 0.0)
    turned = [n for k in reversed(range(x.dim())) for n in (pads[k], pads[x.dim() + k])]
    return F.pad(
        x, turned, {"edge": "replicate"}.get(node.get("mode", "constant"), node.get("mode", "constant")), value
    )


def _reduce(function: Callable[..., Tensor]) -> Rule:
    def rule(node: Node, given: list[Any]) -> Tensor:
        axes = _axes(node, given)
        axes = list(range(given[0].dim())) if axes is None else axes
        return function(given[0], axes, bool(node.get("keepdims", 1)))

    return rule


def _split(node: Node, given: list[Any]) -> list[Tensor]:
    axis = node.get("axis", 0)
    sizes = given[1].tolist() if len(given) > 1 else node.get("split")
    return list(torch.split(given[0], sizes or given[0].shape[axis] // len(node.outputs), axis))


def _softmax(node: Node, given: list[Any]) -> Tensor:
    axis = node.get("axis", 1 if given[0].dim() <= 2 else -1)
    return torch.softmax(given[0], axis)


def _clip(node: Node, given: list[Any]) -> Tensor:
    low, high = ((*given, None, None)[1:3]) if len(given) > 1 else (node.get("min"), node.get("max"))
    low, high = (None if one is None else float(one) for one in (low, high))
    return torch.clamp(given[0], low, high)


def _hard_sigmoid(node: Node, given: list[Any]) -> Tensor:
    return torch.clamp(node.get("alpha", 0.2) * given[0] + node.get("beta", 0.5), 0, 1)


def _sum(node: Node, given: list[Any]) -> Tensor:
    total = given[0]
    for one in given[1:]:
        total = total + one
    return total


def _max(node: Node, given: list[Any]) -> Tensor:
    best = given[0]
    for one in given[1:]:
        best = torch.maximum(best, one.to(best.device))
    return best


def _shape(node: Node, given: list[Any]) -> Tensor:
    return torch.tensor(list(given[0].shape), dtype=torch.int64)


def _concat(node: Node, given: list[Any]) -> Tensor:
    device = next((one.device for one in given if one.is_cuda), given[0].device)
    return torch.cat([one.to(device) for one in given], node.get("axis"))


def _constant_of_shape(node: Node, given: list[Any]) -> Tensor:
    value = node.get("value")
    filled = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    return torch.from_numpy(np.full(given[0].tolist(), filled.reshape(-1)[0]))


def _one(function: Callable[[Tensor], Tensor]) -> Rule:
    return lambda node, given: function(given[0])


def _power(a: Tensor, b: Tensor) -> Tensor:
    return torch.pow(a, float(b)) if b.numel() == 1 else torch.pow(a, b)


def _divide(a: Tensor, b: Tensor) -> Tensor:
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


RULES: dict[str, Rule] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda node, given: given[0].mean(tuple(range(2, given[0].dim())), keepdim=True),
    "BatchNormalization": _batch_norm,
    "LRN": _lrn,
    "Gemm": _gemm,
    "MatMul": lambda node, given: given[0] @ given[1],
    "Add": _together(torch.add),
    "Sub": _together(torch.sub),
    "Mul": _together(torch.mul),
    "Div": _together(_divide),
    "Pow": _together(_power),
    "Equal": _together(torch.eq),
    "Sum": _sum,
    "Max": _max,
    "Relu": _one(torch.relu),
    "Sigmoid": _one(torch.sigmoid),
    "Tanh": _one(torch.tanh),
    "Sqrt": _one(torch.sqrt),
    "Exp": _one(torch.exp),
    "Log": _one(torch.log),
    "Erf": _one(torch.erf),
    "Neg": _one(torch.neg),
    "Abs": _one(torch.abs),
    "HardSwish": _one(F.hardswish),
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": lambda node, given: F.leaky_relu(given[0], node.get("alpha", 0.01)),
    "Clip": _clip,
    "Softmax": _softmax,
    "Reshape": _reshape,
    "Flatten": lambda node, given: given[0].reshape(int(np.prod(given[0].shape[: node.get("axis", 1)])), -1),
    "Transpose": lambda node, given: given[0].permute(node.get("perm", list(range(given[0].dim()))[::-1])),
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Slice": _slice,
    "Gather": _gather,
    "Concat": _concat,
    "Split": _split,
    "Cast": _cast,
    "Shape": _shape,
    "ConstantOfShape": _constant_of_shape,
    "Constant": _one(lambda x: x),
    "Identity": _one(lambda x: x),
    "Dropout": _one(lambda x: x),
    "Resize": _resize,
    "Upsample": _resize,
    "Pad": _pad,
    "Range": lambda node, given: torch.arange(*(one.item() for one in given)),
    "Expand": lambda node, given: given[0].expand(torch.broadcast_shapes(given[0].shape, tuple(given[1].tolist()))),
    "Where": lambda node, given: torch.where(given[0], given[1], given[2]),
    "ReduceMean": _reduce(lambda x, axes, keep: x.mean(axes, keep)),
    "ReduceSum": _reduce(lambda x, axes, keep: x.sum(axes, keep)),
    "ReduceMax": _reduce(lambda x, axes, keep: x.amax(axes, keep)),
    "ReduceMin": _reduce(lambda x, axes, keep: x.amin(axes, keep)),
}
