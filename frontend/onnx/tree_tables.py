"""Trees of decisions as tables over all their nodes, made from the lists of a node and checked first.

`Trees.of` reads TreeEnsembleRegressor and TreeEnsembleClassifier, ensemble_tables.py what replaced them, TreeEnsemble.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mlirt.frontend.importing.number_arrays import Array
from mlirt.frontend.onnx.node import Node

COMPARISONS = {
    "BRANCH_LEQ": "less_equal",
    "BRANCH_LT": "less",
    "BRANCH_GTE": "greater_equal",
    "BRANCH_GT": "greater",
    "BRANCH_EQ": "equal",
    "BRANCH_NEQ": "not_equal",
}
_LISTS = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
# Each decision of the longest way is some layers.
_MAX_DEPTH = 1000
_MAX_WEIGHTS = 1 << 28

_Places = Mapping[tuple[int, int], int]


@dataclass(frozen=True)
class Trees:
    """Where each node goes on (a leaf: to itself), and what it has for each target: `weights`, zero where it has
    nothing, and `given`, which say where it has something. `kinds` are places in `comparisons`.
    """

    roots: Array
    features: Array
    limits: Array
    when_true: Array
    when_false: Array
    missing: Array
    weights: Array
    given: Array
    kinds: Array
    comparisons: tuple[str, ...]
    depth: int

    @classmethod
    def of(cls, node: Node, prefix: str, targets: int) -> Trees:
        """The trees of a node; raises `InvalidModelError` where its lists are none."""
        lists = _node_lists(node)
        modes, trees = _modes(node, len(lists["treeids"])), lists["treeids"]
        values = _reals(node, "nodes_values", len(modes))
        places = _places(node, trees, lists["nodeids"])
        own, is_leaf = np.arange(len(modes)), np.array([mode == "LEAF" for mode in modes])
        kinds, comparisons = compared(node, ["" if mode == "LEAF" else mode for mode in modes])
        features = np.where(is_leaf, 0, np.array(lists["featureids"], np.int64))
        check_features(node, features)
        nexts = [
            np.array([place if leaf else _place(node, places, (tree, child)) for place, leaf, tree, child in rows])
            for name in ("true", "false")
            for rows in [zip(own, is_leaf, trees, lists[f"{name}nodeids"], strict=True)]
        ]
        roots = _roots(node, nexts, is_leaf, np.array(trees))
        missing = node.integers("nodes_missing_value_tracks_true", [])
        if missing and len(missing) != len(modes):
            raise node.invalid(f"expected nodes_missing_value_tracks_true for {len(modes)} nodes, got {len(missing)}")
        weights, has_weight = _weights(node, prefix, places, is_leaf, targets)
        return cls(
            roots,
            features,
            values,
            nexts[0],
            nexts[1],
            np.array(missing or [0] * len(modes), bool),
            weights,
            has_weight,
            kinds,
            comparisons,
            _depth(node, roots, nexts, is_leaf),
        )


def compared(node: Node, modes: list[str]) -> tuple[Array, tuple[str, ...]]:
    """By which of some comparisons each node decides, from their modes, which are empty for leaves."""
    found = sorted({mode for mode in modes if mode}) or ["BRANCH_LEQ"]
    if unknown := [mode for mode in found if mode not in COMPARISONS]:
        raise node.unsupported(f"trees that compare by {' and '.join(unknown)}")
    number = {mode: place for place, mode in enumerate(found)} | {"": 0}
    return np.array([number[mode] for mode in modes]), tuple(COMPARISONS[mode] for mode in found)


def _node_lists(node: Node) -> dict[str, list[int]]:
    lists = {name: node.integers(f"nodes_{name}", []) for name in _LISTS}
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) != 1 or not lengths["treeids"]:
        told = ", ".join(f"nodes_{name} has {length}" for name, length in lengths.items())
        raise node.invalid(f"expected lists of one length, an element for each node of a tree: {told}")
    return lists


def _modes(node: Node, count: int) -> list[str]:
    given = node.attributes.get("nodes_modes")
    modes = [mode.decode("utf-8", "replace") for mode in given.strings] if given is not None else []
    if len(modes) != count:
        raise node.invalid(f"expected nodes_modes for {count} nodes, got {len(modes)}")
    return modes


def _reals(node: Node, name: str, count: int) -> Array:
    values = node.reals(name, [])
    if len(values) != count:
        raise node.invalid(f"expected {name} for {count} nodes, got {len(values)}")
    return np.array(values, np.float32)


def _places(node: Node, trees: list[int], names: list[int]) -> _Places:
    places: dict[tuple[int, int], int] = {}
    for place, name in enumerate(zip(trees, names, strict=True)):
        if name in places:
            raise node.invalid(f"tree {name[0]} has two nodes {name[1]}")
        places[name] = place
    return places


def _place(node: Node, places: _Places, name: tuple[int, int]) -> int:
    if name not in places:
        raise node.invalid(f"tree {name[0]} has no node {name[1]}")
    return places[name]


def check_features(node: Node, features: Array) -> None:
    x = node.input(0)
    if x.rank != 2:
        raise node.invalid(f"expected an input [samples, features], but it has rank {x.rank}")
    width, low, high = x.dims[1], int(features.min()), int(features.max())
    if low < 0 or (isinstance(width, int) and high >= width):
        raise node.invalid(f"its nodes read the features {low} to {high} of {width}")


def _roots(node: Node, nexts: list[Array], is_leaf: Array, trees: Array) -> Array:
    """The first node of each tree: the only one that no other goes to."""
    inner = np.flatnonzero(~is_leaf)
    pairs = np.unique(np.concatenate([np.stack([inner, following[inner]], 1) for following in nexts]), axis=0)
    parents = np.bincount(pairs[:, 1], minlength=len(is_leaf))
    if (parents > 1).any():
        raise node.invalid(
            f"two nodes of tree {trees[int(parents.argmax())]} go on to one; it has circles, or joins ways"
        )
    roots = np.flatnonzero(parents == 0)
    for tree, count in zip(
        *np.unique(np.concatenate([trees[roots], np.unique(trees)]), return_counts=True), strict=True
    ):
        if count != 2:
            raise node.invalid(f"expected one root for tree {tree}, found {count - 1}; none is a circle of nodes")
    return roots


def _depth(node: Node, roots: Array, nexts: list[Array], is_leaf: Array) -> int:
    """How many decisions the longest way has."""
    reached, depth, seen = roots, 0, len(roots)
    while (inner := reached[~is_leaf[reached]]).size:
        reached, depth = np.unique(np.concatenate([nexts[0][inner], nexts[1][inner]])), depth + 1
        seen += len(reached)
        check_depth(node, depth)
    if seen != len(is_leaf):
        raise node.invalid(f"no root leads to {len(is_leaf) - seen} of its nodes, which go round in circles")
    return depth


def check_depth(node: Node, depth: int) -> None:
    """Raise `UnsupportedError` for ways that are too long to be layers."""
    if depth > _MAX_DEPTH:
        raise node.unsupported(f"a tree with more than {_MAX_DEPTH} decisions on a way")


def check_targets(node: Node, targets: int, nodes: int) -> None:
    """Raise `InvalidModelError` for a number of targets that tables of so many nodes cannot have."""
    if targets < 1 or targets * nodes > _MAX_WEIGHTS:
        raise node.invalid(f"expected a number of targets from 1 on that tables can have, got {targets}")


def _weights(node: Node, prefix: str, places: _Places, is_leaf: Array, targets: int) -> tuple[Array, Array]:
    check_targets(node, targets, len(is_leaf))
    names = [f"{prefix}_{name}" for name in ("treeids", "nodeids", "ids")]
    lists, values = [node.integers(name, []) for name in names], node.reals(f"{prefix}_weights", [])
    if len({len(values), *map(len, lists)}) != 1:
        told = ", ".join(f"{name} has {len(one)}" for name, one in zip(names, lists, strict=True))
        raise node.invalid(f"expected lists of one length: {told}, {prefix}_weights has {len(values)}")
    weights, given = np.zeros((len(is_leaf), targets), np.float32), np.zeros((len(is_leaf), targets), bool)
    for tree, leaf, target, weight in zip(*lists, values, strict=True):
        if not 0 <= target < targets:
            raise node.invalid(f"a leaf has a weight for target {target} of {targets}")
        place = _place(node, places, (tree, leaf))
        if not is_leaf[place]:
            raise node.invalid(f"node {leaf} of tree {tree} has a weight, but it is no leaf")
        weights[place, target] += weight
        given[place, target] = True
    return weights, given
