"""Loggers print TensorRT's lines (row 17.11), and errors reach recorders too (rows 17.14, 17.15)."""

from __future__ import annotations

import re

import pytest

import mlirt as trt
from mlirt.errors import UnsupportedError
from mlirt.tensorrt.reporting import Reporter


def test_line_and_stream(capsys: pytest.CaptureFixture[str]) -> None:
    logger = trt.Logger(trt.Logger.INFO)
    logger.log(trt.Logger.INFO, "hello")
    logger.log(trt.Logger.VERBOSE, "not this")
    logger.log(trt.Logger.WARNING, "careful")
    seen = capsys.readouterr()
    assert re.fullmatch(r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[TRT\] \[I\] hello\n", seen.out)
    assert seen.err.endswith("[TRT] [W] careful\n")


class Recorder(trt.IErrorRecorder):
    """Keeps errors in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[tuple[trt.ErrorCodeTRT, str]] = []

    def num_errors(self) -> int:
        return len(self.errors)

    def get_error_code(self, arg0: int) -> trt.ErrorCodeTRT:
        return self.errors[arg0][0]

    def get_error_desc(self, arg0: int) -> str:
        return self.errors[arg0][1]

    def has_overflowed(self) -> bool:
        return False

    def clear(self) -> None:
        self.errors.clear()

    def report_error(self, arg0: trt.ErrorCodeTRT, arg1: str) -> bool:
        self.errors.append((arg0, arg1))
        return True


def test_recorder_gets_code_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    recorder = Recorder()
    Reporter(trt.Logger(), recorder).error("here.py::now", UnsupportedError("x" * 200))
    assert recorder.get_error_code(0) is trt.ErrorCodeTRT.UNSUPPORTED_STATE
    assert len(recorder.get_error_desc(0)) == trt.IErrorRecorder.MAX_DESC_LENGTH == 127
    assert "[E] 10: [here.py::now] Error Code 10: Unsupported (xxx" in capsys.readouterr().err
