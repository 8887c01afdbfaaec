"""Operators with windows, normalisations, and products."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportOptionalMemberAccess=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from onnx_rules.node import Node, Rule, Tensor, Unsupported, of_two


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
    "MatMul": of_two(torch.matmul),
    "Resize": _resize,
    "Upsample": _resize,
}
