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
    """tensorrt-features.md#9.10: whoever reads all lines as scales can do so."""
    numbers = [np.array(pair, np.float32) for pair in ([-1.0, 0.0], [0.5, 2.0], [-0.25, 1.0])]
    text = write_cache("MinMaxCalibration", {"x": 0.5, "y": 1.0}, {"x": ChannelStatistics(*numbers)})
    assert text.decode().splitlines()[1:] == [
        "x: 3f000000",
        "y: 3f800000",
        "x[0].least: bf800000",
        "x[0].greatest: 3f000000",
        "x[0].mean: be800000",
        "x[1].least: 00000000",
        "x[1].greatest: 40000000",
        "x[1].mean: 3f800000",
    ]
    found = read_cache(text)
    assert found.scales == {"x": 0.5, "y": 1.0}
    known = found.channels["x"]
    for got, want in zip((known.least, known.greatest, known.means), numbers, strict=True):
        assert got.tolist() == want.tolist()


def test_a_tensor_may_be_called_like_a_channel() -> None:
    text = write_cache("MinMaxCalibration", {"x[0].mean": 0.5, "y": 1.0})
    assert read_cache(text).scales == {"x[0].mean": 0.5, "y": 1.0}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["x[1].mean: 3f000000"], "line 3: tensor 'x' has channel 1, expected channel 0"),
        (["x[0].least: 3f000000"], "tensor 'x' has lines 1 of least, 0 of greatest, 0 of mean, expected as many"),
        (["x[0].least: 7fc00000"], "line 3: tensor 'x\\[0\\].least' has the scale nan"),
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
