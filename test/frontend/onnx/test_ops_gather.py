"""Reads and writes at indices against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import assert_agrees, check_node, imported_text, numbers, one_node, small_integers

from mlirt.errors import InvalidModelError, UnsupportedError


@pytest.mark.parametrize("indices", [[0, 2], [[1, -1], [0, 0]], 1, -1, [2]])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("stored", [(), (1,)])
def test_gather(indices: object, axis: int, stored: tuple[int, ...]) -> None:
    check_node("Gather", [numbers(3, 4, 3), np.array(indices)], opset=13, constants=stored, axis=axis)


def test_one_known_position_is_a_slice() -> None:
    model, _ = one_node("Gather", [numbers(3, 4), np.array(-1)], constants=[1], axis=1)
    text = imported_text(model)
    assert "trt.slice" in text
    assert "trt.gather" not in text


def test_an_index_outside_is_refused() -> None:
    model, _ = one_node("Gather", [numbers(3, 4), np.array(4)], constants=[1], axis=1)
    with pytest.raises(InvalidModelError, match="index 4 is outside of dimension 1, which has the length 4"):
        imported_text(model)


def test_gather_elements_and_nd() -> None:
    check_node("GatherElements", [numbers(3, 4), small_integers(2, 4, low=-3, high=3)], opset=13, axis=0)
    check_node("GatherND", [numbers(3, 4, 2), small_integers(5, 2, high=3)], opset=13)
    check_node("GatherND", [numbers(3, 4, 2), small_integers(3, 5, 1, high=4)], opset=13, batch_dims=1)


@pytest.mark.parametrize("op_type", ["GatherND", "ScatterND"])
def test_a_dynamic_number_of_coordinates_is_not_supported(op_type: str) -> None:
    arrays = [numbers(3, 4, 2), small_integers(5, 2, high=3), numbers(5, 2)][: 2 if op_type == "GatherND" else 3]
    model, _ = one_node(op_type, arrays, opset=13)
    model.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "k"
    with pytest.raises(UnsupportedError, match=rf"{op_type} \(node 'node'.*coordinates.* is dynamic: give its length"):
        imported_text(model)
    assert "trt." in imported_text(model, input_shapes={"in1": [5, 2]})


@pytest.mark.parametrize("reduction", ["none", "add", "mul"])
def test_scatters(reduction: str) -> None:
    indices, updates = np.array([[1, 0, 2]]), numbers(1, 3, seed=1)
    check_node("ScatterElements", [numbers(3, 3), indices, updates], opset=16, axis=0, reduction=reduction)
    check_node("ScatterND", [numbers(4, 3), np.array([[2], [0]]), numbers(2, 3, seed=1)], opset=16, reduction=reduction)


@pytest.mark.parametrize(("batch", "time"), [(0, 1), (1, 0)])
def test_reverse_sequence(batch: int, time: int) -> None:
    x = numbers(4, 4, 2)
    check_node("ReverseSequence", [x, np.array([1, 2, 3, 4])], opset=10, batch_axis=batch, time_axis=time)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    check_node("DepthToSpace", [numbers(1, 12, 2, 3)], opset=13, blocksize=2, mode=mode)


def test_space_to_depth() -> None:
    check_node("SpaceToDepth", [numbers(1, 3, 4, 6)], opset=13, blocksize=2)


def test_sizes_that_only_the_run_knows_get_names() -> None:
    model, feeds = one_node("NonZero", [np.array([[1.0, 0.0], [2.0, 3.0]], np.float32)], opset=13)
    assert 'tensor<2x?xi64, #trt.dims<["2", "nonzero1"]>>' in imported_text(model)
    assert_agrees(model, feeds)
    check_node("Compress", [numbers(3, 2), np.array([True, False, True])], opset=11, axis=0)
    check_node("Compress", [numbers(3, 2), np.array([True, False, True])], opset=11)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_conditions_of_other_lengths_choose_among_what_there_is(count: int) -> None:
    check_node("Compress", [numbers(3, 2), np.ones(count, np.bool_)], opset=11, axis=0)
    check_node("Compress", [numbers(3, 2), np.ones(count * 2, np.bool_)], opset=11)
