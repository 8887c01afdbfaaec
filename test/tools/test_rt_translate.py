"""rt-translate: ONNX to IR text with its weights beside it, and the pipeline as text."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from array import array
from pathlib import Path

import numpy as np
import pytest
from interrupted_process import restore_interrupts
from onnx import TensorProto, helper, numpy_helper

from mlirt.passes.pipeline_text import parse_pipeline
from mlirt.tools import rt_opt
from mlirt.tools.rt_translate import main


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = relu(x + w) with 4 KiB of weights."""
    weights = np.arange(1024, dtype=np.float32).reshape(2, 512)
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["x", "w"], ["s"], name="add1"),
            helper.make_node("Relu", ["s"], ["y"], name="relu1"),
        ],
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 512])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 512])],
        [numpy_helper.from_array(weights, "w")],
    )
    path = tmp_path / "network.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    path.write_bytes(model.SerializeToString())
    return path


def test_import_writes_text_and_weights(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out" / "network.mlir"
    output.parent.mkdir()
    assert main(["--import-onnx", str(model), "-o", str(output)]) == 0
    text = output.read_text(encoding="utf-8")
    assert 'loc("relu1")' in text
    assert "#trt.weights<" in text
    assert len(text) < 4096
    assert output.with_suffix(".safetensors").stat().st_size > 4096
    assert sorted(path.name for path in output.parent.iterdir()) == ["network.mlir", "network.safetensors"]
    assert rt_opt.main([str(output), "--print-debuginfo"]) == 0
    assert capsys.readouterr().out == text


def test_rt_opt_reads_the_model_itself(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_opt.main([str(model)]) == 0
    assert "trt.activation relu" in capsys.readouterr().out


def test_damaged_model(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.write_bytes(model.read_bytes()[:100])
    assert main(["--import-onnx", str(model)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"{model}: error: ")
    assert len(error.splitlines()) == 1


def test_name_that_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--import-onnx", str(tmp_path / "network.pt")]) == 1
    assert "ends in .onnx" in capsys.readouterr().err


def test_damaged_weights(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "again.mlir"
    assert main(["--import-onnx", str(model), "-o", str(output)]) == 0
    weights = output.with_suffix(".safetensors")
    weights.write_bytes(weights.read_bytes()[:-8])
    assert rt_opt.main([str(output)]) == 1
    assert "expected a safetensors file" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_pipeline_is_one_that_rt_opt_reads(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--print-pipeline", "--target", target, "--to", "fusion"]) == 0
    text = capsys.readouterr().out.strip()
    assert text.endswith("verify-legality{phase=fusion}")
    assert parse_pipeline(text)


def test_flags_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--import-onnx", "--print-pipeline"]) == 1
    assert main([]) == 1
    assert capsys.readouterr().err.count("(rt-translate --help lists the flags)\n") == 2


def test_an_interrupt_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    """It waits for its input, a pipe that has no end yet."""
    source = tmp_path / "endless.mlir"
    os.mkfifo(source)
    command = [
        str(Path(sys.executable).with_name("rt-translate")),
        "--emit-python=numba-cpu",
        str(source),
        "-o",
        "kernels.py",
    ]
    tool = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=restore_interrupts,
    )
    pipe = _opened_for_writing(source)
    os.write(pipe, b"func.func @main() {")
    _wait_until_asleep(tool.pid, pipe)
    start = time.monotonic()
    tool.send_signal(signal.SIGINT)
    text, _ = tool.communicate(timeout=20)
    os.close(pipe)
    assert time.monotonic() - start < 4.0  # other tests run beside this one
    assert (tool.returncode, text) == (130, "rt-translate: interrupted\n")
    assert list(tmp_path.iterdir()) == [source]


def _opened_for_writing(fifo: Path) -> int:
    """The writing end, once another process has opened the file for reading."""
    for _ in range(1200):
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"no process has opened {fifo} for reading within a minute")


def _wait_until_asleep(pid: int, pipe: int) -> None:
    """Until the process has read what is in the pipe and waits for more.

    An interrupt that comes between two calls of read(2) is seen after the second alone, which has no end here.
    """
    for _ in range(1200):
        unread = array("i", [0])
        fcntl.ioctl(pipe, termios.FIONREAD, unread)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if not unread[0] and state == "S":
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} does not wait for its input within a minute")
