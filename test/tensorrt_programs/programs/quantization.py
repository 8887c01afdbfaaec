"""Programs with INT8: quantize and dequantize layers, dynamic ranges, the four calibrators and their caches."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import struct

import numpy as np
import pycuda.driver as cuda
import tensorrt as trt
from engine_runs import Build, infer, main, numbers, same


def _constant(network, values):
    values = np.asarray(values, np.float32)
    return network.add_constant(values.shape, values).get_output(0)


def quantize_rounds_halves_to_even_and_saturates():
    x = np.array([[0.5, 1.5, 2.5, -0.5, -1.5, 126.6, 300, -300]], np.float32)
    b = Build()
    b.config.set_flag(trt.BuilderFlag.INT8)
    t = b.network.add_input("x", trt.float32, x.shape)
    q = b.network.add_quantize(t, _constant(b.network, 1.0))
    assert q.get_output(0).dtype == trt.int8 and q.axis == -1 and q.type == trt.LayerType.QUANTIZE
    d = b.network.add_dequantize(q.get_output(0), _constant(b.network, 1.0))
    assert d.type == trt.LayerType.DEQUANTIZE and d.get_output(0).dtype == trt.float32
    same(b.run(d.get_output(0), x=x), [[0, 2, 2, 0, -2, 127, 127, -128]])


def quantize_needs_the_flag():
    b = Build()
    t = b.network.add_input("x", trt.float32, (1, 4))
    q = b.network.add_quantize(t, _constant(b.network, 1.0))
    d = b.network.add_dequantize(q.get_output(0), _constant(b.network, 1.0))
    assert "INT8" in b.refused(d.get_output(0)).upper()


def quantized_convolution_per_channel():
    x, w = numbers(1, 2, 6, 6), numbers(4, 2, 3, 3, seed=1)
    scale = np.abs(w).reshape(4, -1).max(1) / 127
    b = Build()
    b.config.set_flag(trt.BuilderFlag.INT8)
    t = b.network.add_input("x", trt.float32, x.shape)
    one = _constant(b.network, 1 / 32)
    q = b.network.add_quantize(t, one)
    d = b.network.add_dequantize(q.get_output(0), one)
    kernel = _constant(b.network, w)
    scales = _constant(b.network, scale)
    wq = b.network.add_quantize(kernel, scales)
    wq.axis = 0
    wd = b.network.add_dequantize(wq.get_output(0), scales)
    wd.axis = 0
    layer = b.network.add_convolution_nd(d.get_output(0), 4, (3, 3), trt.Weights())
    layer.set_input(1, wd.get_output(0))
    found = b.run(layer.get_output(0), x=x)
    xi = np.clip(np.round(x * 32), -128, 127)
    wi = np.round(w / scale[:, None, None, None].astype(np.float32))
    wanted = np.zeros((1, 4, 4, 4))
    for i in range(3):
        for j in range(3):
            wanted += np.einsum("nchw,kc->nkhw", xi[:, :, i : i + 4, j : j + 4], wi[:, :, i, j])
    same(found, wanted * scale[:, None, None] / 32, 1e-4, 1e-5)


def dynamic_ranges_instead_of_a_calibrator():
    x = numbers(1, 3, 8, 8)
    w = numbers(4, 3, 3, 3, seed=1)
    b = Build()
    b.config.set_flag(trt.BuilderFlag.INT8)
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_convolution_nd(t, 4, (3, 3), w)
    y = layer.get_output(0)
    assert t.dynamic_range is None
    t.dynamic_range, y.dynamic_range = (-4, 4), (-20, 20)
    assert t.dynamic_range == (-4, 4)
    found = b.run(y, x=x)
    wanted = np.zeros((1, 4, 6, 6))
    for i in range(3):
        for j in range(3):
            wanted += np.einsum("nchw,kc->nkhw", x[:, :, i : i + 6, j : j + 6], w[:, :, i, j])
    assert np.abs(found - wanted).max() < 0.7 and np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > 0.999


def _calibrated(base, algorithm):
    """Builds with a calibrator of this base twice, the second time from the cache of the first."""
    batches = [numbers(2, 3, 6, 6, seed=s) for s in range(3)]
    calls = []

    class Calibrator(base):
        def __init__(self, cache=None):
            base.__init__(self)
            self.left, self.cache, self.memory = list(batches), cache, cuda.mem_alloc(batches[0].nbytes)

        def get_batch_size(self):
            calls.append("size")
            return 2

        def get_batch(self, names):
            assert names == ["x"], names
            calls.append("batch")
            if not self.left:
                return None
            cuda.memcpy_htod(self.memory, self.left.pop(0))
            return [int(self.memory)]

        def read_calibration_cache(self):
            calls.append("read")
            return self.cache

        def write_calibration_cache(self, cache):
            calls.append("write")
            self.cache = bytes(cache)

        def get_quantile(self):
            return 0.999

        def get_regression_cutoff(self):
            return 1.0

        def read_histogram_cache(self, length):
            return None

        def write_histogram_cache(self, data, length):
            return None

    def build(calibrator):
        b = Build()
        b.config.set_flag(trt.BuilderFlag.INT8)
        t = b.network.add_input("x", trt.float32, (2, 3, 6, 6))
        layer = b.network.add_convolution_nd(t, 4, (3, 3), numbers(4, 3, 3, 3, seed=7))
        layer.get_output(0).name = "y"
        b.config.int8_calibrator = calibrator
        assert b.config.int8_calibrator is calibrator
        return infer(b.engine(layer.get_output(0)), x=batches[0])[0], b.log

    first = Calibrator()
    assert first.get_algorithm() == algorithm
    found, _ = build(first)
    assert calls.count("batch") == 4 and calls.count("write") == 1 and calls.index("read") < calls.index("batch"), calls
    calls.clear()
    again, _ = build(Calibrator(first.cache))
    assert "batch" not in calls and "read" in calls, calls
    np.testing.assert_array_equal(found, again)
    lines = first.cache.decode().splitlines()
    scales = {
        k.strip(): struct.unpack(">f", bytes.fromhex(v.strip()))[0] for k, v in (li.rsplit(":", 1) for li in lines[1:])
    }
    return lines[0], scales, max(np.abs(x).max() for x in batches)


def calibrator_entropy_2():
    header, scales, most = _calibrated(trt.IInt8EntropyCalibrator2, trt.CalibrationAlgoType.ENTROPY_CALIBRATION_2)
    assert header == "TRT-8503-EntropyCalibration2" and set(scales) >= {"x", "y"}, (header, scales)
    assert 0 < scales["x"] <= 2 * most / 127


def calibrator_min_max():
    header, scales, most = _calibrated(trt.IInt8MinMaxCalibrator, trt.CalibrationAlgoType.MINMAX_CALIBRATION)
    assert header == "TRT-8503-MinMaxCalibration" and abs(scales["x"] - most / 127) < 1e-6, (header, scales)


def calibrator_entropy():
    header, scales, most = _calibrated(trt.IInt8EntropyCalibrator, trt.CalibrationAlgoType.ENTROPY_CALIBRATION)
    assert header == "TRT-8503-EntropyCalibration" and 0 < scales["x"] <= 2 * most / 127, (header, scales)


def calibrator_legacy():
    header, scales, most = _calibrated(trt.IInt8LegacyCalibrator, trt.CalibrationAlgoType.LEGACY_CALIBRATION)
    assert header == "TRT-8503-LegacyCalibration" and 0 < scales["x"] <= 2 * most / 127, (header, scales)


def int8_without_scales():
    b = Build()
    b.config.set_flag(trt.BuilderFlag.INT8)
    t = b.network.add_input("x", trt.float32, (1, 3, 8, 8))
    layer = b.network.add_convolution_nd(t, 4, (3, 3), numbers(4, 3, 3, 3))
    b.network.mark_output(layer.get_output(0))
    plan = b.builder.build_serialized_network(b.network, b.config)
    text = b.log.text(trt.ILogger.ERROR, trt.ILogger.WARNING, trt.ILogger.INTERNAL_ERROR)
    assert plan is None or "scale" in text.lower(), text


def calibration_of_dynamic_shapes():
    seen = []

    class Calibrator(trt.IInt8MinMaxCalibrator):
        def __init__(self):
            trt.IInt8MinMaxCalibrator.__init__(self)
            self.memory, self.left = cuda.mem_alloc(4 * 3 * 36 * 4), 2

        def get_batch_size(self):
            return 1

        def get_batch(self, names):
            self.left -= 1
            if self.left < 0:
                return None
            cuda.memcpy_htod(self.memory, numbers(4, 3, 6, 6, seed=self.left))
            seen.append(names)
            return [int(self.memory)]

        def read_calibration_cache(self):
            return None

        def write_calibration_cache(self, cache):
            self.text = bytes(cache).decode()

    b = Build()
    b.config.set_flag(trt.BuilderFlag.INT8)
    t = b.network.add_input("x", trt.float32, (-1, 3, 6, 6))
    layer = b.network.add_convolution_nd(t, 4, (3, 3), numbers(4, 3, 3, 3, seed=7))
    for opt in (2, 4):
        profile = b.builder.create_optimization_profile()
        profile.set_shape("x", (1, 3, 6, 6), (opt, 3, 6, 6), (8, 3, 6, 6))
        b.config.add_optimization_profile(profile)
    assert b.config.get_calibration_profile() is None
    assert b.config.set_calibration_profile(profile)
    calibrator = b.config.int8_calibrator = Calibrator()
    assert b.engine(layer.get_output(0)) is not None
    most = max(np.abs(numbers(4, 3, 6, 6, seed=s)).max() for s in (0, 1))
    line = next(li for li in calibrator.text.splitlines() if li.startswith("x:"))
    assert abs(struct.unpack(">f", bytes.fromhex(line[2:].strip()))[0] - most / 127) < 1e-6
    assert seen == [["x"], ["x"]]


if __name__ == "__main__":
    main(globals())
