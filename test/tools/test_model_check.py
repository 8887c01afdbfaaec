"""rt-exec --checkOnly says all that a model has and nothing here can compute, and builds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import TensorProto, helper

from mlirt.tools.rt_exec import main


def _write(path: Path, *operators: str) -> None:
    names = ["x", *(f"v{k}" for k in range(len(operators) - 1)), "y"]
    nodes = [
        helper.make_node(operator, [names[k]], [names[k + 1]], name=f"n{k}") for k, operator in enumerate(operators)
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in "xy")
    model = helper.make_model(helper.make_graph(nodes, "graph", [x], [y]), ir_version=9)
    path.write_bytes(model.SerializeToString())


def test_all_that_cannot_be_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(tmp_path / "model.onnx", "Relu", "Strange", "Odd", "Strange")
    assert main([f"--onnx={tmp_path / 'model.onnx'}", "--checkOnly"]) == 1
    text = capsys.readouterr().err
    assert "Strange (ai.onnx) | 2 | there is no layer for it | register a plugin" in text
    assert "Odd (ai.onnx) | 1 |" in text
    assert "3 nodes of" in text


def test_model_that_can_be_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(tmp_path / "model.onnx", "Relu", "Sigmoid")
    assert main([f"--onnx={tmp_path / 'model.onnx'}", "--checkOnly"]) == 0
    text = capsys.readouterr().out
    assert "can be taken; nothing was built" in text
    assert "Building" not in text


def test_model_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--onnx=missing.onnx", "--checkOnly"]) == 1
    assert "--checkOnly needs a model" in capsys.readouterr().err
