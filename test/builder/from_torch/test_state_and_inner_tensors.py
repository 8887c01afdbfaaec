"""Recurrent modules step by step with state in the engine, and inner tensors of modules."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedBaseClass=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import mlirt  # noqa: E402

torch.manual_seed(0)


class Step(torch.nn.Module):
    """One step of a GRU, and what is read off it."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = torch.nn.GRUCell(4, 8), torch.nn.Linear(8, 2)

    def forward(self, x: Any, h: Any) -> Any:
        h = self.cell(x, h)
        return self.head(h), h


def test_steps_of_a_recurrent_module() -> None:
    module = Step().eval()
    x, h = torch.randn(3, 4), torch.zeros(3, 8)
    plain: Any = mlirt.compile(module, (x, h), target="cpu")
    state = {plain.inputs[1].name: plain.outputs[1].name}
    engine: Any = mlirt.compile(module, (x, h), target="cpu", state=state)
    assert [one.name for one in (*engine.inputs, *engine.outputs)] == [plain.inputs[0].name, plain.outputs[0].name]
    with torch.no_grad():
        for _ in range(4):
            x = torch.randn(3, 4)
            y, h = module(x, h)
            found = engine.run({plain.inputs[0].name: x.numpy()}, sequence="a")
            np.testing.assert_allclose(found[plain.outputs[0].name], y.numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(mlirt.InvalidInputError, match="an engine with state is run by names"):
        engine(x, h)


def test_inner_tensors() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
    x = torch.randn(3, 4)
    with torch.no_grad():
        expected = module[1](module[0](x)).numpy()
    engine: Any = mlirt.compile(module, (x,), target="cpu", outputs=["relu"])
    np.testing.assert_allclose(engine.run({"input": x.numpy()})["relu"], expected, rtol=1e-4, atol=1e-5)
    assert torch.allclose(engine(x), module(x), atol=1e-5)
    beside: Any = mlirt.compile(module, (x,), target="cpu", debug=["relu"])
    np.testing.assert_allclose(beside.engine.debug({"input": x.numpy()})["relu"], expected, rtol=1e-4, atol=1e-5)
