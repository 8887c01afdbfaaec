"""TensorRT 10's decorators of plugins, and ops that functions compute in the network API."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, cast

import numpy as np
import pytest

import mlirt as trt
import mlirt.plugin as trtp
from mlirt.errors import InvalidInputError, PluginError, UnsupportedError
from mlirt.runtime.engine import Engine
from mlirt.runtime.plan_file import read_plan
from mlirt.tensorrt.plugins.functions.function_plugin import FunctionCreator
from mlirt.tensorrt.plugins.shape_expressions import IDimensionExpr

X = np.arange(-6, 6, dtype=np.float32).reshape(2, 6)


@pytest.fixture(autouse=True)
def ops() -> Generator[list[int]]:
    """The tactics that `sample::scale` is called with, which is registered meanwhile."""
    called: list[int] = []

    @trtp.register("sample::scale")
    def describe(x: trtp.TensorDesc, factor: float, times: int) -> tuple[trtp.TensorDesc, trtp.TensorDesc]:
        wide = x.like()
        wide.shape_expr = [x.shape_expr[0] * times, x.shape_expr[1]]
        return x.like(), wide

    @trtp.autotune("sample::scale")
    def tune(x: trtp.TensorDesc, outputs: tuple[trtp.TensorDesc, ...]) -> list[trtp.AutoTuneCombination]:
        assert [one.dtype for one in outputs] == [x.dtype, x.dtype]
        return [
            trtp.AutoTuneCombination("FP16, FP16, FP16", "LINEAR", [1]),
            trtp.AutoTuneCombination("FP32|BF16, FP32|BF16, FP32", "LINEAR|HWC", [7, 8]),
        ]

    @trtp.impl("sample::scale")
    def compute(
        x: trtp.Tensor, factor: float, times: int, outputs: tuple[trtp.Tensor, ...], stream: int, tactic: int
    ) -> None:
        called.append(tactic)
        assert (stream, x.strides, x.numel()) == (0, (6, 1), 12)
        np.multiply(np.asarray(x), factor, out=np.asarray(outputs[0]))
        np.asarray(outputs[1])[...] = np.tile(np.asarray(x), (times, 1))

    assert all(map(callable, (describe, tune, compute)))
    yield called
    registry = trt.get_plugin_registry()
    for creator in registry.all_creators:
        if isinstance(creator, FunctionCreator):
            registry.deregister_creator(creator)


def plan_of(kind: trt.DataType = trt.float32) -> bytes | None:
    """sample::scale of [n, 6], both its outputs."""
    builder = trt.Builder(trt.Logger())
    network = builder.create_network(1)
    x = network.add_input("x", kind, (-1, 6))
    layer = network.add_plugin(trtp.op.sample.scale(x, 3.0, times=2))
    layer.name = "scale"
    assert (layer.type, layer.plugin.attributes) == (trt.LayerType.PLUGIN_V2, {"factor": 3.0, "times": 2})
    for number, name in enumerate(("scaled", "tiled")):
        layer.get_output(number).name = name
        network.mark_output(layer.get_output(number))
    config = builder.create_builder_config()
    config.target = "cpu"
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 6), (2, 6), (4, 6))
    config.add_optimization_profile(profile)
    return builder.build_serialized_network(network, config)


def test_plugin_of_two_functions(ops: list[int]) -> None:
    """The plan keeps attributes and the tactic that was chosen for the types."""
    plan = plan_of()
    assert plan is not None
    engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(plan)
    assert engine is not None
    context = engine.create_execution_context()
    context.set_input_shape("x", (2, 6))
    scaled, tiled = np.empty((2, 6), np.float32), np.empty((4, 6), np.float32)
    for name, array in (("x", X), ("scaled", scaled), ("tiled", tiled)):
        context.set_tensor_address(name, array.ctypes.data)
    assert context.execute_async_v3(0)
    np.testing.assert_array_equal(scaled, X * 3)
    np.testing.assert_array_equal(tiled, np.tile(X, (2, 1)))
    assert ops == [7]


def test_types_without_a_combination(capfd: pytest.CaptureFixture[str]) -> None:
    assert plan_of(trt.int32) is None
    said = capfd.readouterr().err
    assert "scale: no combination of autotune('sample::scale') has the types INT32, INT32, INT32 of the netw" in said


def test_description_of_tensors() -> None:
    desc = trtp.from_shape_expr([IDimensionExpr("n"), 4], trt.float32)
    assert (desc.shape, desc.ndim, desc.has_shape, desc.is_shape_tensor) == ((-1, 4), 2, False, False)
    half = (desc.shape_expr[0] + 1) // 2
    like = desc.like()
    like.shape_expr = [half, trtp.cdiv(5, 2), trtp.maximum(2, 3), trtp.minimum(desc.shape_expr[0], 9)]
    assert like.shape == (-1, 3, 3, -1)
    assert str(like.shape_expr[0].formula) == "('//', ('+', 'n', 1), 2)"
    assert trtp.ShapeExprs([2, 3]).numel().get_constant_value() == 6
    assert len(trtp.ShapeExprs(3)) == 3
    with pytest.raises(InvalidInputError, match="length n is not known when the network is built"):
        _ = desc.shape_expr[0] < 3
    with pytest.raises(UnsupportedError, match="use like"):
        desc.aliased()


def test_what_is_not_registered() -> None:
    with pytest.raises(AttributeError, match="no op of the domain 'nowhere' is registered"):
        trtp.op.nowhere.thing
    with pytest.raises(AttributeError, match="no op sample::other is registered"):
        trtp.op.sample.other
    with pytest.raises(InvalidInputError, match="'sample::other' is not registered"):
        trtp.impl("sample::other")(print)
    with pytest.raises(UnsupportedError, match=r"sample::scale: kernels that are compiled ahead of time are not"):
        trtp.aot_impl("sample::scale")


def test_description_without_a_function() -> None:
    @trtp.register("sample::empty")
    def describe(x: trtp.TensorDesc) -> trtp.TensorDesc:
        return x.like()

    creator = trt.get_plugin_registry().get_creator("empty", "1", "sample")
    assert isinstance(creator, FunctionCreator)
    assert describe(trtp.TensorDesc([2], trt.float32)).shape == (2,)
    with pytest.raises(PluginError, match=r"use plugin.impl\('sample::empty'\)"):
        creator.op.compute([], [], {}, 0, 0)


def test_function_of_numbers_in_a_network() -> None:
    """It becomes a launch with the layers around it."""

    @trt.op("sample::above")
    def above(x: float, *, limit: float = 0.0) -> float:
        return x if x > limit else limit

    builder = trt.Builder(trt.Logger())
    network = builder.create_network(1)
    x = network.add_input("x", trt.float32, (2, 6))
    negative = network.add_unary(x, trt.UnaryOperation.NEG)
    negative.name = "negative"
    layer = network.add_plugin(trtp.op.sample.above(negative.get_output(0), limit=1.5))
    layer.name = "above"
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    config = builder.create_builder_config()
    config.target = "cpu"
    plan: Any = builder.build_serialized_network(network, config)
    assert plan is not None
    engine = Engine(read_plan(bytes(plan)))
    assert [one["name"] for one in engine.layers] == ["negative + above"]
    np.testing.assert_array_equal(engine.run({"x": X})["y"], [[above(-v, limit=1.5) for v in row] for row in X])


def test_add_plugin_refuses_other_things() -> None:
    network = trt.Builder(trt.Logger()).create_network(1)
    with pytest.raises(TypeError, match="add_plugin"):
        network.add_plugin(cast("Any", 3))
    with pytest.raises(TypeError, match="sample::scale"):
        network.add_plugin(trtp.op.sample.scale(X, 1.0, 2))
