"""What builds and engines tell about themselves (section 17): inspector, log, error recorders."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from collecting_recorder import CollectingRecorder
from layer_networks import CollectingLogger, new_network

import mlirt as trt

DETAILED = trt.ProfilingVerbosity.DETAILED
JSON = trt.LayerInformationFormat.JSON


def convolution(logger: CollectingLogger) -> bytes:
    """A convolution of 1 to 4 images and its ReLU."""
    builder, network = trt.Builder(logger), new_network(logger)
    x = network.add_input("x", trt.float32, (-1, 4, 8, 8))
    conv = network.add_convolution_nd(x, 4, (3, 3), np.ones((4, 4, 3, 3), np.float32), np.ones(4, np.float32))
    relu = network.add_activation(conv.get_output(0), trt.ActivationType.RELU)
    conv.name, relu.name, relu.get_output(0).name = "conv", "relu", "y"
    network.mark_output(relu.get_output(0))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    config.target, config.profiling_verbosity = "cpu", DETAILED
    profile.set_shape("x", (1, 4, 8, 8), (2, 4, 8, 8), (4, 4, 8, 8))
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None, logger.text()
    return plan


@pytest.fixture(scope="module")
def built() -> tuple[bytes, CollectingLogger]:
    logger = CollectingLogger()
    return convolution(logger), logger


def opened(plan: bytes, runtime: trt.Runtime) -> trt.ICudaEngine:
    engine = runtime.deserialize_cuda_engine(plan)
    assert engine is not None
    return engine


def layers_of(inspector: trt.EngineInspector) -> list[dict[str, Any]]:
    layers: list[dict[str, Any]] = json.loads(inspector.get_engine_information(JSON))["Layers"]
    return layers


def test_tensors_lead_from_layer_to_layer(built: tuple[bytes, CollectingLogger]) -> None:
    """tensorrt-features.md#17.3, 17.4: names, dimensions and formats; what a layer reads, an input is or another layer
    gives.
    """
    engine = opened(built[0], trt.Runtime(built[1]))
    inspector, context = engine.create_engine_inspector(), engine.create_execution_context()
    assert layers_of(inspector)[-1]["Outputs"][0]["Format/Datatype"] == "N/A due to dynamic shapes"
    assert context.set_input_shape("x", (2, 4, 8, 8))
    inspector.execution_context = context
    layers = layers_of(inspector)
    conv = next(layer for layer in layers if layer["LayerType"] == "Convolution")
    assert conv["Name"] == "conv + relu"
    assert conv["TacticName"].startswith("convolution_")
    assert conv["Weights"] == {"Type": "Float", "Count": 144}
    known = {"x"}
    for layer in layers:
        for one in layer["Inputs"]:
            assert one["Name"] in known
            assert one["Location"] == "Device"
        known |= {one["Name"] for one in layer["Outputs"]}
    (last,) = layers[-1]["Outputs"]
    assert (last["Name"], last["Format/Datatype"]) == ("y", "Row major linear FP32")


def test_dimensions_of_a_context(built: tuple[bytes, CollectingLogger]) -> None:
    """tensorrt-features.md#17.4: -1 until a context knows the shapes."""
    engine = opened(built[0], trt.Runtime(built[1]))
    inspector, context = engine.create_engine_inspector(), engine.create_execution_context()
    (first,) = layers_of(inspector)[0]["Inputs"]
    assert first["Dimensions"] == [-1, 4, 8, 8]
    inspector.execution_context = context
    assert context.set_input_shape("x", (3, 4, 8, 8))
    (first,) = layers_of(inspector)[0]["Inputs"]
    assert first["Dimensions"] == [3, 4, 8, 8]


def test_fusions_are_in_the_log(built: tuple[bytes, CollectingLogger]) -> None:
    """tensorrt-features.md#17.18."""
    assert "Fused into one convolution: conv + relu" in built[1].text(trt.Severity.INFO)


def test_recorders_are_inherited(built: tuple[bytes, CollectingLogger]) -> None:
    """tensorrt-features.md#17.12, 17.14: what an object makes reports where it does, until it has a recorder of its
    own.
    """
    recorder, own, logger = CollectingRecorder(), CollectingRecorder(), CollectingLogger()
    runtime = trt.Runtime(logger)
    runtime.error_recorder = recorder
    engine = opened(built[0], runtime)
    first, second = (engine.create_execution_context() for _ in range(2))
    assert not first.set_input_shape("x", (9, 4, 8, 8))
    assert recorder.get_error_code(0) is trt.ErrorCodeTRT.INVALID_ARGUMENT
    assert "exceed min ~ max range at index 0" in logger.text()
    first.error_recorder = own
    assert not first.set_input_shape("x", (9, 4, 8, 8))
    assert (recorder.num_errors(), own.num_errors()) == (1, 1)
    assert engine.error_recorder is recorder
    assert second.error_recorder is recorder
