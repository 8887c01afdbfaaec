"""Trees and linear classifiers against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import assert_agrees, check_node, imported_text, model_of, numbers, one_node

import mlirt
from mlirt.dialects.context import RtContext
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.errors import InvalidModelError, UnsupportedError
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import pipeline_for
from mlirt.passes.pipeline import run_passes

_ML = "ai.onnx.ml"


def _trees(count: int, depth: int, prefix: str, targets: int, mode: str = "BRANCH_LEQ") -> dict[str, Any]:
    """Random trees of which some ways end early; nodes are numbered in another order than they are stored."""
    random = np.random.default_rng(count)
    made: dict[str, list[Any]] = {
        name: [] for name in ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
    }
    made["missing_value_tracks_true"] = []
    leaves: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}

    def grow(tree: int, name: int, left: int) -> None:
        is_leaf = not left or (left < depth and random.random() < 0.3)
        row = [tree, name, "LEAF" if is_leaf else mode, int(random.integers(5)), float(random.normal())]
        row += [0, 0] if is_leaf else [2 * name + 1, 2 * name + 2]
        for key, value in zip(made, [*row, int(random.integers(2))], strict=True):
            made[key].append(value)
        if not is_leaf:
            grow(tree, 2 * name + 2, left - 1)
            grow(tree, 2 * name + 1, left - 1)
            return
        for target in range(targets):
            for key, value in zip(leaves, [tree, name, target, float(random.normal())], strict=True):
                leaves[key].append(value)

    for tree in range(count):
        grow(tree, 0, depth)
    return {f"nodes_{k}": v for k, v in made.items()} | {f"{prefix}_{k}": v for k, v in leaves.items()}


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
@pytest.mark.parametrize(("count", "depth", "targets"), [(1, 1, 1), (7, 4, 1), (5, 3, 3)])
def test_a_sum_over_trees(mode: str, count: int, depth: int, targets: int) -> None:
    x = numbers(9, 5)
    x[2, :3] = np.nan
    given: dict[str, Any] = {"n_targets": targets, "base_values": [0.5] * targets}
    given |= _trees(count, depth, "target", targets, mode)
    assert_agrees(*one_node("TreeEnsembleRegressor", [x], domain=_ML, **given))


def test_an_average_over_trees_with_a_dynamic_batch_on_the_cpu() -> None:
    given: dict[str, Any] = {"n_targets": 2, "aggregate_function": "AVERAGE"} | _trees(6, 4, "target", 2)
    model = model_of(
        [helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=_ML, **given)],
        {"x": ("float32", ("batch", 5))},
        ["y"],
        domains=[_ML],
    )
    engine = mlirt.compile(model, target="cpu")
    for rows in (1, 33):
        feeds = {"x": numbers(rows, 5, seed=rows)}
        assert_agrees(model, feeds)
        (wanted,) = mlirt.compile(model, target="reference").run(feeds).values()
        np.testing.assert_allclose(engine.run(feeds)["y"], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("labels", [[3, 1, 7], [0, 1]])
def test_classes_by_trees_and_by_lines(transform: str, labels: list[int]) -> None:
    x = numbers(9, 5)
    options: dict[str, Any] = {"post_transform": transform, "outputs": 2}
    if len(labels) > 2:
        trees: dict[str, Any] = {"classlabels_int64s": labels}
        trees |= _trees(5, 3, "class", len(labels))
        assert_agrees(*one_node("TreeEnsembleClassifier", [x], domain=_ML, **options, **trees))
    lines: dict[str, Any] = {
        "coefficients": [float(v) for v in numbers(5 * len(labels))],
        "intercepts": [0.1] * len(labels),
    }
    lines["classlabels_ints"] = labels
    assert_agrees(*one_node("LinearClassifier", [x], domain=_ML, **options, **lines))


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_two_classes_of_which_the_leaves_name_one(positive: bool, transform: str) -> None:
    """As converters of forests (weights are parts of probabilities) and of boosted trees write it."""
    trees: dict[str, Any] = {"classlabels_int64s": [0, 1], "post_transform": transform}
    trees |= _trees(5, 3, "class", 1)
    if positive:
        trees["class_weights"] = [abs(weight) / 5 for weight in trees["class_weights"]]
    else:
        trees["base_values"] = [0.25]
    assert_agrees(*one_node("TreeEnsembleClassifier", [numbers(40, 5)], domain=_ML, outputs=2, **trees))


def test_trees_have_kernels_for_a_gpu() -> None:
    """All passes for a GPU, without one and without machine code."""
    given: dict[str, Any] = {"n_targets": 2} | _trees(6, 4, "target", 2)
    model, _ = one_node("TreeEnsembleRegressor", [numbers(3, 5)], domain=_ML, **given)
    context = RtContext()
    module = import_model(model, context)
    for _, specs in pipeline_for("cuda"):
        run_passes(module, context, ",".join(specs))
    assert any(isinstance(op, LaunchOp) for op in module.walk())


def test_columns_by_a_list() -> None:
    check_node("ArrayFeatureExtractor", [numbers(4, 6), np.array([5, 0, 2])], domain=_ML)


def test_what_is_not_known_is_refused() -> None:
    model, _ = one_node(
        "LinearClassifier",
        [numbers(2, 2)],
        domain=_ML,
        outputs=2,
        coefficients=[1.0] * 4,
        classlabels_strings=["a", "b"],
    )
    with pytest.raises(UnsupportedError, match="labels that are strings"):
        imported_text(model)
    given = _trees(1, 1, "target", 1)
    given["nodes_truenodeids"] = [9, 0, 0]
    model, _ = one_node("TreeEnsembleRegressor", [numbers(2, 5)], domain=_ML, n_targets=1, **given)
    with pytest.raises(InvalidModelError, match="has no node 9"):
        imported_text(model)
