"""Loggers print TensorRT's lines (tensorrt-features.md#17.11), and errors reach recorders too
(tensorrt-features.md#17.14, 17.15).
"""

from __future__ import annotations

import re

import pytest
from collecting_recorder import CollectingRecorder

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


def test_recorder_gets_code_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    recorder = CollectingRecorder()
    Reporter(trt.Logger(), recorder).error("here.py::now", UnsupportedError("x" * 200))
    assert recorder.get_error_code(0) is trt.ErrorCodeTRT.UNSUPPORTED_STATE
    assert len(recorder.get_error_desc(0)) == trt.IErrorRecorder.MAX_DESC_LENGTH == 127
    assert "[E] 10: [here.py::now] Error Code 10: Unsupported (xxx" in capsys.readouterr().err
