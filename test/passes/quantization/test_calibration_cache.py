"""The calibration cache in TensorRT's text format."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirt.errors import InvalidInputError
from mlirt.passes.quantization.calibration_cache import read_cache, write_cache


def test_the_documented_text() -> None:
    text = write_cache("EntropyCalibration2", {"input": 1 / 127, "conv 1": 0.5})
    assert text == b"TRT-8503-EntropyCalibration2\ninput: 3c010204\nconv 1: 3f000000\n"
    assert read_cache(text, "EntropyCalibration2") == {"input": pytest.approx(1 / 127), "conv 1": 0.5}


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
        assert all(scale >= 0 for scale in read_cache(content, "MinMaxCalibration").values())
