"""rt-exec --exportTriton writes a model repository whose model.py answers as Triton's Python back end calls it."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from dense_network import dense_network

import mlirt
from mlirt.errors import InvalidInputError
from mlirt.runtime.engine import Engine
from mlirt.runtime.engine_interface import TensorDescription
from mlirt.serve.batching.signature import Signature
from mlirt.serve.triton.repository import config_text, export_repository
from mlirt.tools.rt_exec import main

Array = np.ndarray[Any, np.dtype[Any]]


class Tensor:
    """What Triton wraps arrays in."""

    def __init__(self, name: str, array: Array) -> None:
        self._name, self._array = name, array

    def name(self) -> str:
        return self._name

    def as_numpy(self) -> Array:
        return self._array


class Request:
    """Inputs, and the outputs that are wanted."""

    def __init__(self, wanted: list[str], **inputs: Array) -> None:
        self.inputs = [Tensor(name, array) for name, array in inputs.items()]
        self._wanted = wanted

    def requested_output_names(self) -> list[str]:
        return self._wanted


class Response:
    """Outputs, or an error."""

    def __init__(self, output_tensors: list[Tensor], error: str | None = None) -> None:
        self.outputs = {tensor.name(): tensor.as_numpy() for tensor in output_tensors}
        self.error = error


def input_of(request: Request, name: str) -> Tensor:
    return next(one for one in request.inputs if one.name() == name)


@pytest.fixture
def back_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the module that Triton's process has."""
    module: Any = ModuleType("triton_python_backend_utils")
    module.Tensor, module.InferenceResponse, module.TritonError = Tensor, Response, str
    module.get_input_tensor_by_name = input_of
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", module)


def started(folder: Path, config: dict[str, Any]) -> Any:
    """The model as Triton starts it."""
    spec = importlib.util.spec_from_file_location("model", folder / "1" / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.TritonPythonModel()
    model.initialize(
        {
            "model_config": json.dumps(config),
            "model_repository": str(folder),
            "model_version": "1",
            "model_name": "dense",
        }
    )
    return model


@pytest.mark.usefixtures("back_end")
def test_the_model_of_a_repository_answers_requests_together(dense: Engine, dense_plan: Path, tmp_path: Path) -> None:
    repository = tmp_path / "models"
    assert main([f"--loadEngine={dense_plan}", f"--exportTriton={repository}", "--buildOnly"]) == 0
    text = (repository / "dense" / "config.pbtxt").read_text(encoding="utf-8")
    assert text == (
        'name: "dense"\n'
        'backend: "python"\n'
        "max_batch_size: 32\n"
        'input [ { name: "x" data_type: TYPE_FP32 dims: [8] } ]\n'
        'output [ { name: "y" data_type: TYPE_FP32 dims: [4] } ]\n'
        "dynamic_batching { max_queue_delay_microseconds: 0 }\n"
        "instance_group [ { count: 1 kind: KIND_CPU } ]\n"
    )
    model = started(repository / "dense", {"max_batch_size": int(re.findall(r"max_batch_size: (\d+)", text)[0])})
    x = np.random.default_rng(5).uniform(-1, 1, (4, 8)).astype(np.float32)
    parts = [x[:1], x[1:3], np.zeros((1, 9), np.float32), x[3:]]
    responses = model.execute([Request(["y"], x=part) for part in parts])
    found = [response.outputs.get("y") for response in responses]
    assert "axis 1 of input 'x' is 9; expected 8" in responses[2].error
    expected = dense.run({"x": x})["y"]
    assert np.allclose(np.concatenate([found[0], found[1], found[3]]), expected, atol=1e-6)
    assert model._batcher.use.batches == {4: 1}
    assert model.execute([Request([], x=x)])[0].outputs == {}
    model.finalize()


def test_profiles_decide_about_batches(tmp_path: Path) -> None:
    engine = mlirt.compile(dense_network(), "cpu", profiles={"x": [(1, 8), (4, 8), (48, 8)]}, threads=1)
    assert isinstance(engine, Engine)
    text = (export_repository(engine, tmp_path, "net") / "config.pbtxt").read_text(encoding="utf-8")
    assert "max_batch_size: 48\n" in text
    assert "preferred_batch_size: [4]" in text


def test_networks_without_a_batch_have_all_dimensions() -> None:
    fixed = Signature(
        "fixed", (TensorDescription("x", "int64", ("t", 3)),), (TensorDescription("y", "float16", ()),), ()
    )
    text = config_text(fixed, 'a "b"', 0, "cuda")
    assert 'name: "a \\"b\\""\n' in text
    assert "max_batch_size: 0" in text
    assert "dims: [-1, 3]" in text
    assert 'name: "y" data_type: TYPE_FP16 dims: [1] reshape: { shape: [ ] }' in text
    assert "dynamic_batching" not in text
    assert "KIND_GPU" in text


def test_what_triton_cannot_be_told_is_refused(dense: Engine, tmp_path: Path) -> None:
    half = Signature("half", (TensorDescription("x", "bfloat16", ("n", 3)),), ())
    with pytest.raises(InvalidInputError, match="input 'x' is bfloat16"):
        config_text(half, "half", 0, "cpu")
    with pytest.raises(InvalidInputError, match="is no name for a model"):
        export_repository(dense, tmp_path, "../up")
