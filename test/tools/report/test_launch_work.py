"""Bytes and operations of launches follow from their shapes."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_plan import tiny_parts

from mlirt.runtime.manifest import Manifest
from mlirt.runtime.plan_file import make_plan
from mlirt.tools.report.launch_work import works


def _tensor(*shape: Any, dtype: str = "float32", **more: str) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), **more}


def _manifest(layer: dict[str, Any]) -> Manifest:
    parts = tiny_parts()
    parts.manifest["layers"] = [{"name": "one", **layer}]
    return make_plan(parts.manifest, parts.sections, parts.weights).manifest


@pytest.mark.parametrize(
    ("family", "inputs", "weights", "outputs", "operations"),
    [
        ("convolution", [_tensor(2, 16, 8, 8)], [_tensor(32, 16, 3, 3)], [_tensor(2, 32, 8, 8)], 2 * 128 * 32 * 144),
        (
            "winograd",
            [_tensor(1, 1, 8, 8, 16, format="channels in blocks")],
            [_tensor(32, 16, 3, 3)],
            [_tensor(1, 2, 8, 8, 16, format="channels in blocks")],
            2 * 64 * 32 * 144,
        ),
        ("matmul", [_tensor(4, "n", 8)], [_tensor(8, 5)], [_tensor(4, "n", 5)], 2 * 4 * 3 * 5 * 8),
        ("attention", [_tensor(1, 2, 3, 4)] * 3, [], [_tensor(1, 2, 3, 4)], 4 * 24 * 3),
        ("pointwise", [_tensor("n", 4)], [], [_tensor("n", 4)], 12),
    ],
)
def test_operations(
    family: str, inputs: list[object], weights: list[object], outputs: list[object], operations: int
) -> None:
    layer = {"family": family, "inputs": inputs, "weights": weights, "outputs": outputs}
    assert works(_manifest(layer), {"n": 3})[0].operations == operations


def test_bytes_and_texts() -> None:
    layer = {"inputs": [_tensor(["*", 2, "n"], dtype="int8")], "weights": [], "outputs": [_tensor("n", 4, name="y")]}
    first, second, _ = works(_manifest(layer), {"n": 3})
    assert first.bytes == 6 + 48
    assert str(first.inputs[0]) == "int8 [6] = [2*n]"
    assert (first.outputs[0].name, first.outputs[0].known) == ("y", "float32 [3, 4]")
    assert second.operations is None, "the plan says nothing about this launch"


def test_a_length_that_no_shape_settles() -> None:
    layer = {"inputs": [], "weights": [], "outputs": [_tensor("found")]}
    work = works(_manifest(layer), {"n": 3})[0]
    assert work.outputs[0].shape == (None,)
    assert work.bytes == 0
