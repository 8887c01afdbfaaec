"""tensorrt-features.md#17.3, 17.4, 24.6 and 30.14: the inspector's JSON as tools read it that were written for
TensorRT's.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from layer_networks import CollectingLogger, constant, new_network
from network_engines import built, cpu_config, run

import mlirt as trt

WEIGHTS = {"Int8": 1, "Half": 2, "Float": 4, "Int32": 4}
FORMATS = {
    "Row major linear FP32": 4,
    "Row major linear FP16 format": 2,
    "Row major Int8 format": 1,
    "Row major linear Int32": 4,
    "Row major linear BOOL": 1,
    "Thirty-two wide channel vectorized row major Int8 format": 1,
    "Thirty-two wide channel vectorized row major FP32 format": 4,
}
"""Texts that TensorRT Engine Explorer knows, with the bytes of an element."""


def images(shape: tuple[int, ...]) -> tuple[trt.INetworkDefinition, CollectingLogger]:
    """Convolution with bias and ReLU, a pooling, two functions of each element, a softmax."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, shape)
    conv = network.add_convolution_nd(x, 4, (3, 3), np.ones((4, 8, 3, 3), np.float32), np.ones(4, np.float32))
    conv.name, conv.padding_nd = "conv1", (1, 1)
    relu = network.add_activation(conv.get_output(0), trt.ActivationType.RELU)
    relu.name = "relu1"
    pool = network.add_pooling_nd(relu.get_output(0), trt.PoolingType.MAX, (2, 2))
    pool.name, pool.stride_nd = "pool1", (2, 2)
    soft = network.add_softmax(pool.get_output(0))
    half = constant(network, np.full((1, 1, 1, 1), 0.5, np.float32))
    scaled = network.add_elementwise(soft.get_output(0), half, trt.ElementWiseOperation.PROD)
    curve = network.add_unary(scaled.get_output(0), trt.UnaryOperation.EXP)
    soft.name, scaled.name, curve.name = "soft", "scaled", "curve"
    curve.get_output(0).name = "y"
    network.mark_output(curve.get_output(0))
    return network, logger


def told(engine: trt.ICudaEngine, context: trt.IExecutionContext | None = None) -> dict[str, Any]:
    inspector = engine.create_engine_inspector()
    inspector.execution_context = context
    return json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))


@pytest.fixture(scope="module")
def layers() -> list[dict[str, Any]]:
    network, logger = images((1, 8, 6, 6))
    config = cpu_config(logger)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    return told(built(network, config, logger))["Layers"]


def test_every_layer_has_what_readers_want(layers: list[dict[str, Any]]) -> None:
    """tensorrt-features.md#17.3, 30.14: known formats, lengths of the network's tensors, weights with a type and a
    count.
    """
    for layer in layers:
        assert {"Name", "LayerType", "ParameterType", "TacticName", "TacticValue", "Inputs", "Outputs"} <= set(layer)
        assert layer["LayerType"][0].isupper()
        for tensor in (*layer["Inputs"], *layer["Outputs"]):
            assert tensor["Format/Datatype"] in FORMATS
            assert len(tensor["Dimensions"]) == 4
        for key in ("Weights", "Bias"):
            assert layer.get(key, {"Type": "Float"})["Type"] in WEIGHTS


def test_vectors_of_a_width_that_tensorrt_lacks(layers: list[dict[str, Any]]) -> None:
    """tensorrt-features.md#5.5, 30.14: they have the words of the next wider ones, and tell their own width."""
    tensors = [tensor for layer in layers for tensor in (*layer["Inputs"], *layer["Outputs"])]
    vectors = [tensor for tensor in tensors if tensor["Format/Datatype"].startswith("Thirty-two wide")]
    assert vectors
    assert all(tensor["ChannelsPerVector"] in (8, 16) for tensor in vectors)
    assert all("ChannelsPerVector" not in tensor for tensor in tensors if tensor not in vectors)


def test_a_convolution(layers: list[dict[str, Any]]) -> None:
    """tensorrt-features.md#17.3."""
    (found,) = [layer for layer in layers if layer["ParameterType"] == "Convolution"]
    wanted = {
        "Kernel": [3, 3],
        "Stride": [1, 1],
        "Dilation": [1, 1],
        "PrePadding": [1, 1],
        "PostPadding": [1, 1],
        "PaddingMode": "kEXPLICIT_ROUND_DOWN",
        "OutMaps": 4,
        "Groups": 1,
        "Weights": {"Type": "Float", "Count": 288},
        "Bias": {"Type": "Float", "Count": 4},
        "HasBias": 1,
        "HasReLU": 1,
        "Activation": "RELU",
        "HasSparseWeights": 0,
    }
    assert {key: found[key] for key in wanted} == wanted
    assert found["Inputs"][0]["Dimensions"] == [1, 8, 6, 6]


def test_a_pooling(layers: list[dict[str, Any]]) -> None:
    """tensorrt-features.md#17.3: also where it is computed with the convolution before it."""
    pools = [layer for layer in layers if "pool1" in layer["Name"] and layer["LayerType"] != "Reformat"]
    assert pools
    if pools[0]["ParameterType"] == "Pooling":
        assert (pools[0]["PoolingType"], pools[0]["WindowSize"], pools[0]["Stride"]) == ("MAX", [2, 2], [2, 2])


def test_functions_of_each_element(layers: list[dict[str, Any]]) -> None:
    """tensorrt-features.md#24.6: the fields of PointWiseV2; where a softmax computes them too, they are its operations.
    """
    last = next(layer for layer in layers if "curve" in layer["Name"])
    assert last["NbOperations"] == len(last["Operations"]) == 2
    assert last["Operations"] == ["var0 = prod(arg0, literal0)", "var1 = exp(var0)"]
    if last["ParameterType"] == "PointWise":
        assert last["LayerType"] == "PointWiseV2"
        assert (last["NbInputArgs"], last["InputArgs"], last["NbLiterals"]) == (1, ["arg0"], 1)
        assert last["OutputVars"] == ["var1"]


def test_lengths_that_a_context_settles() -> None:
    """tensorrt-features.md#17.4: -1 and no format without a context."""
    network, logger = images((-1, 8, 6, 6))
    config = cpu_config(logger, shapes={"x": ((1, 8, 6, 6), (2, 8, 6, 6), (4, 8, 6, 6))})
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    engine = built(network, config, logger)
    context = engine.create_execution_context()
    assert context.set_input_shape("x", (3, 8, 6, 6))
    for found, batch in ((told(engine), -1), (told(engine, context), 3)):
        lengths = [tensor["Dimensions"] for layer in found["Layers"] for tensor in layer["Outputs"]]
        assert lengths
        assert {shape[0] for shape in lengths} == {batch}
        formats = {tensor["Format/Datatype"] for layer in found["Layers"] for tensor in layer["Outputs"]}
        assert (formats == {"N/A due to dynamic shapes"}) == (batch == -1)
        assert batch == -1 or formats <= set(FORMATS)


def test_layers_of_each_profile() -> None:
    """tensorrt-features.md#17.5: counted once for each, those of later ones by their number; version 10 counts them
    once.
    """
    network, logger = images((-1, 8, 6, 6))
    builder, config = trt.Builder(logger), cpu_config(logger)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    for batch in (1, 4):
        profile = builder.create_optimization_profile()
        profile.set_shape("x", *[(batch, 8, 6, 6)] * 3)
        config.add_optimization_profile(profile)
    engine = built(network, config, logger)
    names = [layer["Name"] for layer in told(engine)["Layers"]]
    count = len(names) // 2
    assert engine.num_layers == len(names) == 2 * len(engine.engine.layers)
    assert names[count:] == [f"{name} [profile 1]" for name in names[:count]]
    inspector = engine.create_engine_inspector()
    one = json.loads(inspector.get_layer_information(count, trt.LayerInformationFormat.JSON))
    assert one["Name"] == f"{names[0]} [profile 1]"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLIRT_TENSORRT_VERSION", "10.0.1")
        assert engine.num_layers == count
        assert [layer["Name"] for layer in told(engine)["Layers"]] == names[:count]


@pytest.mark.parametrize("verbosity", [trt.ProfilingVerbosity.DETAILED, trt.ProfilingVerbosity.LAYER_NAMES_ONLY])
def test_the_name_of_functions_of_each_element(verbosity: trt.ProfilingVerbosity) -> None:
    """tensorrt-features.md#24.2: inspector and profiler say PWN for several in a launch, and the name of one."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (2, 8))
    double = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM)
    rectified = network.add_activation(double.get_output(0), trt.ActivationType.RELU)
    soft = network.add_softmax(rectified.get_output(0))
    last = network.add_unary(network.add_input("z", trt.float32, (3,)), trt.UnaryOperation.NEG)
    double.name, rectified.name, soft.name, last.name = "add1", "relu1", "soft1", "neg1"
    for tensor in (rectified.get_output(0), soft.get_output(0), last.get_output(0)):
        network.mark_output(tensor)
    config = cpu_config(logger)
    config.profiling_verbosity = verbosity
    engine = built(network, config, logger)
    told = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    names = [layer if isinstance(layer, str) else layer["Name"] for layer in told["Layers"]]
    assert sorted(names) == ["PWN(add1, relu1)", "neg1", "soft1"]
    context, recorder = engine.create_execution_context(), Recorder()
    context.profiler = recorder
    assert run(context, {"x": np.ones((2, 8), np.float32), "z": np.ones(3, np.float32)}) is not None
    assert recorder.names == names


@pytest.mark.parametrize("depth", [0, 1])
def test_a_loop_is_one_layer(depth: int) -> None:
    """tensorrt-features.md#7.18: the profiler and the inspector list the same; what the iterations launch is inside."""
    logger = CollectingLogger()
    network = new_network(logger)
    x, count = network.add_input("x", trt.float32, (4,)), network.add_input("n", trt.int32, ())

    def repeated(start: trt.ITensor, inner: int) -> trt.ITensor:
        loop = network.add_loop()
        loop.add_trip_limit(count, trt.TripLimit.COUNT)
        state = loop.add_recurrence(start)
        value = repeated(state.get_output(0), inner - 1) if inner else state.get_output(0)
        double = network.add_elementwise(value, value, trt.ElementWiseOperation.SUM)
        double.name = f"double{inner}"
        state.set_input(1, network.add_softmax(double.get_output(0)).get_output(0))
        output = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE)
        output.name = f"loop{inner}"
        return output.get_output(0)

    first = network.add_unary(x, trt.UnaryOperation.EXP)
    last = network.add_unary(repeated(first.get_output(0), depth), trt.UnaryOperation.NEG)
    first.name, last.name = "exp", "neg"
    network.mark_output(last.get_output(0))
    config = cpu_config(logger)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    engine = built(network, config, logger)
    told = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    assert [layer["Name"] for layer in told["Layers"]] == ["exp", f"loop{depth}", "neg"]
    assert engine.num_layers == 3
    alone = engine.create_engine_inspector().get_layer_information(1, trt.LayerInformationFormat.JSON)
    loop = told["Layers"][1]
    assert json.loads(alone) == loop
    assert (loop["LayerType"], len(loop["Inputs"]) > 0, len(loop["Outputs"]) > 0) == ("Loop", True, True)
    inside = [name for layer in loop["Body"] for name in layer["Name"].split(" + ")]
    assert {f"double{inner}" for inner in range(depth + 1)} <= set(inside)
    recorder = Recorder()
    context = engine.create_execution_context()
    context.profiler = recorder
    assert run(context, {"x": np.ones(4, np.float32), "n": np.array(3, np.int32)}) is not None
    assert recorder.names == ["exp", f"loop{depth}", "neg"]


class Recorder(trt.IProfiler):
    """Keeps the names that it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        self.names.append(layer_name)
