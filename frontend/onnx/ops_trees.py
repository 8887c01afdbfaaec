"""Trees of decisions and linear classifiers of the domain ai.onnx.ml, as scikit-learn's converters write them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.number_arrays import Array
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node

_DOMAIN = "ai.onnx.ml"
_COMPARISONS = {
    "BRANCH_LEQ": "less_equal",
    "BRANCH_LT": "less",
    "BRANCH_GTE": "greater_equal",
    "BRANCH_GT": "greater",
    "BRANCH_EQ": "equal",
}


@onnx_op("ArrayFeatureExtractor", domain=_DOMAIN)
def array_feature_extractor(net: Network, node: Node) -> Value:
    """The columns of the last axis that a list names."""
    x, columns = node.input(0), node.input(1)
    count = columns.dims[-1]
    result = net.emit("gather", [x, layers.reshape(net, columns, [count])], mode="default", axis=x.rank - 1)
    return layers.reshape(net, result, [1, count]) if x.rank == 1 else result


@onnx_op("LinearClassifier", domain=_DOMAIN)
def linear_classifier(net: Network, node: Node) -> list[Value]:
    """The label of the largest of `x @ coefficients + intercepts`, and these scores after a transform."""
    labels = _labels(node)
    coefficients = np.array(node.reals("coefficients"), np.float32).reshape(len(labels), -1)
    x = layers.cast(net, node.input(0), "float32")
    scores = layers.matrix_multiply(net, x, net.constant(coefficients), rhs_op="transpose")
    if node.has("intercepts"):
        intercepts = np.array([node.reals("intercepts")], np.float32)
        scores = layers.binary(net, "sum", scores, net.constant(intercepts))
    return [_label_of(net, scores, labels), _transformed(net, node, scores)]


@onnx_op("TreeEnsembleRegressor", domain=_DOMAIN)
def tree_ensemble_regressor(net: Network, node: Node) -> Value:
    """What the leaves of all trees have for each target, as a sum or an average."""
    kind = node.text("aggregate_function", "SUM")
    if kind not in ("SUM", "AVERAGE"):
        raise node.unsupported(f"aggregate_function {kind}; only SUM and AVERAGE are read")
    trees = _Trees.of(node, "target", node.integer("n_targets", 1))
    total = _total(net, node, trees)
    if kind == "AVERAGE":
        total = layers.binary(net, "div", total, layers.scalar_like(net, len(trees.roots), total))
    return _transformed(net, node, _with_base(net, node, total))


@onnx_op("TreeEnsembleClassifier", domain=_DOMAIN)
def tree_ensemble_classifier(net: Network, node: Node) -> list[Value]:
    """The label with the largest sum over the leaves of all trees, and these sums after a transform."""
    labels = _labels(node)
    if len(labels) == 2:
        return _binary_classes(net, node, labels)
    scores = _with_base(net, node, _total(net, node, _Trees.of(node, "class", len(labels))))
    return [_label_of(net, scores, labels), _transformed(net, node, scores)]


def _binary_classes(net: Network, node: Node, labels: list[int]) -> list[Value]:
    """Two labels, and leaves that name class 0 alone, as converters write it: their sum p decides for the second label.

    Where no weight is negative it has to exceed 0.5, else 0. The scores are 1 - p and p where p is a probability that
    nothing transforms, else -p and p.
    """
    kind = node.text("post_transform", "NONE")
    if kind not in ("NONE", "LOGISTIC"):
        raise node.unsupported(f"post_transform {kind} of two labels; NONE and LOGISTIC are read")
    if any(node.integers("class_ids")) or len(node.reals("base_values", [])) > 1:
        raise node.unsupported("two labels and leaves that name class 1, or a base value for each")
    trees = _Trees.of(node, "class", 1)
    score = _with_base(net, node, _total(net, node, trees))
    positive = not (trees.weights < 0).any()
    first = layers.scalar_like(net, 1.0 if positive and kind == "NONE" else 0.0, score)
    both = layers.concatenate(net, [layers.binary(net, "sub", first, score), score], 1)
    wins = layers.binary(net, "greater", score, layers.scalar_like(net, 0.5 if positive else 0.0, score))
    names = [net.constant(np.full((1, 1), label, np.int64)) for label in reversed(labels)]
    label = layers.reshape(net, layers.select(net, wins, *names), [score.dims[0]])
    return [label, _transformed(net, node, both)]


@dataclass(frozen=True)
class _Trees:
    """Trees as tables over all nodes: where each goes on (a leaf: to itself), and what it has for each target."""

    roots: Array
    features: Array
    limits: Array
    when_true: Array
    when_false: Array
    missing: Array
    weights: Array
    comparison: str
    depth: int

    @classmethod
    def of(cls, node: Node, prefix: str, targets: int) -> _Trees:
        places = _places(node)
        trees, modes = node.integers("nodes_treeids"), _modes(node)
        own, is_leaf = np.arange(len(trees)), np.array([mode == "LEAF" for mode in modes])
        found = sorted({mode for mode in modes if mode != "LEAF"})
        if len(found) > 1 or any(mode not in _COMPARISONS for mode in found):
            raise node.unsupported(f"trees that compare by {' and '.join(found)}")
        nexts = [
            np.array([place if leaf else _place(node, places, (tree, child)) for place, leaf, tree, child in rows])
            for name in ("true", "false")
            for rows in [zip(own, is_leaf, trees, node.integers(f"nodes_{name}nodeids"), strict=True)]
        ]
        inner = own[~is_leaf]
        roots = np.setdiff1d(own, np.concatenate([nexts[0][inner], nexts[1][inner]]))
        weights = np.zeros((len(trees), targets), np.float32)
        leaves = zip(*(node.integers(f"{prefix}_{name}") for name in ("treeids", "nodeids", "ids")), strict=True)
        for (tree, leaf, target), weight in zip(leaves, node.reals(f"{prefix}_weights"), strict=True):
            if not 0 <= target < targets:
                raise node.invalid(f"a leaf has a weight for target {target} of {targets}")
            weights[_place(node, places, (tree, leaf)), target] += weight
        return cls(
            roots,
            np.where(is_leaf, 0, node.integers("nodes_featureids")),
            np.array(node.reals("nodes_values"), np.float32),
            nexts[0],
            nexts[1],
            np.array(node.integers("nodes_missing_value_tracks_true", [0] * len(trees)), bool),
            weights,
            _COMPARISONS[found[0]] if found else "less_equal",
            _depth(node, roots, nexts, is_leaf),
        )


def _places(node: Node) -> dict[tuple[int, int], int]:
    names = zip(node.integers("nodes_treeids"), node.integers("nodes_nodeids"), strict=True)
    return {name: place for place, name in enumerate(names)}


def _place(node: Node, places: dict[tuple[int, int], int], name: tuple[int, int]) -> int:
    if name not in places:
        raise node.invalid(f"tree {name[0]} has no node {name[1]}")
    return places[name]


def _modes(node: Node) -> list[str]:
    return [mode.decode() for mode in node.attributes["nodes_modes"].strings]


def _depth(node: Node, roots: Array, nexts: list[Array], is_leaf: Array) -> int:
    """How many decisions the longest way has."""
    reached, depth = roots, 0
    while (inner := reached[~is_leaf[reached]]).size:
        reached, depth = np.unique(np.concatenate([nexts[0][inner], nexts[1][inner]])), depth + 1
        if depth > len(is_leaf):
            raise node.invalid("its trees have circles")
    return depth


def _total(net: Network, node: Node, trees: _Trees) -> Value:
    """[N, targets]: all trees are walked side by side, a decision at a time."""
    x = layers.cast(net, node.input(0), "float32")
    count = len(trees.roots)
    place = layers.expand(net, net.constant(trees.roots.astype(np.int64)[None]), [x.dims[0], count])
    for _ in range(trees.depth):
        feature, limit, yes, no, missing = (
            _row(net, table, place)
            for table in (trees.features, trees.limits, trees.when_true, trees.when_false, trees.missing)
        )
        value = net.emit("gather", [x, feature], mode="element", axis=1)
        holds = layers.binary(net, trees.comparison, value, limit)
        if trees.missing.any():
            absent = layers.binary(net, "and", layers.unary(net, "isnan", value), missing)
            holds = layers.binary(net, "or", holds, absent)
        place = layers.select(net, holds, yes, no)
    return layers.reduce(net, "sum", _row(net, trees.weights, place), [1], keep_dims=False)


def _row(net: Network, table: Array, places: Value) -> Value:
    kept = table.astype(np.int64) if table.dtype.kind == "i" else table
    return net.emit("gather", [net.constant(kept), places], mode="default", axis=0)


def _with_base(net: Network, node: Node, scores: Value) -> Value:
    base = node.reals("base_values", [])
    return layers.binary(net, "sum", scores, net.constant(np.array([base], np.float32))) if base else scores


def _labels(node: Node) -> list[int]:
    for name in ("classlabels_int64s", "classlabels_ints"):
        if node.has(name):
            return node.integers(name)
    raise node.unsupported("labels that are strings; export the classifier with integer labels")


def _label_of(net: Network, scores: Value, labels: list[int]) -> Value:
    best = net.emit_many("topk", [scores], 2, kind="max", k=1, axis=1)[1]
    found = net.emit("gather", [net.constant(np.array(labels, np.int64)), best], mode="default", axis=0)
    return layers.reshape(net, found, [scores.dims[0]])


def _transformed(net: Network, node: Node, scores: Value) -> Value:
    kind = node.text("post_transform", "NONE")
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return layers.activation(net, "sigmoid", scores)
    if kind == "SOFTMAX":
        return net.emit("softmax", [scores], axis=scores.rank - 1)
    raise node.unsupported(f"post_transform {kind}; NONE, LOGISTIC and SOFTMAX are read")
