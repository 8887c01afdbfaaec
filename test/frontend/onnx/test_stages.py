"""Cuts of a model: weights divided equally, few tensors between stages, states in one, small sums computed again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from staged_decoder import staged_decoder, states

from mlirt.errors import InvalidInputError, UnsupportedError
from mlirt.frontend.onnx.model_reader import Model
from mlirt.frontend.onnx.stages import split_model


def names(stage: Model) -> tuple[list[str], list[str]]:
    graph = stage.proto.graph
    return [one.name for one in graph.input], [one.name for one in graph.output]


def weights(stage: Model) -> int:
    stored = sum(map(len, stage.stored.values()))
    return stored + sum(one.ByteSize() for one in stage.proto.graph.initializer)


def test_layers_are_divided_equally_and_caches_stay_with_theirs() -> None:
    first, second = split_model(staged_decoder(6), 2, states(6))
    assert names(first) == (["ids", "past0", "past1", "past2"], ["present0", "present1", "present2", "h3", "mask"])
    assert names(second) == (["past3", "past4", "past5", "h3", "mask"], ["logits", "present3", "present4", "present5"])
    assert weights(first) == pytest.approx(weights(second), rel=0.2)


def test_one_stage_is_the_model() -> None:
    model = staged_decoder(2)
    (stage,) = split_model(model, 1)
    assert {one.name for one in stage.proto.graph.node} == {one.name for one in model.graph.node}
    assert names(stage)[0] == [one.name for one in model.graph.input]
    assert names(stage)[1] == [one.name for one in model.graph.output]


def chain(node: onnx.NodeProto, *, shape: list[int | str] | None) -> onnx.ModelProto:
    """y = relu(relu(x) [W] op ..), whose second half begins with what `node` makes of `a`."""
    stored = [numpy_helper.from_array(np.ones((64, 64), np.float32), name) for name in ("w", "v")]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
        node,
        helper.make_node("MatMul", ["b", "v"], ["y"], name="second"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "chain", [x], [y], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)])


def test_large_weights_of_a_file_stay_where_they_lie(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(staged_decoder(2, 256).SerializeToString())
    stages = split_model(path, 2, states(2))
    assert all(stage.stored for stage in stages)
    assert sum(map(weights, stages)) == pytest.approx(path.stat().st_size, rel=0.05)


def test_a_tensor_of_unknown_rank_is_named() -> None:
    model = chain(helper.make_node("Odd", ["a"], ["b"], domain="own", name="odd"), shape=["n", 64])
    model.graph.node.append(helper.make_node("Odd", ["b"], ["c"], domain="own", name="again"))
    with pytest.raises(UnsupportedError, match=r"node 'odd' \(Odd\): its output 'b' passes from one stage to the next"):
        split_model(model, 4)


def test_counts_and_states_that_the_model_does_not_have() -> None:
    with pytest.raises(InvalidInputError, match="stages=0: the model has 32 nodes"):
        split_model(staged_decoder(2), 0)
    with pytest.raises(InvalidInputError, match="stages=99"):
        split_model(staged_decoder(2), 99)
    with pytest.raises(InvalidInputError, match="state: the model has no output 'next'; it has"):
        split_model(staged_decoder(2), 2, {"past0": "next"})
