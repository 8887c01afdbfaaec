"""DeformConv against the ONNX package's own evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import model_of

import mlirt

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "strides and pads": {"strides": [2, 1], "pads": [1, 2, 0, 1]},
    "dilated": {"dilations": [2, 1], "pads": [2, 1, 2, 1]},
    "groups": {"group": 2},
    "groups of offsets": {"offset_group": 2, "group": 4, "pads": [1, 1, 1, 1]},
}


def _window(name: str) -> tuple[list[int], list[int], list[int], int, int]:
    given = CASES[name]
    strides, dilations = given.get("strides", [1, 1]), given.get("dilations", [1, 1])
    return strides, given.get("pads", [0, 0, 0, 0]), dilations, given.get("group", 1), given.get("offset_group", 1)


def _feeds(name: str, batch: int, height: int, width: int, dtype: Any = np.float32) -> dict[str, np.ndarray]:
    """Offsets of up to two elements, some of them whole and some far outside."""
    strides, pads, dilations, group, parts = _window(name)
    rng = np.random.default_rng(len(name) + height)
    sizes = [
        (n + pads[k] + pads[k + 2] - dilations[k] * (kernel - 1) - 1) // strides[k] + 1
        for k, (n, kernel) in enumerate(((height, 3), (width, 2)))
    ]
    offset = rng.uniform(-2, 2, (batch, parts * 12, *sizes))
    offset[:, ::5] = np.round(offset[:, ::5])
    offset[:, 3, 0] = 40
    found = {
        "x": rng.standard_normal((batch, 4, height, width)),
        "w": np.random.default_rng(0).standard_normal((8, 4 // group, 3, 2)),
        "offset": offset,
        "b": rng.standard_normal(8),
        "mask": rng.uniform(0, 1, (batch, parts * 6, *sizes)),
    }
    return {key: array.astype(dtype) for key, array in found.items()}


ORDER = ("x", "w", "offset", "b", "mask")


def _model(name: str, given: Sequence[str], feeds: dict[str, np.ndarray], *, is_dynamic: bool = False) -> Any:
    node = helper.make_node("DeformConv", [one if one in given else "" for one in ORDER], ["y"], **CASES[name])
    shapes: dict[str, list[Any]] = {one: list(feeds[one].shape) for one in given}
    if is_dynamic:
        for one, sizes in (("x", ["h", "w_"]), ("offset", ["p", "q"]), ("mask", ["p", "q"])):
            if one in shapes:
                shapes[one] = ["n", shapes[one][1], *sizes]
    inputs = {one: (feeds[one].dtype.name, shapes[one]) for one in given if one != "w"}
    return model_of([node], inputs, ["y"], {"w": feeds["w"]}, opset=19)


def _wanted(model: Any, feeds: dict[str, np.ndarray]) -> np.ndarray:
    evaluator: Any = ReferenceEvaluator(model)
    return np.asarray(evaluator.run(None, feeds)[0])


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_samples_lie_where_offsets_say(name: str, target: str) -> None:
    feeds = _feeds(name, 2, 7, 6)
    for given in (list(ORDER), ["x", "w", "offset"]):
        model = _model(name, given, feeds)
        arrays = {one: feeds[one] for one in given if one != "w"}
        engine: Any = mlirt.compile(model, target=target)
        np.testing.assert_allclose(engine.run(arrays)["y"], _wanted(model, arrays), rtol=1e-4, atol=2e-4)


def test_dynamic_batch_and_size() -> None:
    name = "groups of offsets"
    model = _model(name, list(ORDER), _feeds(name, 2, 7, 6), is_dynamic=True)
    engine: Any = mlirt.compile(model, target="cpu")
    for batch, height, width in ((1, 5, 9), (3, 8, 4)):
        feeds = _feeds(name, batch, height, width)
        arrays = {one: array for one, array in feeds.items() if one != "w"}
        wanted = _wanted(_model(name, list(ORDER), feeds), arrays)
        np.testing.assert_allclose(engine.run(arrays)["y"], wanted, rtol=1e-4, atol=2e-4)


def test_half_precision() -> None:
    feeds = _feeds("plain", 1, 6, 5, np.float16)
    model = _model("plain", ["x", "w", "offset"], feeds)
    arrays = {one: feeds[one] for one in ("x", "offset")}
    engine: Any = mlirt.compile(model, target="cpu")
    found = engine.run(arrays)["y"]
    assert found.dtype == np.float16
    single = {one: array.astype(np.float32) for one, array in feeds.items()}
    wanted = _wanted(_model("plain", ["x", "w", "offset"], single), {one: single[one] for one in arrays})
    np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=2e-3, atol=1e-2)
