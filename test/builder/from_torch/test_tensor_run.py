"""Tensors of PyTorch as inputs and outputs of engines: twenty exchanges, none of which copies."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import mlirt  # noqa: E402
from mlirt.builder.from_torch.tensor_run import run_tensors  # noqa: E402
from mlirt.errors import InvalidInputError  # noqa: E402
from mlirt.runtime.tensor_exchange import host_array  # noqa: E402

KINDS = "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 bool".split()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("transposed", [False, True])
def test_exchange_copies_nothing(kind: str, transposed: bool) -> None:
    tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, kind))
    tensor = tensor.T if transposed else tensor
    array = host_array("input 'x'", tensor)
    assert array.ctypes.data == tensor.data_ptr()
    assert array.dtype.name == kind
    assert array.tolist() == tensor.tolist()


@pytest.fixture(scope="module")
def engine() -> Any:
    made: Any = mlirt.compile(torch.nn.Linear(4, 3), (torch.randn(2, 4),), target="cpu")
    return made.engine


def test_inputs_and_outputs_are_tensors(engine: Any) -> None:
    x, y = torch.randn(2, 4), torch.empty(2, 3)
    found = engine.run({"input": x}, {"output": y})
    np.testing.assert_array_equal(y.numpy(), engine.run({"input": x.numpy()})["output"])
    assert found["output"] is y or found["output"].ctypes.data == y.data_ptr()
    assert torch.from_dlpack(run_tensors(engine, {"input": x})["output"]).equal(y)


def test_tensor_that_needs_gradients_is_named(engine: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"input 'input': .*grad"):
        engine.run({"input": torch.randn(2, 4, requires_grad=True)})


def test_wrong_type_is_named(engine: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"input 'input': expected data type float32, got bfloat16"):
        engine.run({"input": torch.zeros(2, 4, dtype=torch.bfloat16)})
    with pytest.raises(InvalidInputError, match=r"output 'output': expected an array of float32"):
        engine.run({"input": torch.zeros(2, 4)}, {"output": torch.zeros(2, 3, dtype=torch.float64)})


def test_tensor_on_another_device_is_named(engine: Any) -> None:
    with pytest.raises(InvalidInputError, match="input 'input'"):
        engine.run({"input": torch.zeros(2, 4, device="meta")})
