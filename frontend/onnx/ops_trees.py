"""Trees of decisions and linear classifiers of the domain ai.onnx.ml, as scikit-learn's converters write them."""

from __future__ import annotations

import numpy as np

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.number_arrays import Array
from mlirt.frontend.onnx.ensemble_tables import ensemble_of
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.tree_tables import Trees

_DOMAIN = "ai.onnx.ml"
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")  # as TreeEnsemble numbers them
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


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
    labels, given, x = _labels(node), node.reals("coefficients"), layers.cast(net, node.input(0), "float32")
    width = x.dims[-1]
    if not given or len(given) % len(labels) or (isinstance(width, int) and len(given) != len(labels) * width):
        raise node.invalid(f"expected coefficients for {len(labels)} labels of {width} features, got {len(given)}")
    coefficients = np.array(given, np.float32).reshape(len(labels), -1)
    scores = layers.matrix_multiply(net, x, net.constant(coefficients), rhs_op="transpose")
    if node.has("intercepts"):
        intercepts = np.array([node.reals("intercepts")], np.float32)
        if intercepts.size not in (1, len(labels)):
            raise node.invalid(f"expected intercepts for {len(labels)} labels, got {intercepts.size}")
        scores = layers.binary(net, "sum", scores, net.constant(intercepts))
    return [_label_of(net, scores, labels), _transformed(net, node, scores)]


@onnx_op("TreeEnsembleRegressor", domain=_DOMAIN)
def tree_ensemble_regressor(net: Network, node: Node) -> Value:
    """What the leaves of all trees have for each target, as a sum or an average."""
    kind = node.text("aggregate_function", "SUM")
    if kind not in _AGGREGATES:
        raise node.invalid(f"expected aggregate_function to be one of {', '.join(_AGGREGATES)}, got {kind}")
    trees = Trees.of(node, "target", node.integer("n_targets", 1))
    return _transformed(net, node, _with_base(net, node, _aggregate(net, node, trees, kind)))


@onnx_op("TreeEnsemble", domain=_DOMAIN)
def tree_ensemble(net: Network, node: Node) -> Value:
    """What the leaves of all trees have for each target, in the type of the input."""
    kind, transform = node.integer("aggregate_function", 1), node.integer("post_transform", 0)
    for name, number, known in (("aggregate_function", kind, _AGGREGATES), ("post_transform", transform, _TRANSFORMS)):
        if not 0 <= number < len(known):
            raise node.invalid(f"expected {name} from 0 to {len(known) - 1}, got {number}")
    total = _aggregate(net, node, ensemble_of(node), _AGGREGATES[kind])
    return _transform(net, node, total, _TRANSFORMS[transform])


@onnx_op("TreeEnsembleClassifier", domain=_DOMAIN)
def tree_ensemble_classifier(net: Network, node: Node) -> list[Value]:
    """The label with the largest sum over the leaves of all trees, and these sums after a transform."""
    labels = _labels(node)
    if len(labels) == 2:
        return _binary_classes(net, node, labels)
    scores = _with_base(net, node, _total(net, node, Trees.of(node, "class", len(labels))))
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
    trees = Trees.of(node, "class", 1)
    score = _with_base(net, node, _total(net, node, trees))
    positive = not (trees.weights < 0).any()
    first = layers.scalar_like(net, 1.0 if positive and kind == "NONE" else 0.0, score)
    both = layers.concatenate(net, [layers.binary(net, "sub", first, score), score], 1)
    wins = layers.binary(net, "greater", score, layers.scalar_like(net, 0.5 if positive else 0.0, score))
    names = [net.constant(np.full((1, 1), label, np.int64)) for label in reversed(labels)]
    label = layers.reshape(net, layers.select(net, wins, *names), [score.dims[0]])
    return [label, _transformed(net, node, both)]


def _aggregate(net: Network, node: Node, trees: Trees, kind: str) -> Value:
    """[N, targets]: the sum, average, minimum or maximum over all trees; of a target that no leaf names it is zero."""
    if kind in ("SUM", "AVERAGE"):
        total = _total(net, node, trees)
        count = layers.scalar_like(net, len(trees.roots), total)
        return layers.binary(net, "div", total, count) if kind == "AVERAGE" else total
    places = _leaves(net, node, trees)
    absent = np.array(np.inf if kind == "MIN" else -np.inf, trees.weights.dtype)
    rows = _row(net, np.where(trees.given, trees.weights, absent), places)
    best = layers.reduce(net, kind.lower(), rows, [1], keep_dims=False)
    if trees.given[trees.when_true == np.arange(len(trees.given))].all():  # each leaf names every target
        return best
    named = layers.reduce(net, "max", _row(net, trees.given.astype(trees.weights.dtype), places), [1], keep_dims=False)
    zero = layers.scalar_like(net, 0, best)
    return layers.select(net, layers.binary(net, "greater", named, zero), best, zero)


def _total(net: Network, node: Node, trees: Trees) -> Value:
    """[N, targets]: the sums over all trees."""
    return layers.reduce(net, "sum", _row(net, trees.weights, _leaves(net, node, trees)), [1], keep_dims=False)


def _leaves(net: Network, node: Node, trees: Trees) -> Value:
    """[N, trees]: the leaves that are reached; all trees are walked side by side, a decision at a time."""
    x = layers.cast(net, node.input(0), trees.limits.dtype.name)
    count = len(trees.roots)
    place = layers.expand(net, net.constant(trees.roots.astype(np.int64)[None]), [x.dims[0], count])
    for _ in range(trees.depth):
        feature, limit, yes, no, missing = (
            _row(net, table, place)
            for table in (trees.features, trees.limits, trees.when_true, trees.when_false, trees.missing)
        )
        value = net.emit("gather", [x, feature], mode="element", axis=1)
        holds = _holds(net, trees, place, value, limit)
        if trees.missing.any():
            absent = layers.binary(net, "and", layers.unary(net, "isnan", value), missing)
            holds = layers.binary(net, "or", holds, absent)
        place = layers.select(net, holds, yes, no)
    return place


def _holds(net: Network, trees: Trees, place: Value, value: Value, limit: Value) -> Value:
    """What the nodes decide, each by its own comparison."""
    found = [_compare(net, comparison, value, limit) for comparison in trees.comparisons]
    if len(found) == 1:
        return found[0]
    kind, holds = _row(net, trees.kinds, place), found[0]
    for number, one in enumerate(found[1:], 1):
        is_own = layers.binary(net, "equal", kind, layers.scalar_like(net, number, kind))
        holds = layers.select(net, is_own, one, holds)
    return holds


def _compare(net: Network, comparison: str, value: Value, limit: Value) -> Value:
    if comparison == "not_equal":
        return layers.unary(net, "not", layers.binary(net, "equal", value, limit))
    return layers.binary(net, comparison, value, limit)


def _row(net: Network, table: Array, places: Value) -> Value:
    kept = table.astype(np.int64) if table.dtype.kind == "i" else table
    return net.emit("gather", [net.constant(kept), places], mode="default", axis=0)


def _with_base(net: Network, node: Node, scores: Value) -> Value:
    base, width = node.reals("base_values", []), scores.dims[1]
    if base and len(base) not in (1, width):
        raise node.invalid(f"expected base_values for 1 or {width} results, got {len(base)}")
    return layers.binary(net, "sum", scores, net.constant(np.array([base], np.float32))) if base else scores


def _labels(node: Node) -> list[int]:
    for name in ("classlabels_int64s", "classlabels_ints"):
        if node.has(name):
            labels = node.integers(name)
            if not labels:
                raise node.invalid(f"expected at least one label in {name}")
            return labels
    raise node.unsupported("labels that are strings; export the classifier with integer labels")


def _label_of(net: Network, scores: Value, labels: list[int]) -> Value:
    best = net.emit_many("topk", [scores], 2, kind="max", k=1, axis=1)[1]
    found = net.emit("gather", [net.constant(np.array(labels, np.int64)), best], mode="default", axis=0)
    return layers.reshape(net, found, [scores.dims[0]])


def _transformed(net: Network, node: Node, scores: Value) -> Value:
    return _transform(net, node, scores, node.text("post_transform", "NONE"))


def _transform(net: Network, node: Node, scores: Value, kind: str) -> Value:
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return layers.activation(net, "sigmoid", scores)
    if kind == "SOFTMAX":
        return net.emit("softmax", [scores], axis=scores.rank - 1)
    raise node.unsupported(f"post_transform {kind}; NONE, LOGISTIC and SOFTMAX are read")
