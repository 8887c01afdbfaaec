"""The calibration cache in TensorRT's text format."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirt.errors import InvalidInputError
from mlirt.passes.quantization.calibration_cache import read_cache, write_cache
from mlirt.passes.quantization.channel_statistics import ChannelStatistics


def test_the_documented_text() -> None:
    text = write_cache("EntropyCalibration2", {"input": 1 / 127, "conv 1": 0.5})
    assert text == b"TRT-8503-EntropyCalibration2\ninput: 3c010204\nconv 1: 3f000000\n"
    assert read_cache(text, "EntropyCalibration2").scales == {"input": pytest.approx(1 / 127), "conv 1": 0.5}


def test_channels_follow_in_lines_of_the_same_form() -> None:
    """Row 9.10: whoever reads all lines as scales can do so."""
    known = ChannelStatistics(np.array([0.5, 0.25], np.float32), np.array([-1.0, 2.0], np.float32))
    text = write_cache("MinMaxCalibration", {"x": 0.5, "y": 1.0}, {"x": known})
    assert text.decode().splitlines()[1:] == [
        "x: 3f000000",
        "y: 3f800000",
        "x[0]: 3f000000",
        "x[0].mean: bf800000",
        "x[1]: 3e800000",
        "x[1].mean: 40000000",
    ]
    found = read_cache(text)
    assert found.scales == {"x": 0.5, "y": 1.0}
    assert found.channels["x"].scales.tolist() == [0.5, 0.25]
    assert found.channels["x"].means.tolist() == [-1.0, 2.0]


def test_a_tensor_may_be_called_like_a_channel() -> None:
    text = write_cache("MinMaxCalibration", {"x[0]": 0.5, "y": 1.0})
    assert read_cache(text).scales == {"x[0]": 0.5, "y": 1.0}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["x[1]: 3f000000"], "line 3: tensor 'x' has channel 1, expected channel 0"),
        (["x[0]: 3f000000"], "tensor 'x' has scales of 1 channels and means of 0"),
        (["x[0]: bf800000", "x[0].mean: 3f800000"], "no scale below 0"),
    ],
)
def test_damaged_channels_are_refused(lines: list[str], message: str) -> None:
    content = "\n".join(["TRT-8503-MinMaxCalibration", "x: 3f000000", *lines]).encode()
    with pytest.raises(InvalidInputError, match=message):
        read_cache(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected text"),
        (b"\xff\xfe", "expected text"),
        (b"hello\n", "first line such as TRT-8503-MinMaxCalibration"),
        (b"TRT-8503-EntropyCalibration2\n", "made by EntropyCalibration2 of version 8503, this calibrator is MinMax"),
        (b"TRT-7200-MinMaxCalibration\n", "of version 7200"),
        (b"TRT-8503-MinMaxCalibration\nx: 12\n", "line 2: expected 'tensor: 3c010a14', got 'x: 12'"),
        (b"TRT-8503-MinMaxCalibration\n\nx: 7fc00000\n", "line 3: tensor 'x' has the scale nan"),
        (b"TRT-8503-MinMaxCalibration\nx: bf800000\n", "line 2: tensor 'x' has the scale -1.0"),
    ],
)
def test_a_wrong_file_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_cache(content, "MinMaxCalibration")


@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with suppress(InvalidInputError):
        assert all(scale >= 0 for scale in read_cache(content, "MinMaxCalibration").scales.values())
