"""Engines with plugins on a CPU: what is computed, and in which order a plugin is asked."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from collecting_recorder import CollectingRecorder
from repeat_plugin import Array, Description, Repeat, RepeatCreator, array_at, registered

import mlirt
import mlirt as trt
from mlirt.errors import PluginError

Fill = Callable[[trt.INetworkDefinition, trt.ITensor], trt.ITensor]
X = np.arange(-3, 6, dtype=np.float32).reshape(3, 3)


def plan_of(fill: Fill, shape: tuple[int, ...] = (-1, 3), dtype: trt.DataType = trt.float32) -> bytes:
    builder = trt.Builder(trt.Logger())
    network = builder.create_network(1)
    output = fill(network, network.add_input("x", dtype, shape))
    network.mark_output(output)
    output.name = "y"
    config = builder.create_builder_config()
    config.target = "cpu"
    profile = builder.create_optimization_profile()
    ends = [tuple(end if length < 0 else length for length in shape) for end in (0, 3, 8)]
    profile.set_shape("x", *ends)
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    return bytes(plan)


def repeated(plugin: Repeat) -> Fill:
    """The plugin alone."""

    def fill(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ITensor:
        layer = network.add_plugin_v2([x], plugin)
        layer.name = "rep"
        return layer.get_output(0)

    return fill


def amid_layers(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ITensor:
    """relu, twice the plugin, and a sum: launches of kernels stand before, between and behind it."""
    relu = network.add_activation(x, trt.ActivationType.RELU).get_output(0)
    once = network.add_plugin_v2([relu], Repeat(3.0, 2)).get_output(0)
    sine = network.add_unary(once, trt.UnaryOperation.SIN).get_output(0)
    again = network.add_plugin_v2([sine], Repeat(0.5)).get_output(0)
    return network.add_elementwise(again, once, trt.ElementWiseOperation.SUM).get_output(0)


def test_plugin_amid_layers() -> None:
    """tensorrt-features.md#19.5, 19.20, 19.22: a plugin's raw pointers are those of host memory, for any of an engine's
    shapes.
    """
    plan = plan_of(amid_layers)
    with registered(RepeatCreator()):
        engine = mlirt.load(plan)
        for x in (X, X[:1], np.tile(X, (2, 1)), X):
            once = np.concatenate([np.maximum(x, 0) * 3] * 2)
            np.testing.assert_allclose(engine.run({"x": x})["y"], np.sin(once) * 0.5 + once, rtol=1e-5)
        assert [name for name, _ in engine.profile({"x": X})][1] == "(Unnamed Layer* 1) [PluginV2]"


def test_order_of_calls() -> None:
    """tensorrt-features.md#19.8: one plugin for the engine, a clone for each context, configured whenever its shapes
    are other ones.
    """
    creator = RepeatCreator()
    plan = plan_of(repeated(Repeat(events=creator.events)))
    gc.collect()
    least = "configure (-1, 3) (0, 3) to (8, 3) -> (-1, 3)"
    asked = ["supports 0 FLOAT", "supports 1 FLOAT", "clone", least, "serialize", "destroy"]
    assert creator.events[-len(asked) - 1 : -1] == asked  # and the network's clone is destroyed
    creator.events.clear()
    with registered(creator):
        engine = mlirt.load(plan)
        assert creator.events == ["deserialize rep", "initialize", "clone"]
        creator.events.clear()
        three = ["configure (3, 3) (3, 3) to (3, 3) -> (3, 3)", "workspace"]
        run = ["enqueue (3, 3) -> (3, 3) on the host"]
        for x, expected in ((X, three + run), (X, run), (X[:1], None), (X, three + run)):
            engine.run({"x": x})
            assert expected is None or creator.events == expected
            creator.events.clear()
        context = engine.create_execution_context()
        assert creator.events == ["clone"]
        del context
        assert creator.events == ["clone", "destroy"]
        del engine
        gc.collect()
        assert creator.events[2:] == ["destroy", "terminate", "destroy"]


class Careful(Repeat):
    """Notes where its workspace is."""

    def get_workspace_size(self, inputs: Sequence[Description], outputs: Sequence[Description], /) -> int:
        return 1000 * inputs[0].dims[0]

    def compute(self, given: Sequence[Array], made: Sequence[Array], workspace: int) -> None:
        array_at(workspace, Description((1000 * len(given[0]),), trt.uint8))[...] = 255
        self.note(f"aligned {workspace % 64 == 0}")
        made[0][...] = given[0]


def test_workspace() -> None:
    """tensorrt-features.md#19.13: as much memory as the plugin asks for, of nobody else."""
    creator = RepeatCreator(Careful)
    plan = plan_of(repeated(Careful()))
    with registered(creator):
        assert np.array_equal(mlirt.load(plan).run({"x": X})["y"], X)
    assert "aligned True" in creator.events


def test_plans_hold_names_and_bytes() -> None:
    """tensorrt-features.md#19.14: a plan says which plugin it needs; without its creator the engine is not opened."""
    plan = plan_of(repeated(Repeat(3.0)))
    with pytest.raises(PluginError, match=r"rep: getPluginCreator\(\) could not find Plugin Repeat version 1"):
        mlirt.load(plan)
    with registered(RepeatCreator(), "elsewhere"), pytest.raises(PluginError, match="could not find Plugin Repeat"):
        mlirt.load(plan)
    runtime = trt.Runtime(trt.Logger(trt.Logger.INTERNAL_ERROR))
    recorder = runtime.error_recorder = CollectingRecorder()
    assert runtime.deserialize_cuda_engine(plan) is None
    assert "could not find Plugin Repeat version 1" in recorder.get_error_desc(0)
    with registered(RepeatCreator()):
        assert np.array_equal(mlirt.load(plan).run({"x": X})["y"], X * 3)


class Unready(Repeat):
    """Cannot be initialised."""

    def initialize(self) -> int:
        return 1


def test_initialization_fails() -> None:
    """tensorrt-features.md#19.15, 31.13."""
    plan = plan_of(repeated(Unready()))
    with (
        registered(RepeatCreator(Unready)),
        pytest.raises(PluginError, match="Custom layer rep returned non-zero initialization"),
    ):
        mlirt.load(plan)


class Broken(Repeat):
    """Fails when it runs."""

    def compute(self, given: Sequence[Array], made: Sequence[Array], workspace: int) -> None:
        if len(given[0]) > 1:
            raise RuntimeError("too many rows")
        super().compute(given, made, workspace)


def test_failure_of_a_run() -> None:
    """The message names layer and plugin, and the context goes on with the next run."""
    plan = plan_of(repeated(Broken()))
    with registered(RepeatCreator(Broken)):
        engine = mlirt.load(plan)
        with pytest.raises(PluginError, match="rep: plugin Repeat failed in enqueue: RuntimeError: too many rows"):
            engine.run({"x": X})
        assert np.array_equal(engine.run({"x": X[:1]})["y"], X[:1] * 2)


def test_empty_tensors() -> None:
    """tensorrt-features.md#19.17: a plugin is not called where it has nothing to write, and the run goes on behind it.
    """
    creator = RepeatCreator()

    def with_sum(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ITensor:
        y = network.add_plugin_v2([x], Repeat()).get_output(0)
        return network.add_reduce(y, trt.ReduceOperation.SUM, 1, False).get_output(0)

    plan = plan_of(with_sum)
    with registered(creator):
        engine = mlirt.load(plan)
        assert np.array_equal(engine.run({"x": X[:0]})["y"], np.zeros(3, np.float32))
        assert not any(event.startswith("enqueue") for event in creator.events)
        np.testing.assert_allclose(engine.run({"x": X})["y"], 2 * X.sum(0), rtol=1e-6)


class Extended(Repeat):
    """Gives as many rows of the first input as the second has columns; that one has no elements."""

    def get_output_dimensions(
        self, output_index: int, inputs: Sequence[trt.DimsExprs], expr_builder: trt.IExprBuilder, /
    ) -> trt.DimsExprs:
        return trt.DimsExprs([inputs[1][1], inputs[0][1]])

    def compute(self, given: Sequence[Array], made: Sequence[Array], workspace: int) -> None:
        made[0][...] = np.resize(given[0], made[0].shape)


def test_shapes_by_way_of_empty_tensors() -> None:
    """tensorrt-features.md#19.16: a tensor without elements tells a plugin a length."""

    def fill(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ITensor:
        empty = network.add_slice(x, (0, 0), (0, 3), (1, 1))
        shape = network.add_concatenation(
            [
                network.add_constant((1,), np.zeros(1, np.int32)).get_output(0),
                network.add_gather(
                    network.add_shape(x).get_output(0),
                    network.add_constant((1,), np.zeros(1, np.int32)).get_output(0),
                    0,
                ).get_output(0),
            ]
        )
        size = network.add_elementwise(
            shape.get_output(0),
            network.add_constant((2,), np.array([0, 2], np.int32)).get_output(0),
            trt.ElementWiseOperation.PROD,
        )
        empty.set_input(2, size.get_output(0))
        zero = network.add_constant((2,), np.zeros(2, np.int32)).get_output(0)
        empty.set_input(3, zero)
        return network.add_plugin_v2([x, empty.get_output(0)], Extended()).get_output(0)

    with registered(RepeatCreator(Extended)):
        engine = mlirt.load(plan_of(fill))
        for x in (X, X[:2]):
            assert np.array_equal(engine.run({"x": x})["y"], np.concatenate([x, x]))


def test_types_are_converted_around_a_plugin() -> None:
    """Half precision, which a CPU computes in float32, comes to a plugin as it asks for it."""

    class Halves(Repeat):
        types = (trt.DataType.HALF,)

    def fill(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ITensor:
        y = network.add_plugin_v2([network.add_unary(x, trt.UnaryOperation.ABS).get_output(0)], Halves()).get_output(0)
        return network.add_unary(y, trt.UnaryOperation.NEG).get_output(0)

    with registered(RepeatCreator(Halves)):
        for dtype, kind in ((trt.float32, np.float32), (trt.float16, np.float16)):
            found = mlirt.load(plan_of(fill, dtype=dtype)).run({"x": X.astype(kind)})["y"]
            assert found.dtype == kind
            assert np.array_equal(found, -2 * np.abs(X).astype(kind))


def test_outputs_in_a_concatenation_and_images_in_blocks() -> None:
    """Tensors of a plugin are dense and row-major, however its neighbours lie in memory."""
    random = np.random.default_rng(0)
    kernel = random.standard_normal((32, 32, 3, 3)).astype(np.float32) / 16

    def conv(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ITensor:
        layer = network.add_convolution_nd(x, 32, (3, 3), kernel)
        layer.padding_nd = (1, 1)
        return layer.get_output(0)

    def fill(plugin: bool) -> Fill:
        def made(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ITensor:
            first = conv(network, x)
            same = network.add_plugin_v2([first], Repeat(1.0)).get_output(0) if plugin else first
            joined = network.add_concatenation([first, same])
            joined.axis = 1
            second = conv(network, same)
            total = network.add_concatenation([joined.get_output(0), second])
            total.axis = 1
            return total.get_output(0)

        return made

    x = random.standard_normal((2, 32, 7, 9)).astype(np.float32)
    shape = (-1, 32, 7, 9)
    with registered(RepeatCreator()):
        found, expected = (mlirt.load(plan_of(fill(plugin), shape)).run({"x": x})["y"] for plugin in (True, False))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_plugin_in_a_loop_and_in_a_branch() -> None:
    """A plugin is called once in each iteration, and in the branch that is taken."""
    creator = RepeatCreator()

    def fill(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ITensor:
        loop = network.add_loop()
        carried = loop.add_recurrence(x)
        grown = network.add_plugin_v2([carried.get_output(0)], Repeat(2.0)).get_output(0)
        carried.set_input(1, grown)
        total = network.add_reduce(carried.get_output(0), trt.ReduceOperation.MAX, 3, False).get_output(0)
        limit = network.add_constant((), np.array(20, np.float32)).get_output(0)
        goes_on = network.add_elementwise(total, limit, trt.ElementWiseOperation.LESS).get_output(0)
        loop.add_trip_limit(goes_on, trt.TripLimit.WHILE)
        return loop.add_loop_output(carried.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)

    with registered(creator):
        engine = mlirt.load(plan_of(fill, (3, 3)))
        for x, iterations in ((X, 2), (X * 4, 0), (X, 2)):
            creator.events.clear()
            assert np.array_equal(engine.run({"x": x})["y"], x * 2**iterations)
            assert sum(event.startswith("enqueue") for event in creator.events) == iterations


def test_plugins_of_constants_run_too() -> None:
    """What only depends on weights is not computed at build time where a plugin computes it."""

    def fill(network: trt.INetworkDefinition, x: trt.ITensor) -> trt.ITensor:
        one = network.add_constant((1, 3), np.ones((1, 3), np.float32)).get_output(0)
        three = network.add_plugin_v2([one], Repeat(3.0)).get_output(0)
        return network.add_elementwise(x, three, trt.ElementWiseOperation.PROD).get_output(0)

    creator = RepeatCreator()
    plan = plan_of(fill)
    with registered(creator):
        assert np.array_equal(mlirt.load(plan).run({"x": X})["y"], X * 3)
    assert any(event.startswith("enqueue") for event in creator.events)
