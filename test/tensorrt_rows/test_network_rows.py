"""Rows of A2, A3, A7 and A8 that a network answers: names, places, outputs that are shapes, errors in a chain."""

from __future__ import annotations

from typing import Any

import numpy as np
from layer_networks import CollectingLogger, constant, new_network
from network_engines import built, cpu_config, run

import mlirt as trt


def test_an_output_that_is_a_shape() -> None:
    """tensorrt-features.md#2.4, 12.23: it lies on the host, and an engine that reads shapes takes it."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (-1, 3))
    shape = network.add_shape(x).get_output(0)
    shape.name = "shape"
    assert network.mark_output_for_shapes(shape)
    assert shape.is_shape_tensor
    assert not network.mark_output_for_shapes(x)
    assert "x: a shape is Int32 of at most one dimension" in logger.text()
    engine = built(network, cpu_config(logger, shapes={"x": ((1, 3), (2, 3), (4, 3))}), logger)
    assert engine.get_tensor_location("shape") is trt.TensorLocation.HOST
    assert engine.is_shape_inference_io("shape")
    assert not engine.is_shape_inference_io("x")
    found = run(engine.create_execution_context(), {"x": np.zeros((4, 3), np.float32)})
    assert found is not None
    assert found["shape"].tolist() == [4, 3]


def test_places_that_there_are_not() -> None:
    """tensorrt-features.md#2.5, 2.8: None from the methods, an error from an index."""
    network = new_network()
    layer = network.add_identity(network.add_input("x", trt.float32, (2,)))
    missing: list[Any] = [network.get_layer(1), network.get_input(-1), network.get_output(0)]
    missing += [layer.get_output(1), layer.get_input(1)]
    assert missing == [None] * 5
    assert network[-1] == layer


def test_a_network_has_a_name() -> None:
    """tensorrt-features.md#13.20: TensorRT's first one."""
    logger = CollectingLogger()
    network = new_network(logger)
    assert network.name == "Unnamed Network 0"
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, (2,))).get_output(0))
    assert built(network, cpu_config(logger), logger).name == "Unnamed Network 0"


def test_what_is_wrong_is_said_in_a_chain() -> None:
    """tensorrt-features.md#2.13: the reason once, then the layer that failed."""
    logger = CollectingLogger()
    network = new_network(logger)
    a, b = network.add_input("a", trt.float32, (2, 3)), network.add_input("b", trt.float32, (2, 4))
    network.mark_output(network.add_elementwise(a, b, trt.ElementWiseOperation.SUM).get_output(0))
    assert trt.Builder(logger).build_serialized_network(network, cpu_config(logger)) is None
    first, second = logger.text().splitlines()
    assert "(Unnamed Layer* 0) [ElementWise]: C5: lengths ['3', '4'] of dimension 1 do not broadcast" in first
    assert "[network.py::validate]" in second
    assert "Layer (Unnamed Layer* 0) [ElementWise] failed validation" in second


def test_errors_of_others_end_no_build() -> None:
    """tensorrt-features.md#3.1: what a calibrator raises is in the log, with its traceback at VERBOSE, and the build
    gives None.
    """

    class Calibrator(trt.IInt8MinMaxCalibrator):
        def get_batch_size(self) -> int:
            return 1

        def get_batch(self, names: Any) -> list[int]:
            raise RuntimeError("no such file")

        def read_calibration_cache(self) -> bytes | None:
            return None

        def write_calibration_cache(self, cache: Any) -> None: ...

    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (1, 1, 2, 2))
    network.mark_output(network.add_convolution_nd(x, 1, (1, 1), np.ones(1, np.float32)).get_output(0))
    config = cpu_config(logger, trt.BuilderFlag.INT8)
    config.int8_calibrator = Calibrator()
    assert trt.Builder(logger).build_serialized_network(network, config) is None
    assert "RuntimeError: no such file" in logger.text()
    assert "in get_batch" in logger.text(trt.Severity.VERBOSE)


def test_a_recorder_that_raises() -> None:
    """tensorrt-features.md#3.1, 17.14: the call goes on, and the log has both errors."""

    class Recorder(trt.IErrorRecorder):
        def __init__(self) -> None:
            super().__init__()

        def num_errors(self) -> int:
            return 0

        def get_error_code(self, arg0: int) -> trt.ErrorCodeTRT:
            return trt.ErrorCodeTRT.SUCCESS

        def get_error_desc(self, arg0: int) -> str:
            return ""

        def has_overflowed(self) -> bool:
            return False

        def clear(self) -> None: ...

        def report_error(self, arg0: trt.ErrorCodeTRT, arg1: str) -> bool:
            raise RuntimeError("full")

    logger = CollectingLogger()
    network = new_network(logger)
    network.error_recorder = Recorder()
    assert network.add_input("", trt.float32, (2,)) is None
    assert "an input needs a name of its own" in logger.text()
    assert "the error recorder raised RuntimeError: full" in logger.text(trt.Severity.WARNING)


def test_branches_have_one_shape() -> None:
    """tensorrt-features.md#8.3: else the build fails, unless the conditional permits it."""
    x, y = np.array([1, 2], np.float32), np.array([3, 4, 5], np.float32)
    for permitted in (False, True):
        logger = CollectingLogger()
        network = new_network(logger)
        choice = network.add_if_conditional()
        choice.allows_different_shapes = permitted
        choice.set_condition(network.add_input("c", trt.bool, ()))
        outputs = [
            network.add_unary(network.add_input(name, trt.float32, shape), trt.UnaryOperation.NEG).get_output(0)
            for name, shape in (("x", (2,)), ("y", (3,)))
        ]
        network.mark_output(choice.add_output(*outputs).get_output(0))
        if not permitted:
            assert trt.Builder(logger).build_serialized_network(network, cpu_config(logger)) is None
            assert "the branches give the shapes (2) and (3), not the same one" in logger.text()
            continue
        engine = built(network, cpu_config(logger), logger).engine
        for condition, expected in ((True, -x), (False, -y)):
            (found,) = engine.run({"c": np.array(condition), "x": x, "y": y}).values()
            np.testing.assert_array_equal(found, expected)


def test_what_there_is_one_of() -> None:
    """tensorrt-features.md#1.4, 7.4, 8.1: a second condition, a second limit of a kind are None."""
    logger = CollectingLogger()
    network = new_network(logger)
    choice, loop = network.add_if_conditional(), network.add_loop()
    condition, count = network.add_input("c", trt.bool, ()), constant(network, np.array(3, np.int32))
    choice.set_condition(condition)
    loop.add_trip_limit(count, trt.TripLimit.COUNT)
    assert choice.set_condition(condition) is None
    assert loop.add_trip_limit(count, trt.TripLimit.COUNT) is None
    assert "has a condition already" in logger.text()
    assert "has a trip limit COUNT already" in logger.text()
