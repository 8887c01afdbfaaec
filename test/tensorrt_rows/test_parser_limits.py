"""Models that TensorRT's parser refuses or reads otherwise: `OnnxParser` does so too, `mlirt.compile` computes them."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import Array, CollectingLogger, new_network
from network_engines import built, cpu_config, parsed
from onnx import ModelProto, parser
from onnx_models import numbers, run_onnxruntime

import mlirt as trt
from mlirt.builder.compile import compile
from mlirt.frontend.network.onnx_parser import ErrorCode

_QLINEAR_MATMUL = """
<ir_version: 8, opset_import: ["" : 17]>
g (int8[2, 3] a) => (int8[2, 4] y)
<float sa = {0.5}, int8 zero = {0}, int8[3, 4] b = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float sb = {0.25},
 float sy = {1.0}> {
   y = QLinearMatMul (a, sa, zero, b, sb, zero, sy, zero)
}
"""
_QLINEAR_CONV = """
<ir_version: 8, opset_import: ["" : 17]>
g (int8[1, 1, 2, 2] a) => (int8[1, 1, 2, 2] y)
<float sa = {0.5}, int8 zero = {0}, int8[1, 1, 1, 1] b = {3}, float sb = {0.25}, float sy = {1.0}> {
   y = QLinearConv (a, sa, zero, b, sb, zero, sy, zero)
}
"""
_INT4 = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[4] x) => (float[4] y) <float one = {1.0}, int4 zero = {0}> {
   q = QuantizeLinear (x, one, zero)
   y = DequantizeLinear (q, one, zero)
}
"""
_INT16 = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[4] x) => (float[4] y) { whole = Cast <to: int = 5> (x) y = Cast <to: int = 1> (whole) }
"""
_SEEDED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 500] x) => (float[2, 500] y) {
   r = RandomUniformLike <low: float = 2.0, high: float = 4.0, seed: float = SEED> (x)
   y = Add (x, r)
}
"""


def refused(model: ModelProto) -> str:
    """What the parser says of a model that it does not take."""
    logger = CollectingLogger()
    network = new_network(logger)
    reader = trt.OnnxParser(network, logger)
    assert not reader.parse(model.SerializeToString())
    assert network.num_layers == 0
    assert not reader.supports_model(model.SerializeToString())[0]
    said = reader.get_error(0)
    assert said.code() is ErrorCode.UNSUPPORTED_NODE
    assert said.desc() in logger.text(trt.Severity.ERROR)
    return said.desc()


def check(found: dict[str, Array], model: ModelProto, feeds: dict[str, Array]) -> None:
    for got, want in zip(found.values(), run_onnxruntime(model, feeds), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("text", "operator", "shape"),
    [(_QLINEAR_MATMUL, "QLinearMatMul", (2, 3)), (_QLINEAR_CONV, "QLinearConv", (1, 1, 2, 2))],
)
def test_quantized_operators(text: str, operator: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#10.14: the parser names the node; the compiler, and the parser on request, compute it."""
    model = parser.parse_model(text)
    said = refused(model)
    assert f"{operator}_0" in said
    assert "MLIRT_BEYOND_TENSORRT=1" in said
    assert not trt.OnnxParser(new_network(), trt.Logger()).supports_operator(operator)
    feeds = {"a": np.arange(-2, 4 if len(shape) == 2 else 2, dtype=np.int8).reshape(shape)}
    check(compile(model, target="cpu").run(feeds), model, feeds)
    monkeypatch.setenv("MLIRT_BEYOND_TENSORRT", "1")
    logger = CollectingLogger()
    config = cpu_config(logger, trt.BuilderFlag.INT8)
    check(built(parsed(model, logger), config, logger).engine.run(feeds), model, feeds)


@pytest.mark.parametrize(("text", "kind"), [(_INT4, "INT4"), (_INT16, "INT16")])
def test_narrow_integers(text: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#28.8: refused by the parser, with the node or tensor; computed by `mlirt.compile`."""
    model = parser.parse_model(text)
    assert f"TensorRT has no type {kind}" in refused(model)
    feeds = {"x": np.array([-3, 0, 2, 5], np.float32)}
    check(compile(model, target="cpu").run(feeds), model, feeds)
    monkeypatch.setenv("MLIRT_TENSORRT_VERSION", "10.x")  # which has INT4
    taken = trt.OnnxParser(new_network(), trt.Logger()).parse(model.SerializeToString())
    assert taken == (kind == "INT4")


def drawn(seed: int, logger: CollectingLogger) -> Array:
    model = parser.parse_model(_SEEDED.replace("SEED", f"{seed}.0"))
    engine = built(parsed(model, logger), cpu_config(logger), logger)
    return engine.engine.run({"x": np.zeros((2, 500), np.float32)})["y"]


def test_seeds_count_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#11.17: seeds are ignored, with a warning; on request they count and nothing is said."""
    logger = CollectingLogger()
    first, second = drawn(1, logger), drawn(2, logger)
    said = 'TensorRT currently ignores the "seed" field in RandomUniformLike op. Random seeds will be used.'
    assert logger.text(trt.Severity.WARNING).count(said) == 2
    np.testing.assert_array_equal(first, second)
    assert 2 <= first.min() < 2.1 < 3.9 < first.max() <= 4
    monkeypatch.setenv("MLIRT_BEYOND_TENSORRT", "1")
    logger = CollectingLogger()
    assert not np.array_equal(drawn(1, logger), drawn(2, logger))
    assert "seed" not in logger.text(trt.Severity.WARNING)


def test_doubles_become_floats() -> None:
    """tensorrt-features.md#11.8: with a warning about weights; the engine takes and gives FLOAT."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (double[2] x) => (double[2] y) '
        "<double[2] w = {0.5, 4.0}> { y = Mul (x, w) }"
    )
    logger = CollectingLogger()
    engine = built(parsed(model, logger), cpu_config(logger), logger)
    warned = logger.text(trt.Severity.WARNING)
    assert "generated with DOUBLE weights, while TensorRT does not natively support DOUBLE" in warned
    assert "Attempting to cast down to FLOAT" in warned
    assert [engine.get_tensor_dtype(name) for name in ("x", "y")] == [trt.float32, trt.float32]
    x = numbers(2)
    np.testing.assert_array_equal(engine.engine.run({"x": x})["y"], x * np.array([0.5, 4], np.float32))
    assert compile(model, target="cpu").run({"x": x.astype(np.float64)})["y"].dtype == np.float64
