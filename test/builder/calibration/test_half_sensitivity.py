"""Which layers lose most in half precision, and how many stay in float32 for a wanted accuracy. Demand 1."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, helper
from onnx.numpy_helper import from_array

import mlirt
from mlirt.errors import InvalidInputError

X = np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)


def network(scale: float) -> ModelProto:
    """Three products; the results of the first one are `scale` times as large as those of the others."""
    draw = np.random.default_rng(1)
    sizes = {"a": scale, "b": 1 / scale, "c": 1.0}
    weights = [
        from_array((size * draw.standard_normal((16, 16))).astype(np.float32), name) for name, size in sizes.items()
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"], "first"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "b"], ["s"], "second"),
        helper.make_node("MatMul", ["s", "c"], ["y"], "third"),
    ]
    ends = [helper.make_tensor_value_info(name, 1, [4, 16]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "three", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def found(scale: float, precision: str = "fp16", accuracy_target: float | None = None) -> mlirt.Sensitivity:
    return mlirt.sensitivity(
        network(scale), None, [{"x": X}], precision=precision, accuracy_target=accuracy_target, target="cpu"
    )


def test_a_loss_is_that_of_rounding_to_half_precision() -> None:
    losses = found(1.0).losses
    assert set(losses) == {"first", "relu", "second", "third"}
    assert all(0 < loss < 1e-3 for loss in losses.values())
    assert all(loss > 4 * losses[name] for name, loss in found(1.0, precision="bf16").losses.items())


def test_what_overflows_stays_in_float32() -> None:
    """The results of the first product are beyond 65504, its weights are not."""
    large = network(1e4)
    ranked = mlirt.sensitivity(large, None, [{"x": 100 * X}], precision="fp16", target="cpu", accuracy_target=0.999)
    assert ranked.losses["first"] == ranked.losses["relu"] == float("inf")
    assert ranked.accuracy >= 0.999
    assert sorted(ranked.kept) == ["first", "relu", "second"]
    assert ranked.layer_precisions == dict.fromkeys(ranked.kept, "fp32")
    assert ranked.losses["third"] < 1e-3


def test_a_target_that_is_met_keeps_nothing() -> None:
    assert found(1.0, accuracy_target=0.99).kept == []


def test_precisions_that_are_not_known() -> None:
    with pytest.raises(InvalidInputError, match="expected int8, fp16 or bf16"):
        found(1.0, precision="fp8")
    with pytest.raises(InvalidInputError, match="int8 needs a calibration"):
        found(1.0, precision="int8")
