"""rt-exec --int8: caches are read and written as trtexec does, pictures calibrate, a target keeps layers in float."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_models import write_model
from two_convolutions import TENSORS, network, samples

import mlirt
from mlirt.passes.quantization.calibration_cache import write_cache
from mlirt.tools import rt_exec


@pytest.fixture
def model(tmp_path: Path) -> str:
    write_model(network(), tmp_path / "a.onnx")
    np.save(tmp_path / "samples.npy", samples())
    return str(tmp_path / "a.onnx")


def run(*arguments: str) -> int:
    return rt_exec.main(["--target=cpu", "--buildOnly", *arguments])


def test_data_make_a_cache_and_the_cache_is_used_again(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache, page = tmp_path / "a.calib", tmp_path / "a.html"
    flags = [f"--onnx={model}", "--int8", f"--calib={cache}", f"--calibData={tmp_path / 'samples.npy'}"]
    assert run(*flags, "--calibMethod=minmax", f"--calibReport={page}") == 0
    assert "Calibrated 4 tensors" in capsys.readouterr().out
    written = mlirt.Calibration.load(cache)
    assert (written.algorithm, list(written.scales)) == ("MinMaxCalibration", TENSORS)
    assert page.read_text(encoding="utf-8").count("<svg") == len(TENSORS)
    assert run(*flags) == 0
    assert "Calibrated" not in capsys.readouterr().out, "the cache is there"
    assert run(*flags[:3]) == 0


def test_shapes_while_calibrating(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """tensorrt-features.md#9.18, 30.2: a network of any size is calibrated with pictures of one size."""
    write_model(network(batch="n"), tmp_path / "any.onnx")
    np.save(tmp_path / "samples.npy", samples())
    shapes = [f"--{which}ShapesCalib=x:{count}x3x8x8" for which, count in (("min", 1), ("opt", 4), ("max", 8))]
    flags = [f"--onnx={tmp_path / 'any.onnx'}", "--int8", f"--calibData={tmp_path / 'samples.npy'}"]
    assert run(*flags, *shapes) == 0
    assert "Calibrated 4 tensors" in capsys.readouterr().out
    assert run(*flags, *shapes[:2]) == 1
    assert "go together" in capsys.readouterr().err
    assert run(*flags, *shapes[:2], "--maxShapesCalib=x:8x3") == 1
    assert "--maxShapesCalib: expected 4 dimensions for input 'x'" in capsys.readouterr().err


def test_a_target_keeps_layers_in_float(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = tmp_path / "rough.calib"
    cache.write_bytes(write_cache("MinMaxCalibration", {"x": 0.03, "/conv1/out_0": 0.2, "relu_1": 20.0, "y": 1.0}))
    flags = ["--int8", f"--calib={cache}", f"--calibData={tmp_path / 'samples.npy'}", "--accuracyTarget=0.95"]
    assert run(f"--onnx={model}", *flags, f"--saveEngine={tmp_path / 'mixed.plan'}") == 0
    out = capsys.readouterr().out
    assert "stays in float" in next(line for line in out.splitlines() if "] conv2" in line)
    mixed = mlirt.load(tmp_path / "mixed.plan").run({"x": samples()})["y"]
    exact = mlirt.compile(network(), "cpu").run({"x": samples()})["y"]
    assert np.sqrt(np.square(mixed - exact).mean() / np.square(exact).mean()) < 0.05


def test_a_target_keeps_layers_from_half_precision(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Demand 1: layers stay in float32 by what they were measured to lose in half precision."""
    data = f"--calibData={tmp_path / 'samples.npy'}"
    assert run(f"--onnx={model}", "--fp16", data, "--accuracyTarget=0.99999") == 0
    out = capsys.readouterr().out
    assert "stays in float" in out
    assert float(out.split("accuracy: ")[1].split("%")[0]) >= 99.999
    assert run(f"--onnx={model}", "--fp16", data, "--accuracyTarget=0.9") == 0
    assert "stays in float" not in capsys.readouterr().out


@pytest.mark.parametrize("flags", [["--int8"], ["--best"]])
def test_ranges_of_random_inputs(
    model: str, tmp_path: Path, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """tensorrt-features.md#30.11: without a calibration an engine is built all the same, to be timed, and the log says
    so.
    """
    assert run(f"--onnx={model}", *flags, f"--saveEngine={tmp_path / 'a.plan'}") == 0
    assert "ranges are those of random inputs" in capsys.readouterr().out
    assert np.isfinite(mlirt.load(tmp_path / "a.plan").run({"x": samples()})["y"]).all()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--calib=a"], "--calib is for INT8: add --int8"),
        (["--fp16", "--calib=a"], "--calib is for INT8: add --int8"),
        (["--accuracyTarget=0.9"], "--accuracyTarget is for INT8: add --int8 or --fp16"),
        (["--fp16", "--accuracyTarget=0.9"], "--accuracyTarget needs samples to measure with: add --calibData=FOLDER"),
        (["--int8", "--calib=nowhere"], "calibration cache nowhere: No such file or directory"),
        (["--int8", "--calibData=nowhere"], "calibration data 'nowhere': there is no such file or folder"),
    ],
)
def test_flags_that_lack_something(
    model: str, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """tensorrt-features.md#9.3, 9.4."""
    assert run(f"--onnx={model}", *flags) == 1
    assert message in capsys.readouterr().err
