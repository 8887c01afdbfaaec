"""Fourier transforms against NumPy and onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx_models import Array, check_node, model_of, numbers, one_node, run_onnxruntime, run_reference

import mlirt
from mlirt.errors import MlirtError, UnsupportedError


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


def framed(x: Array, step: int, window: Array, onesided: int) -> Array:
    """The transform by NumPy, frame by frame."""
    starts = range(0, x.shape[1] - len(window) + 1, step)
    frames = np.stack([x[:, at : at + len(window)] * window for at in starts], 1)
    found = (np.fft.rfft if onesided else np.fft.fft)(frames, axis=2)
    return np.stack([found.real, found.imag], -1).astype(np.float32)


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("shape", [[2, 64], ["n", 64], [2, "t"], ["n", "t"]])
def test_a_signal_without_parts(shape: list[int | str], onesided: int, target: str) -> None:
    """Of fixed and of dynamic lengths, with a frame length and with a window alone."""
    window = np.hanning(16).astype(np.float32)
    for inputs in (["x", "step", "window"], ["x", "step", "window", "length"]):
        model = model_of(
            [helper.make_node("STFT", inputs, ["y"], onesided=onesided)], {"x": ("float32", shape)}, ["y"], opset=17
        )
        for name, array in (("step", np.array(7)), ("window", window), ("length", np.array(16))):
            model.graph.initializer.append(numpy_helper.from_array(array, name))
        engine = mlirt.compile(model, target)
        for count, length in ((2, 64), (3, 16), (1, 65)):
            if (count, length) == (2, 64) or ((count == 2 or shape[0] == "n") and (length == 64 or shape[1] == "t")):
                x = numbers(count, length, seed=length)
                got = engine.run({"x": x})["y"]
                want = framed(x, 7, window, onesided)
                assert (got.dtype, got.shape) == (want.dtype, want.shape)
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
                if onesided:
                    np.testing.assert_allclose(got, run_onnxruntime(model, {"x": x})[0], rtol=1e-4, atol=1e-4)


def test_a_signal_shorter_than_a_frame_is_refused() -> None:
    window = np.hanning(16).astype(np.float32)
    model = model_of([helper.make_node("STFT", ["x", "step", "window"], ["y"])], {"x": ("float32", [1, "t"])}, ["y"])
    for name, array in (("step", np.array(7)), ("window", window)):
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    engine = mlirt.compile(model, "cpu")
    with pytest.raises(MlirtError):
        engine.run({"x": numbers(1, 9)})


def test_a_dynamic_number_of_parts_is_not_supported() -> None:
    model, _ = one_node("DFT", [numbers(2, 8, 1)], 17, axis=1)
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "parts"
    with pytest.raises(UnsupportedError, match=r"DFT \(node 'node'.*1 real or 2 complex parts, is dynamic"):
        run_reference(model, {})
