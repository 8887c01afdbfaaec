"""Trees and linear classifiers against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import assert_agrees, check_node, imported_text, model_of, numbers, one_node, run_reference

import mlirt
from mlirt.dialects.context import RtContext
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.errors import InvalidModelError, MlirtError, UnsupportedError
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


# A node that decides, and two leaves.
_STUMP: dict[str, Any] = {
    "n_targets": 1,
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_featureids": [1, 0, 0],
    "nodes_values": [0.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.0, 2.0],
}
_CHAIN = 1500
"""Decisions one behind the other."""


def _chain() -> dict[str, Any]:
    count = 2 * _CHAIN + 1
    return {
        "nodes_treeids": [0] * count,
        "nodes_nodeids": list(range(count)),
        "nodes_modes": ["BRANCH_LEQ"] * _CHAIN + ["LEAF"] * (_CHAIN + 1),
        "nodes_featureids": [0] * count,
        "nodes_values": [0.0] * count,
        "nodes_truenodeids": [*range(1, _CHAIN), 2 * _CHAIN, *[0] * (_CHAIN + 1)],
        "nodes_falsenodeids": [*range(_CHAIN, 2 * _CHAIN), *[0] * (_CHAIN + 1)],
        "target_nodeids": [_CHAIN, _CHAIN + 1],
    }


_ALL_BRANCHES = {"nodes_modes": ["BRANCH_LEQ"] * 3, "target_nodeids": [1, 1]}
_HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    **{
        f"{name} is short": ({name: _STUMP[name][:-1]}, "of one length")
        for name in ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids")
    },
    **{
        f"{name} is long": ({name: [*_STUMP[name], 0]}, "of one length")
        for name in ("target_treeids", "target_nodeids", "target_ids")
    },
    "no weights": ({"target_weights": None}, "target_weights has 0"),
    "weights are short": ({"target_weights": [1.0]}, "target_weights has 1"),
    "no nodes": ({name: None for name in _STUMP if name.startswith("nodes_")}, "of one length"),
    "no modes": ({"nodes_modes": None}, "nodes_modes for 3 nodes, got 0"),
    "modes are short": ({"nodes_modes": ["BRANCH_LEQ", "LEAF"]}, "nodes_modes for 3 nodes, got 2"),
    "modes are unknown": ({"nodes_modes": ["BRANCH_LEX", "LEAF", "LEAF"]}, "compare by BRANCH_LEX"),
    "modes are no text": ({"nodes_modes": [b"\xff\xfe", "LEAF", "LEAF"]}, "compare by"),
    "values are missing": ({"nodes_values": None}, "nodes_values for 3 nodes, got 0"),
    "values are short": ({"nodes_values": [0.5]}, "nodes_values for 3 nodes, got 1"),
    "missing values are short": ({"nodes_missing_value_tracks_true": [1]}, "tracks_true for 3 nodes, got 1"),
    "a feature beyond the last": ({"nodes_featureids": [5, 0, 0]}, "features 0 to 5 of 5"),
    "a feature before the first": ({"nodes_featureids": [-1, 0, 0]}, "features -1 to 0 of 5"),
    "a huge feature": ({"nodes_featureids": [2**62, 0, 0]}, "of 5"),
    "no targets": ({"n_targets": 0}, "number of targets"),
    "negative targets": ({"n_targets": -3}, "number of targets"),
    "too many targets": ({"n_targets": 2**40}, "number of targets"),
    "a target beyond the last": ({"target_ids": [0, 1]}, "for target 1 of 1"),
    "a negative target": ({"target_ids": [0, -1]}, "for target -1 of 1"),
    "a weight of no node": ({"target_nodeids": [1, 7]}, "has no node 7"),
    "a weight of no tree": ({"target_treeids": [0, 4]}, "tree 4 has no node"),
    "a weight of a decision": ({"target_nodeids": [0, 2]}, "no leaf"),
    "two nodes of one name": ({"nodes_nodeids": [0, 1, 1]}, "two nodes 1"),
    "a child that is none": ({"nodes_truenodeids": [9, 0, 0]}, "has no node 9"),
    "a negative child": ({"nodes_truenodeids": [-1, 0, 0]}, "has no node -1"),
    "a node behind itself": ({"nodes_truenodeids": [0, 0, 0]}, "root"),
    "a circle": (
        _ALL_BRANCHES | {"nodes_truenodeids": [1, 2, 0], "nodes_falsenodeids": [1, 2, 0]},
        "expected one root",
    ),
    "a circle beside a leaf": (
        {
            "nodes_modes": ["LEAF", "BRANCH_LEQ", "BRANCH_LEQ"],
            "nodes_truenodeids": [0, 2, 1],
            "nodes_falsenodeids": [0, 2, 1],
            "target_nodeids": [0, 0],
        },
        "circles",
    ),
    "ways that join": (
        {
            "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"],
            "nodes_truenodeids": [1, 2, 0],
            "nodes_falsenodeids": [2, 2, 0],
            "target_nodeids": [2, 2],
        },
        "joins ways",
    ),
    "two roots": ({"nodes_falsenodeids": [1, 0, 0], "target_nodeids": [1, 1]}, "expected one root for tree 0, found 2"),
    "a long chain": (_chain(), "more than 1000 decisions"),
    "too many base values": ({"base_values": [1.0, 2.0]}, "base_values"),
    "features are floats": ({"nodes_featureids": [0.5, 0.0, 0.0]}, ""),
    "values are text": ({"nodes_values": ["a", "b", "c"]}, ""),
}


def _ensemble(changes: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    given = {name: value for name, value in (_STUMP | changes).items() if value is not None}
    return one_node("TreeEnsembleRegressor", [numbers(4, 5)], domain=_ML, **given)


def test_the_stump_and_a_leaf_alone_are_right() -> None:
    assert_agrees(*_ensemble({}))
    alone: dict[str, Any] = {name: value[1:2] for name, value in _STUMP.items() if name.startswith("nodes_")}
    alone |= {name: value[:1] for name, value in _STUMP.items() if name.startswith("target_")}
    assert_agrees(*_ensemble(alone))


@pytest.mark.parametrize("case", _HOSTILE)
def test_hostile_trees_are_told(case: str) -> None:
    """One error in one line, that names the node."""
    changes, said = _HOSTILE[case]
    model, _ = _ensemble(changes)
    with pytest.raises(MlirtError, match=r"TreeEnsembleRegressor.*'node'") as caught:
        imported_text(model)
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"classlabels_ints": None}, "labels that are strings"),
        ({"coefficients": [1.0, 2.0, 3.0]}, "expected coefficients for 2 labels of 5 features, got 3"),
        ({"coefficients": None}, "coefficients"),
        ({"intercepts": [1.0, 2.0, 3.0]}, "expected intercepts for 2 labels, got 3"),
    ],
)
def test_hostile_linear_classifiers_are_told(changes: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"classlabels_ints": [1, 2], "coefficients": [0.5] * 10} | changes
    given = {name: value for name, value in given.items() if value is not None}
    model, _ = one_node("LinearClassifier", [numbers(4, 5)], domain=_ML, **given)
    with pytest.raises(MlirtError, match=f"LinearClassifier.*{said}"):
        imported_text(model)


_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")


def _tensor(name: str, values: Any, element: str) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, element), name)


def _ensemble_of(count: int, depth: int, targets: int, element: str, modes: tuple[int, ...]) -> dict[str, Any]:
    """Random trees as TreeEnsemble has them, of the modes with these numbers; some of their ways end early."""
    random = np.random.default_rng(count + depth)
    made: dict[str, list[Any]] = {name: [] for name in ("modes", "featureids", "splits", "missing_value_tracks_true")}
    made |= {f"{way}{part}": [] for way in ("true", "false") for part in ("nodeids", "leafs")}
    leaves: list[int] = []
    members: list[float] = []

    def grow(left: int) -> tuple[int, int]:
        if not left or (left < depth and random.random() < 0.3):
            leaves.append(int(random.integers(targets)))
            return len(leaves) - 1, 1
        place, mode = len(made["modes"]), int(random.choice(modes))
        for name in made:
            made[name].append(0)
        made["modes"][place], made["featureids"][place] = mode, int(random.integers(5))
        made["splits"][place] = float(random.integers(-2, 3)) / 2
        made["missing_value_tracks_true"][place] = int(random.integers(2))
        if _MODES[mode] == "BRANCH_MEMBER":
            members.extend([*random.choice([-1.0, -0.5, 0.0, 0.5, 1.0], random.integers(1, 4), replace=False), np.nan])
        for way in ("true", "false"):
            made[f"{way}nodeids"][place], made[f"{way}leafs"][place] = grow(left - 1)
        return place, 0

    roots = [grow(depth)[0] for _ in range(count)]
    given: dict[str, Any] = {f"nodes_{name}": values for name, values in made.items()}
    given["nodes_modes"] = _tensor("modes", made["modes"], "uint8")
    given["nodes_splits"] = _tensor("splits", made["splits"], element)
    given["leaf_weights"] = _tensor("weights", random.standard_normal(len(leaves)), element)
    if members:
        given["membership_values"] = _tensor("members", members, element)
    return given | {"leaf_targetids": leaves, "tree_roots": roots, "n_targets": targets}


def _one_ensemble(x: Any, given: dict[str, Any]) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A model of a TreeEnsemble, which is of opset 5, and its feeds."""
    model, feeds = one_node("TreeEnsemble", [x], domain=_ML, **given)
    next(one for one in model.opset_import if one.domain == _ML).version = 5
    return model, feeds


def _halves(rows: int, element: str) -> Any:
    """Multiples of 0.5, so that some equal what decisions compare with, and a row with missing ones."""
    x = np.random.default_rng(rows).integers(-3, 4, (rows, 5)).astype(element) / 2
    x[2, :3] = np.nan
    return x


@pytest.mark.parametrize("element", ["float32", "float64"])
@pytest.mark.parametrize("mode", range(6), ids=_MODES[:6])
def test_ensembles_by_each_comparison(mode: int, element: str) -> None:
    given = _ensemble_of(5, 4, 1, element, (mode,))
    assert_agrees(*_one_ensemble(_halves(20, element), given))


@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
@pytest.mark.parametrize("targets", [1, 3])
def test_ensembles_by_aggregate(aggregate: int, targets: int) -> None:
    given = _ensemble_of(9, 3, targets, "float32", (0,)) | {"aggregate_function": aggregate}
    assert_agrees(*_one_ensemble(_halves(11, "float32"), given))


@pytest.mark.parametrize("transform", [1, 2], ids=["softmax", "logistic"])
@pytest.mark.parametrize("targets", [1, 3])
def test_ensembles_by_transform(transform: int, targets: int) -> None:
    """Against the scores that are not transformed: onnxruntime numbers the transforms otherwise than ONNX."""
    given, x = _ensemble_of(9, 3, targets, "float32", (0,)), _halves(11, "float32")
    (scores,) = run_reference(*_one_ensemble(x, given))
    (got,) = run_reference(*_one_ensemble(x, given | {"post_transform": transform}))
    grown = np.exp(scores)
    want = grown / grown.sum(axis=1, keepdims=True) if transform == 1 else grown / (1 + grown)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_nodes_compare_each_by_its_own_mode_and_sets_are_written_out() -> None:
    """Held against a walk in Python: not every runtime takes mixed modes."""
    given = _ensemble_of(7, 4, 2, "float32", (0, 3, 4, 5, 6))
    x = _halves(40, "float32")
    model, feeds = _one_ensemble(x, given)
    engine = mlirt.compile(model, target="cpu")
    (got,) = engine.run(feeds).values()
    np.testing.assert_allclose(got, _walked(given, x), rtol=1e-5, atol=1e-5)


def _walked(given: dict[str, Any], x: Any) -> Any:
    modes, splits, weights, values = (
        numpy_helper.to_array(given[name])
        for name in ("nodes_modes", "nodes_splits", "leaf_weights", "membership_values")
    )
    sets = iter(" ".join("|" if np.isnan(value) else str(value) for value in values).split("|"))
    members = {k: [float(v) for v in next(sets).split()] for k, mode in enumerate(modes) if mode == 6}
    out = np.zeros((len(x), given["n_targets"]))
    for row, sample in enumerate(x):
        for root in given["tree_roots"]:
            place, is_leaf = root, 0
            while not is_leaf:
                value, limit = sample[given["nodes_featureids"][place]], splits[place]
                holds = [
                    value <= limit, value < limit, value >= limit, value > limit, value == limit, value != limit,
                    value in members.get(place, ()),
                ][modes[place]]  # fmt: skip
                holds |= np.isnan(value) and given["nodes_missing_value_tracks_true"][place]
                way = "true" if holds else "false"
                place, is_leaf = given[f"nodes_{way}nodeids"][place], given[f"nodes_{way}leafs"][place]
            out[row, given["leaf_targetids"][place]] += weights[place]
    return out


_BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a list is short": ({"nodes_featureids": [0]}, "of one length"),
    "a mode that is none": ({"nodes_modes": _tensor("modes", [0, 9], "uint8")}, "nodes_modes from 0 to 6, got 9"),
    "a leaf beyond the last": ({"nodes_truenodeids": [1, 7]}, "goes on to leaf 7 of 3"),
    "a decision before the first": ({"nodes_truenodeids": [-1, 0]}, "goes on to decision -1 of 2"),
    "a circle": ({"nodes_truenodeids": [0, 0]}, "round in circles"),
    "a root beyond the last": ({"tree_roots": [2]}, "tree_roots from 0 to 1"),
    "no root": ({"tree_roots": None}, "tree_roots"),
    "a target beyond the last": ({"leaf_targetids": [0, 0, 1]}, "of 1"),
    "a feature beyond the last": ({"nodes_featureids": [0, 5]}, "features 0 to 5 of 5"),
    "no set": ({"nodes_modes": _tensor("modes", [0, 6], "uint8")}, "membership_values"),
    "one set for two": (
        {"nodes_modes": _tensor("modes", [6, 6], "uint8"), "membership_values": _tensor("m", [1.0], "float32")},
        "expected sets for 2 decisions",
    ),
    "an aggregate that is none": ({"aggregate_function": 4}, "aggregate_function from 0 to 3"),
    "a transform that is not read": ({"post_transform": 4}, "PROBIT"),
    "too many targets": ({"n_targets": 2**40}, "number of targets"),
    "a weight is missing": ({"leaf_targetids": [0, 0]}, "leaf_weights has 3"),
}


@pytest.mark.parametrize("case", _BAD)
def test_hostile_ensembles_are_told(case: str) -> None:
    changes, said = _BAD[case]
    given: dict[str, Any] = {
        "nodes_modes": _tensor("modes", [0, 0], "uint8"),
        "nodes_splits": _tensor("splits", [0.0, 0.5], "float32"),
        "nodes_featureids": [0, 1],
        "nodes_truenodeids": [1, 0],
        "nodes_trueleafs": [0, 1],
        "nodes_falsenodeids": [2, 1],
        "nodes_falseleafs": [1, 1],
        "leaf_weights": _tensor("weights", [1.0, 2.0, 3.0], "float32"),
        "leaf_targetids": [0, 0, 0],
        "tree_roots": [0],
        "n_targets": 1,
    }
    x = numbers(4, 5)
    assert_agrees(*_one_ensemble(x, given))
    model, _ = _one_ensemble(x, given | changes)
    with pytest.raises(MlirtError, match=r"TreeEnsemble.*'node'") as caught:
        imported_text(model)
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("kind", ["MIN", "MAX"])
def test_the_least_and_the_largest_of_trees(kind: str) -> None:
    given: dict[str, Any] = {"n_targets": 2, "aggregate_function": kind} | _trees(6, 3, "target", 2)
    assert_agrees(*one_node("TreeEnsembleRegressor", [numbers(9, 5)], domain=_ML, **given))
