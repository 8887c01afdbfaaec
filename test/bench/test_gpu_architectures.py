"""bench/gpu_architectures.py: a row for each model with a cell for each architecture, and what is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from onnx import helper
from onnx_models import model_of

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench")]
import gpu_architectures  # noqa: E402

from mlirt.errors import InvalidInputError  # noqa: E402


@pytest.fixture
def model(tmp_path: Path) -> Path:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    proto = model_of(nodes, {"x": ("float32", (4, 64))}, ["y"])
    (tmp_path / "small.onnx").write_bytes(proto.SerializeToString())
    return tmp_path


def test_a_further_architecture_is_only_assembled(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLIRT_CACHE", "off")  # the command has caches of its own
    assert gpu_architectures.main([str(model), "--gpu", "sm_80+ptx,sm_89"]) == 0
    head, row = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert head == ["model", "seconds", "lowering", "sm_80+ptx", "sm_89"]
    assert row[0] == "small"
    assert [cell.split()[:2] for cell in row[3:]] == [["ok", "1"]] * 2
    assert float(row[4].split()[2]) < 1


def test_what_is_wrong_is_told(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLIRT_CACHE", "off")
    (model / "small.onnx").write_bytes(b"no model")
    assert gpu_architectures.main([str(model), "--gpu", "sm_75"]) == 1
    assert "WRONG 1\n  sm_75: InvalidModelError: " in capsys.readouterr().out
    with pytest.raises(InvalidInputError, match="is not made"):
        gpu_architectures.main([str(model), "--gpu", "sm_12"])
