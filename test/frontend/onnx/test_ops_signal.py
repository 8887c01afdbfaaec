"""Fourier transforms against NumPy and onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import check_node, numbers, one_node, run_reference


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("inverse", [0, 1])
def test_transform(parts: int, inverse: int) -> None:
    x = numbers(2, 8, parts)
    (got,) = run_reference(*one_node("DFT", [x, None, np.array(1)], 20, (2,), inverse=inverse))
    signal = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
    want = (np.fft.ifft if inverse else np.fft.fft)(signal, axis=1)
    np.testing.assert_allclose(got, np.stack([want.real, want.imag], -1), atol=1e-5)


@pytest.mark.parametrize("length", [6, 8, 12])
def test_one_side_of_a_cut_or_padded_signal(length: int) -> None:
    x = numbers(2, 8, 1)
    (got,) = run_reference(*one_node("DFT", [x, np.array(length)], 17, (1,), onesided=1, axis=1))
    want = np.fft.rfft(x[..., 0], length, axis=1)
    np.testing.assert_allclose(got, np.stack([want.real, want.imag], -1), atol=1e-5)


@pytest.mark.parametrize("length", [None, 6, 7, 8, 12])
def test_a_real_signal_from_one_side(length: int | None) -> None:
    x = numbers(2, 5, 2)
    given = [] if length is None else [np.array(length)]
    (got,) = run_reference(*one_node("DFT", [x, *given], 17, (1,) if given else (), inverse=1, onesided=1, axis=1))
    want = np.fft.irfft(x[..., 0] + 1j * x[..., 1], length, axis=1)
    np.testing.assert_allclose(got, want[..., None], atol=1e-5)


def test_short_time_transform() -> None:
    window = np.hanning(16).astype(np.float32)
    check_node("STFT", [numbers(2, 64, 1), np.array(8), window], opset=17, constants=[1, 2])
