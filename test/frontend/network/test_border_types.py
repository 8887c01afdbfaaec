"""INT64 and DOUBLE of ONNX models are INT32 and FLOAT at the border for programs by TensorRT's names, but on request.

tensorrt-features.md#11.7, 11.8.
"""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import CollectingLogger, new_network
from network_engines import built, cpu_config
from onnx import parser

import mlirt as trt

_MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (int64[2] ids, double[2, 3] x, int64[2] shape) => (int64[2] next, double[2, 3] y, double[a, b] z)
<int64[1] one = {1}> {
   next = Add (ids, one)
   y = Add (x, x)
   z = Reshape (y, shape)
}
"""


def _set(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    is_beyond = version == "beyond"
    monkeypatch.setenv("MLIRT_BEYOND_TENSORRT", "1" if is_beyond else "0")
    monkeypatch.setenv("MLIRT_TENSORRT_VERSION", "" if is_beyond else version)


def border(version: str, monkeypatch: pytest.MonkeyPatch) -> tuple[trt.INetworkDefinition, list[str]]:
    """The network of a program that runs under a version or `beyond`, and the types of its inputs and outputs."""
    _set(version, monkeypatch)
    network = new_network()
    assert trt.OnnxParser(network, trt.Logger()).parse(parser.parse_model(_MODEL).SerializeToString())
    tensors = [network.get_input(index) for index in range(3)] + [network.get_output(index) for index in range(3)]
    return network, [tensor.dtype.name for tensor in tensors]


@pytest.mark.parametrize(
    ("version", "whole", "real"),
    [
        ("8.5.3", "INT32", "FLOAT"),
        ("8.6.1", "INT32", "FLOAT"),
        ("", "INT32", "FLOAT"),
        ("10.0.1", "INT64", "FLOAT"),
        ("beyond", "INT64", "DOUBLE"),
    ],
)
def test_types_are_those_of_the_version(version: str, whole: str, real: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert border(version, monkeypatch)[1] == [whole, real, whole, whole, real, real]


@pytest.mark.parametrize(
    ("version", "said"),
    [("8.5.3", "ids, x, shape, next, y, z: of another type"), ("10.0.1", "x, y, z: of another type"), ("beyond", "")],
)
def test_the_parser_warns_of_other_types(version: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _set(version, monkeypatch)
    logger = CollectingLogger()
    assert trt.OnnxParser(new_network(), logger).parse(parser.parse_model(_MODEL).SerializeToString())
    warned = logger.text(trt.Severity.WARNING)
    assert said in warned
    assert ("become the nearest that it can" in warned) == bool(said)


def test_an_engine_takes_and_gives_these_types(monkeypatch: pytest.MonkeyPatch) -> None:
    network, _ = border("8.6.1", monkeypatch)
    builder = trt.Builder(trt.Logger())
    config = builder.create_builder_config()
    config.target = "cpu"
    profile = builder.create_optimization_profile()
    profile.set_shape_input("shape", (1, 1), (3, 2), (6, 6))
    config.add_optimization_profile(profile)
    engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(builder.build_serialized_network(network, config) or b"")
    assert engine is not None
    assert engine.num_layers > 0
    names = ("ids", "x", "shape", "next", "y", "z")
    types = ["INT32", "FLOAT", "INT32", "INT32", "FLOAT", "FLOAT"]
    assert [engine.get_tensor_dtype(name).name for name in names] == types
    context = engine.create_execution_context()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    arrays = {
        "ids": np.array([4, -7], np.int32), "x": x, "shape": np.array([3, 2], np.int32),
        "next": np.zeros(2, np.int32), "y": np.zeros((2, 3), np.float32), "z": np.zeros((3, 2), np.float32),
    }  # fmt: skip
    for name, array in arrays.items():
        context.set_tensor_address(name, array.ctypes.data)
    assert context.execute_async_v3(0)
    np.testing.assert_array_equal(arrays["next"], [5, -6])
    np.testing.assert_array_equal(arrays["y"], x + x)
    np.testing.assert_array_equal(arrays["z"], (x + x).reshape(3, 2))


def test_numbers_that_int32_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#11.7: the result is the nearest that it can hold, never its lower bits; the parser says so
    before.
    """
    monkeypatch.setenv("MLIRT_TENSORRT_VERSION", "8.5.3")
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (int64[4] x) => (int64[4] y) '
        "<int64[1] factor = {1000000000}> { y = Mul (x, factor) }"
    )
    logger = CollectingLogger()
    network = new_network(logger)
    assert trt.OnnxParser(network, logger).parse(model.SerializeToString())
    assert "has been generated with INT64 weights" in logger.text(trt.Severity.WARNING)
    engine = built(network, cpu_config(logger), logger).engine
    (found,) = engine.run({"x": np.array([2, 3, -3, 5_000_000], np.int32)}).values()
    assert found.dtype == np.int32
    assert found.tolist() == [2_000_000_000, 2**31 - 1, -(2**31), 2**31 - 1]
