"""Engines of networks by TensorRT's names: built for the CPU, run on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from layer_networks import Array, CollectingLogger, new_network

import mlirt as trt

Ranges = Mapping[str, tuple[Sequence[int], Sequence[int], Sequence[int]]]


def parsed(model: onnx.ModelProto, logger: trt.ILogger | None = None) -> trt.INetworkDefinition:
    """The network that `OnnxParser` makes of a model."""
    network = new_network(logger)
    assert trt.OnnxParser(network, logger or trt.Logger()).parse(model.SerializeToString())
    return network


def cpu_config(logger: trt.ILogger, *flags: trt.BuilderFlag, shapes: Ranges | None = None) -> trt.IBuilderConfig:
    """A configuration for the CPU, with one profile of input shapes where there are some."""
    return config_for("cpu", logger, *flags, shapes=shapes)


def config_for(
    target: str, logger: trt.ILogger, *flags: trt.BuilderFlag, shapes: Ranges | None = None
) -> trt.IBuilderConfig:
    """The same for any target."""
    builder = trt.Builder(logger)
    config = builder.create_builder_config()
    config.target = target
    for flag in flags:
        config.set_flag(flag)
    if shapes:
        profile = builder.create_optimization_profile()
        for name, (low, usual, high) in shapes.items():
            profile.set_shape(name, low, usual, high)
        config.add_optimization_profile(profile)
    return config


def built(network: trt.INetworkDefinition, config: trt.IBuilderConfig, logger: CollectingLogger) -> trt.ICudaEngine:
    """The engine; an assertion that shows the log where it cannot be built."""
    return opened(plan_of(network, config, logger), logger)


def plan_of(network: trt.INetworkDefinition, config: trt.IBuilderConfig, logger: CollectingLogger) -> bytes:
    """The plan of the engine."""
    plan = trt.Builder(logger).build_serialized_network(network, config)
    assert plan is not None, logger.text()
    return bytes(plan)


def opened(plan: bytes, logger: CollectingLogger) -> trt.ICudaEngine:
    """The engine of a plan."""
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    assert engine is not None, logger.text()
    return engine


def run(context: trt.IExecutionContext, feeds: Mapping[str, Array]) -> dict[str, Array] | None:
    """The outputs of one run by address; None where the context refuses the shapes or the run."""
    engine = context.engine
    for name, array in feeds.items():
        if not context.set_input_shape(name, array.shape) or not context.set_tensor_address(name, array):
            return None
    outputs: dict[str, Array] = {}
    for name in engine.tensor_names:
        if not engine.tensor(name).is_input:
            shape = [max(length, 0) for length in context.get_tensor_shape(name)]  # -1 where shapes do not fit
            outputs[name] = np.empty(shape, trt.nptype(engine.get_tensor_dtype(name)))
            assert context.set_tensor_address(name, outputs[name])
    return outputs if context.execute_async_v3(0) else None
