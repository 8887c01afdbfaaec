"""What TensorRT's objects do not have cannot be set: a misspelt setting would get lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layer_networks import new_network

import mlirt as trt


def objects() -> dict[str, Any]:
    """One object of each class whose settings scripts change."""
    logger = trt.Logger()
    builder = trt.Builder(logger)
    network = new_network()
    x = network.add_input("x", trt.float32, (1, 2))
    layer = network.add_activation(x, trt.ActivationType.RELU)
    network.mark_output(layer.get_output(0))
    config = builder.create_builder_config()
    config.target = "cpu"
    config.set_flag(trt.BuilderFlag.REFIT)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    runtime = trt.Runtime(logger)
    engine = runtime.deserialize_cuda_engine(plan)
    assert engine is not None
    made: list[Any] = [
        builder,
        network,
        x,
        layer,
        config,
        builder.create_optimization_profile(),
        trt.OnnxParser(network, logger),
        runtime,
        engine,
        engine.create_execution_context(),
        engine.create_engine_inspector(),
        trt.Refitter(engine, logger),
    ]
    return {type(one).__name__: one for one in made}


def test_unknown_attributes_are_refused() -> None:
    for name, one in objects().items():
        with pytest.raises(AttributeError, match=f"'{name}' object has no attribute 'fp16_mode'"):
            one.fp16_mode = True
        one._of_a_script = 1


@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [
        ("IBuilderConfig", "max_workspace_sise", "max_workspace_size"),
        ("IActivationLayer", "alfa", "alpha"),
        ("IExecutionContext", "profilers", "profiler"),
    ],
)
def test_a_near_name_is_told(kind: str, wrong: str, right: str) -> None:
    with pytest.raises(AttributeError, match=f"did you mean '{right}'"):
        setattr(objects()[kind], wrong, 1)


def test_a_setting_of_another_view_is_told() -> None:
    """tensorrt-features.md#2.9: layers of `get_layer` show what all layers have; a stride set there would get lost."""
    network = new_network()
    x = network.add_input("x", trt.float32, (1, 1, 4, 4))
    network.add_convolution_nd(x, 1, (3, 3), np.ones((1, 1, 3, 3), np.float32))
    layer: Any = network.get_layer(0)
    with pytest.raises(AttributeError, match=r"set layer.__class__ = IConvolutionLayer first"):
        layer.stride_nd = (2, 2)
    layer.__class__ = trt.IConvolutionLayer
    layer.stride_nd = (2, 2)
    assert layer.get_output(0).shape == (1, 1, 1, 1)


def test_classes_of_a_script_have_what_they_like() -> None:
    class CountingBuilder(trt.Builder):
        pass

    builder = CountingBuilder(trt.Logger())
    builder.count = 1  # pyright: ignore[reportAttributeAccessIssue]
    assert vars(builder)["count"] == 1
