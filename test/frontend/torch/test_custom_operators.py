"""Custom operators of PyTorch that a function registered with `mlirt.op` computes."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false
# pyright: reportUntypedFunctionDecorator=false, reportInvalidTypeForm=false

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import mlirt  # noqa: E402


@torch.library.custom_op("mlirt_test::swish", mutates_args=())
def torch_swish(x: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
    return x / (1 + torch.exp(-beta * x))


@torch_swish.register_fake
def _(x: Any, beta: float = 1.0) -> Any:
    return torch.empty_like(x)


@torch.library.custom_op("mlirt_test::frames", mutates_args=())
def torch_frames(x: torch.Tensor, size: int, step: int) -> torch.Tensor:
    return x.unfold(1, size, step).clone()


@torch_frames.register_fake
def _(x: Any, size: int, step: int) -> Any:
    return x.new_empty(x.shape[0], (x.shape[1] - size) // step + 1, size)


class Model(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch_frames(torch_swish(x.relu(), 2.0), 4, 2) * 2


@mlirt.op("mlirt_test::swish")
def swish(x: float, *, beta: float = 1.0) -> float:
    return x / (1 + math.exp(-beta * x))


@mlirt.op("mlirt_test::frames", shapes=lambda x, size, step: (x[0], (x[1] - size) // step + 1, size))
def frames(x: Any, *, size: int, step: int) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, size, axis=1)[:, ::step]


X = torch.randn(3, 10)


def test_module_with_custom_operators() -> None:
    engine: Any = mlirt.compile(Model(), (X,), target="cpu")
    assert torch.allclose(engine(X), Model()(X), atol=1e-6)
    assert [layer["family"] for layer in engine.layers] == ["pointwise", "plugin", "pointwise"]


def test_other_lengths() -> None:
    batch = torch.export.Dim("batch", min=1, max=64)
    engine: Any = mlirt.compile(Model(), (X,), target="cpu", dynamic_shapes=({0: batch},))
    other = torch.randn(7, 10)
    assert torch.allclose(engine(other), Model()(other), atol=1e-6)


def test_torch_compile() -> None:
    compiled = torch.compile(Model(), backend="mlirt", options={"target": "cpu"}, fullgraph=True)
    with torch.no_grad():
        assert torch.allclose(compiled(X), Model()(X), atol=1e-6)


def test_operator_that_nobody_registered() -> None:
    @torch.library.custom_op("mlirt_test::unknown", mutates_args=())
    def unknown(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    unknown.register_fake(lambda x: torch.empty_like(x))

    class Other(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return unknown(x).relu()

    with pytest.raises(mlirt.UnsupportedOperatorsError, match=r"unknown.default.*mlirt_test"):
        mlirt.compile(Other(), (X,), target="cpu")
