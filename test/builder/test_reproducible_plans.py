"""A plan follows from the network, the target and the compiler, not from caches, processes or the order of kernels.

tensorrt-features.md#22.3.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper
from onnx_models import model_of, numbers, write_model
from quantized_chains import random_network
from recurrent_models import recurrent_model

from mlirt.runtime.plan_file import read_plan

_BUILD = """
import sys
import mlirt
target, folder, *models = sys.argv[1:]
for model in models:
    mlirt.compile(model, target=target).save(f"{folder}/{model.split('/')[-1]}.plan")
"""


def test_cpu_plans_are_the_same_from_cold_caches_in_any_order(tmp_path: Path) -> None:
    _assert_same_plans(tmp_path, "cpu")


def test_cuda_plans_are_the_same_from_cold_caches_in_any_order(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    _assert_same_plans(tmp_path, "cuda")


def _assert_same_plans(folder: Path, target: str) -> None:
    """One process builds the networks with one compiler, another the other way round with two, without any cache."""
    models = _models(folder)
    first, second = folder / "first", folder / "second"
    _build(first, target, models, {"MLIRT_JOBS": "1", "PYTHONHASHSEED": "1"})
    _build(second, target, models[::-1], {"MLIRT_JOBS": "2", "PYTHONHASHSEED": "2"})
    for model in models:
        one, other = (place / f"{model.name}.plan" for place in (first, second))
        sections = read_plan(one).sections.keys()
        differing = [name for name in sections if _section(one, name) != _section(other, name)]
        assert not differing, f"{model.name}: these parts of its plan differ: {differing}"
        assert one.read_bytes() == other.read_bytes(), model.name


def _section(plan: Path, name: str) -> bytes:
    return bytes(read_plan(plan).sections[name])


def _build(folder: Path, target: str, models: list[Path], variables: dict[str, str]) -> None:
    (folder / "cache").mkdir(parents=True)
    variables |= {"MLIRT_CACHE": str(folder / "cache"), "MLIRT_NUM_THREADS": "2", "MLIRT_ARCH": "sm_90a"}
    command = [sys.executable, "-c", _BUILD, target, str(folder), *map(str, models)]
    subprocess.run(command, check=True, cwd=folder, env=os.environ | variables)


def _models(folder: Path) -> list[Path]:
    """A convolutional, a dynamic, a recurrent and a quantised network."""
    models = {
        "cnn": _convolutions(),
        "mlp": _products(),
        "lstm": recurrent_model("LSTM")[0],
        "int8": random_network(0, "int8", 3)[0],
    }
    for name, model in models.items():
        write_model(model, folder / f"{name}.onnx")
    return [folder / f"{name}.onnx" for name in models]


def _convolutions() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["c", "v"], ["d"]),
        helper.make_node("Softmax", ["d"], ["y"], axis=1),
    ]
    weights = {"w": numbers(16, 3, 3, 3), "v": numbers(8, 16, 1, 1, seed=1)}
    return model_of(nodes, {"x": ("float32", (1, 3, 12, 12))}, ["y"], weights)


def _products() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Tanh", ["a"], ["b"]),
        helper.make_node("Sin", ["b"], ["c"]),
        helper.make_node("MatMul", ["c", "v"], ["y"]),
    ]
    weights = {"w": numbers(24, 40), "v": numbers(40, 8, seed=1)}
    return model_of(nodes, {"x": ("float32", ("n", 24))}, ["y"], weights)
