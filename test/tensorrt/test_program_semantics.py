"""What programs for TensorRT rely on: equality of enumerations, what is true, what `with` takes."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import new_network

import mlirt as trt


def test_a_member_equals_no_number_and_no_member_of_another_kind() -> None:
    """Programs look up types of several libraries by equality: ONNX's 3 is INT8, TensorRT's is INT32."""
    assert trt.int32 != 3
    assert trt.int32 == trt.DataType.INT32
    foreign: dict[object, str] = {3: "onnx's int8"}
    assert foreign.get(trt.int32) is None
    own: dict[object, str] = {trt.int32: "found"}
    assert own[trt.DataType(3)] == "found"
    assert trt.DataType.HALF != trt.LayerType.FULLY_CONNECTED
    assert (int(trt.int32), 1 << int(trt.int32), hash(trt.int32) == hash(trt.DataType.INT32)) == (3, 8, True)


def test_a_profile_is_true_when_it_is_valid() -> None:
    """`if not profile:` asks whether it is wrong; an empty one lacks nothing for networks of fixed shapes."""
    profile = trt.Builder(trt.Logger()).create_optimization_profile()
    assert profile
    config = trt.Builder(trt.Logger()).create_builder_config()
    assert config.add_optimization_profile(profile) == 0
    assert not config.set_calibration_profile(profile)


def test_plans_are_taken_by_with() -> None:
    network = new_network()
    x = network.add_input("x", trt.float32, (2,))
    network.mark_output(network.add_unary(x, trt.UnaryOperation.NEG).get_output(0))
    builder = trt.Builder(trt.Logger())
    config = builder.create_builder_config()
    config.target = "cpu"
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    with pytest.warns(DeprecationWarning, match="del"), plan as taken:
        assert taken is plan
    engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(plan)
    assert engine is not None
    with pytest.warns(DeprecationWarning, match="del"), engine.serialize() as again:
        assert np.frombuffer(again, np.uint8).size == again.nbytes
