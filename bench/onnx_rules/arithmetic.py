"""Operators on single elements, and what combines elements along axes."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportOptionalMemberAccess=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from onnx_rules.node import Node, Rule, Tensor, as_matrix, axes_of, number_of, of_one, of_two


def _softmax(node: Node, given: list[Any]) -> Tensor:
    x = given[0]
    if node.opset >= 13:
        return torch.softmax(x, node.get("axis", -1))
    return torch.softmax(as_matrix(x, node.get("axis", 1)), -1).reshape(x.shape)


def _clip(node: Node, given: list[Any]) -> Tensor:
    low, high = ((*given, None, None)[1:3]) if len(given) > 1 else (node.get("min"), node.get("max"))
    x = given[0]
    if isinstance(low, torch.Tensor) or isinstance(high, torch.Tensor):
        for bound, limited in ((low, torch.clamp_min), (high, torch.clamp_max)):
            x = x if bound is None else limited(x, bound if isinstance(bound, torch.Tensor) else number_of(bound))
        return x
    return torch.clamp(x, None if low is None else number_of(low), None if high is None else number_of(high))


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


def _power(node: Node, given: list[Any]) -> Tensor:
    x, exponent = given
    if isinstance(exponent, torch.Tensor):
        return torch.pow(x, exponent)
    return torch.pow(x, number_of(exponent))


def _divide(node: Node, given: list[Any]) -> Tensor:
    a, b = given
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def _reduce(function: Callable[..., Tensor]) -> Rule:
    def rule(node: Node, given: list[Any]) -> Tensor:
        axes = axes_of(node, given)
        if not axes and node.get("noop_with_empty_axes", 0):
            return given[0]
        return function(given[0], axes or list(range(given[0].dim())), bool(node.get("keepdims", 1)))

    return rule


def _product(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    for axis in sorted((a % x.dim() for a in axes), reverse=True):
        x = x.prod(axis, keep)
    return x


RULES: dict[str, Rule] = {
    "Add": of_two(torch.add),
    "Sub": of_two(torch.sub),
    "Mul": of_two(torch.mul),
    "Div": _divide,
    "Pow": _power,
    "Equal": of_two(torch.eq),
    "Less": of_two(torch.lt),
    "Greater": of_two(torch.gt),
    "GreaterOrEqual": of_two(torch.ge),
    "And": of_two(torch.logical_and),
    "Not": of_one(torch.logical_not),
    "IsNaN": of_one(torch.isnan),
    "Sum": _folded(torch.add),
    "Max": _folded(torch.maximum),
    "Min": _folded(torch.minimum),
    "Relu": of_one(torch.relu),
    "Sigmoid": of_one(torch.sigmoid),
    "Tanh": of_one(torch.tanh),
    "Sqrt": of_one(torch.sqrt),
    "Exp": of_one(torch.exp),
    "Log": of_one(torch.log),
    "Erf": of_one(torch.erf),
    "Sin": of_one(torch.sin),
    "Cos": of_one(torch.cos),
    "Floor": of_one(torch.floor),
    "Neg": of_one(torch.neg),
    "Abs": of_one(torch.abs),
    "HardSwish": of_one(F.hardswish),
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": lambda node, given: F.leaky_relu(given[0], node.get("alpha", 0.01)),
    "Clip": _clip,
    "Softmax": _softmax,
    "Where": lambda node, given: torch.where(given[0], given[1], given[2]),
    "ReduceMean": _reduce(lambda x, axes, keep: x.mean(axes, keep)),
    "ReduceSum": _reduce(lambda x, axes, keep: x.sum(axes, keep)),
    "ReduceMax": _reduce(lambda x, axes, keep: x.amax(axes, keep)),
    "ReduceMin": _reduce(lambda x, axes, keep: x.amin(axes, keep)),
    "ReduceProd": _reduce(_product),
}
