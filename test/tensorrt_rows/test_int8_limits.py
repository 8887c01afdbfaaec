"""INT8 where TensorRT has none: at borders without a scale, and in loops."""

from __future__ import annotations

import json

import numpy as np
import pytest
from layer_networks import CollectingLogger, constant, new_network
from network_engines import built, cpu_config, parsed
from onnx import parser

import mlirt as trt

INT8, OBEY = trt.BuilderFlag.INT8, trt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS
PREFER = trt.BuilderFlag.PREFER_PRECISION_CONSTRAINTS


def doubled(logger: CollectingLogger) -> trt.INetworkDefinition:
    """INT8 in, INT8 out, between them a layer of numbers."""
    network = new_network(logger)
    x = network.add_input("x", trt.int8, (4,))
    layer = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM)
    layer.get_output(0).name, layer.get_output(0).dtype = "y", trt.int8
    network.mark_output(layer.get_output(0))
    return network


@pytest.mark.parametrize("missing", ["x", "y"])
def test_a_border_without_a_range(missing: str) -> None:
    """tensorrt-features.md#5.10: the build names the tensor; with both ranges bytes are numbers by them."""
    logger = CollectingLogger()
    network = doubled(logger)
    tensors = {"x": network.get_input(0), "y": network.get_output(0)}
    for name, tensor in tensors.items():
        if name != missing:
            tensor.dynamic_range = (-127, 127)
    assert trt.Builder(logger).build_serialized_network(network, cpu_config(logger, INT8)) is None
    said = "the INT8 input of the network has no scale" if missing == "x" else "an output of INT8 stands for numbers by"
    assert f"{missing}: {said}" in logger.text()
    tensors[missing].dynamic_range = (-127, 127)
    engine = built(network, cpu_config(logger, INT8), logger)
    assert engine.engine.run({"x": np.array([-3, 0, 5, 127], np.int8)})["y"].tolist() == [-6, 0, 10, 127]


def test_a_border_with_conversions(monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#5.10: a dequantize layer behind a reshape and a quantize layer before one are scales."""
    logger = CollectingLogger()
    network = new_network(logger)
    first = network.add_shuffle(network.add_input("x", trt.int8, (4,)))
    first.reshape_dims = (2, 2)
    numbers = network.add_dequantize(first.get_output(0), constant(network, np.array(0.5, np.float32))).get_output(0)
    bytes_ = network.add_quantize(numbers, constant(network, np.array(0.25, np.float32))).get_output(0)
    last = network.add_shuffle(bytes_)
    last.reshape_dims = (4,)
    last.get_output(0).name = "y"
    network.mark_output(last.get_output(0))
    engine = built(network, cpu_config(logger, INT8), logger)
    assert engine.engine.run({"x": np.array([1, -2, 3, 100], np.int8)})["y"].tolist() == [2, -4, 6, 127]
    monkeypatch.setenv("MLIRT_BEYOND_TENSORRT", "1")  # bytes are the numbers that they are
    wide = built(doubled(logger), cpu_config(logger), logger)
    assert wide.engine.run({"x": np.array([1, -2, 3, 60], np.int8)})["y"].tolist() == [2, -4, 6, 120]


_INTEGERS = """
<ir_version: 8, opset_import: ["" : 17]>
g (int8[4] x) => (int8[4] y, float[4] z) <int8 most = {5}> {
   least = Max (x, x)
   y = Min (least, most)
   z = Cast <to: int = 1> (x)
}
"""


def test_integers_of_a_model() -> None:
    """tensorrt-features.md#5.10: what a model has as INT8 are the numbers that it says, so that no scale is missing; an
    output of floats that the program makes INT8 needs one.
    """
    logger = CollectingLogger()
    network = parsed(parser.parse_model(_INTEGERS), logger)
    engine = built(network, cpu_config(logger), logger)
    assert [engine.get_tensor_dtype(name) for name in ("x", "y", "z")] == [trt.int8, trt.int8, trt.float32]
    found = engine.engine.run({"x": np.array([-128, -3, 5, 127], np.int8)})
    assert found["y"].tolist() == [-128, -3, 5, 5]
    assert found["z"].tolist() == [-128, -3, 5, 127]
    network.get_output(1).dtype = trt.int8
    assert trt.Builder(logger).build_serialized_network(network, cpu_config(logger, INT8)) is None
    assert "z: an output of INT8 stands for numbers by its dynamic range" in logger.text()


def halved(logger: CollectingLogger) -> tuple[trt.INetworkDefinition, trt.ILayer]:
    """A matrix times a half, then three times more in a loop, all with ranges; and the layer of the loop."""
    network = new_network(logger)
    none = trt.MatrixOperation.NONE
    half = constant(network, np.eye(16, dtype=np.float32) * np.float32(0.5))
    before = network.add_matrix_multiply(network.add_input("x", trt.float32, (16, 16)), none, half, none)
    before.name = "before"
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, np.array(3, np.int32)), trt.TripLimit.COUNT)
    state = loop.add_recurrence(before.get_output(0))
    product = network.add_matrix_multiply(state.get_output(0), none, half, none)
    product.name = "product"
    state.set_input(1, product.get_output(0))
    last = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
    last.name = "y"
    network.mark_output(last)
    layers = [network.get_layer(k) for k in range(network.num_layers)]
    for tensor in (network.get_input(0), *(layer.get_output(0) for layer in layers if layer.num_outputs)):
        if tensor.dtype is trt.float32:
            tensor.dynamic_range = (-4, 4)
    return network, product


def reads_bytes(engine: trt.ICudaEngine) -> dict[str, bool]:
    """Which layers of the engine, by the inspector, read INT8."""
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    layers = [one for one in json.loads(text)["Layers"] if one["LayerType"] != "Reformat"]
    return {str(one["Name"]): "int8" in json.dumps(one["Inputs"]).lower() for one in layers}


def test_layers_of_a_loop_stay_in_floating_point() -> None:
    """tensorrt-features.md#7.17: in an INT8 build with ranges the product of the loop is FP32, the one before INT8."""
    logger = CollectingLogger()
    network, _ = halved(logger)
    config = cpu_config(logger, INT8)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    engine = built(network, config, logger)
    found = reads_bytes(engine)
    inside = [found[name] for name in found if "product" in name]
    assert inside
    assert not any(inside)
    assert found["before"]
    x = np.linspace(-4, 4, 256, dtype=np.float32).reshape(16, 16)
    np.testing.assert_allclose(engine.engine.run({"x": x})["y"], x / 16, atol=0.02)


def test_an_asked_precision_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#7.17: an error under OBEY, a warning under PREFER, and nothing is said on request."""
    said = "product: layers of a loop compute in FP32 or FP16, not in INT8"
    for flag, severity in ((OBEY, trt.Severity.ERROR), (PREFER, trt.Severity.WARNING)):
        logger = CollectingLogger()
        network, product = halved(logger)
        product.precision = trt.int8
        plan = trt.Builder(logger).build_serialized_network(network, cpu_config(logger, INT8, flag))
        assert (plan is None) == (flag is OBEY)
        assert said in logger.text(severity)
    monkeypatch.setenv("MLIRT_BEYOND_TENSORRT", "1")
    logger = CollectingLogger()
    network, product = halved(logger)
    product.precision = trt.int8
    assert built(network, cpu_config(logger, INT8, PREFER), logger)
    assert said not in logger.text(trt.Severity.WARNING)


def quantized_state(network: trt.INetworkDefinition, inside: bool) -> trt.ITensor:
    """A loop that rounds its state, or that starts with bytes."""
    scale = constant(network, np.array(0.5, np.float32))
    start: trt.ITensor = network.add_input("x", trt.float32, (4,))
    if not inside:
        start = network.add_quantize(start, scale).get_output(0)
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, np.array(3, np.int32)), trt.TripLimit.COUNT)
    state = loop.add_recurrence(start)
    tensor = state.get_output(0)
    rounded = network.add_quantize(tensor, scale).get_output(0) if inside else tensor
    state.set_input(1, network.add_dequantize(rounded, scale).get_output(0) if inside else tensor)
    return loop.add_loop_output(tensor, trt.LoopOutput.LAST_VALUE).get_output(0)


@pytest.mark.parametrize("inside", [True, False])
def test_bytes_in_a_loop(inside: bool) -> None:
    """tensorrt-features.md#7.17: quantize layers inside, and a state of INT8, are errors that name the layer."""
    logger = CollectingLogger()
    network = new_network(logger)
    network.mark_output(quantized_state(network, inside))
    assert trt.Builder(logger).build_serialized_network(network, cpu_config(logger, INT8)) is None
    assert "layers of a loop compute in FP32 or FP16, not in INT8" in logger.text()
    assert ("Quantize" if inside else "Recurrence") in logger.text()
