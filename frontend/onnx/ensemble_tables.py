"""The trees of a TreeEnsemble node as tables: its decisions and its leaves are lists that name places in each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.frontend.importing.number_arrays import Array
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.tree_tables import COMPARISONS, Trees, check_depth, check_features, check_targets, compared

_MODES = (*COMPARISONS, "BRANCH_MEMBER")  # as the operator numbers them
_MEMBER, _EQUAL = "BRANCH_MEMBER", "BRANCH_EQ"
_LISTS = ("featureids", "truenodeids", "trueleafs", "falsenodeids", "falseleafs")


def ensemble_of(node: Node) -> Trees:
    """The trees of a TreeEnsemble node; raises `InvalidModelError` where its lists are none.

    A decision by membership in a set is one by equality with each member, one behind the other.
    """
    lists = {name: node.integers(f"nodes_{name}") for name in _LISTS}
    limits, numbers = (_list(node, f"nodes_{name}") for name in ("splits", "modes"))
    missing = node.integers("nodes_missing_value_tracks_true", []) or [0] * len(limits)
    lengths = {name: len(values) for name, values in (lists | {"splits": limits, "modes": numbers}).items()}
    if len({*lengths.values(), len(missing)}) != 1 or not len(limits):
        told = ", ".join(f"nodes_{name} has {length}" for name, length in lengths.items())
        raise node.invalid(f"expected lists of one length, an element for each decision: {told}")
    weights, targets = _list(node, "leaf_weights"), node.integers("leaf_targetids")
    if len(weights) != len(targets) or not targets:
        raise node.invalid(
            f"expected a weight for each leaf: leaf_weights has {len(weights)}, leaf_targetids {len(targets)}"
        )
    modes = [_mode(node, int(number)) for number in numbers]
    places = {
        name: _nexts(node, name, lists[f"{name}nodeids"], lists[f"{name}leafs"], len(modes), len(targets))
        for name in ("true", "false")
    }
    rows = _Rows(modes, lists["featureids"], limits, missing, places["true"], places["false"])
    rows.write_out_members(node)
    return _trees(node, rows, weights, targets)


def _trees(node: Node, rows: _Rows, weights: Array, targets: Sequence[int]) -> Trees:
    """The tables: first the decisions, then the leaves."""
    count, leaves, width = len(rows.modes), len(targets), node.integer("n_targets", 1)
    check_targets(node, width, count + leaves)
    if not all(0 <= target < width for target in targets):
        raise node.invalid(f"a leaf has a weight for target {min(targets)} or {max(targets)} of {width}")
    features = np.array([*rows.features, *[0] * leaves], np.int64)
    check_features(node, features)
    own = range(count, count + leaves)
    nexts = [np.array([*_placed(following, count), *own]) for following in (rows.when_true, rows.when_false)]
    roots = np.array(node.integers("tree_roots"), np.int64)
    if not roots.size or roots.min() < 0 or roots.max() >= count:
        raise node.invalid(f"expected tree_roots from 0 to {count - 1}, got {roots.tolist()[:9]}")
    kinds, comparisons = compared(node, [*rows.modes, *[""] * leaves])
    table, given = np.zeros((count + leaves, width), weights.dtype), np.zeros((count + leaves, width), bool)
    table[own, targets] = weights
    given[own, targets] = True
    return Trees(
        roots,
        features,
        np.concatenate([np.array(rows.limits, weights.dtype), np.zeros(leaves, weights.dtype)]),
        nexts[0],
        nexts[1],
        np.array([*rows.missing, *[0] * leaves], bool),
        table,
        given,
        kinds,
        comparisons,
        _depth(node, roots, nexts, count),
    )


class _Rows:
    """What each decision compares, and where it goes on: a place in this list, or -1 - a place in that of leaves."""

    def __init__(
        self,
        modes: Sequence[str],
        features: Sequence[int],
        limits: Array,
        missing: Sequence[int],
        when_true: Sequence[int],
        when_false: Sequence[int],
    ) -> None:
        self.modes, self.features, self.limits = list(modes), list(features), [float(limit) for limit in limits]
        self.missing, self.when_true, self.when_false = list(missing), list(when_true), list(when_false)

    def write_out_members(self, node: Node) -> None:
        """Replace decisions by membership; the members of their sets stand in their order, a NaN behind each set."""
        own = [place for place, mode in enumerate(self.modes) if mode == _MEMBER]
        if not own:
            return
        values = _list(node, "membership_values")
        ends = np.flatnonzero(np.isnan(values))
        sets = [part[~np.isnan(part)] for part in np.split(values, ends + 1)][: max(len(ends), 1)]
        if len(sets) != len(own):
            raise node.invalid(f"expected sets for {len(own)} decisions by membership, got {len(sets)}")
        for place, members in zip(own, sets, strict=True):
            self._write_out(place, [float(member) for member in members] or [float("nan")])

    def _write_out(self, place: int, members: Sequence[float]) -> None:
        otherwise = self.when_false[place]
        self.modes[place], self.limits[place] = _EQUAL, members[0]
        last = place
        for member in members[1:]:
            self.when_false[last] = last = len(self.modes)
            self.modes.append(_EQUAL)
            self.features.append(self.features[place])
            self.limits.append(member)
            self.missing.append(self.missing[place])
            self.when_true.append(self.when_true[place])
            self.when_false.append(otherwise)


def _list(node: Node, name: str) -> Array:
    values = node.tensor(name)
    if values.ndim != 1:
        raise node.invalid(f"expected {name} with one axis, got {values.ndim}")
    return values


def _mode(node: Node, number: int) -> str:
    if not 0 <= number < len(_MODES):
        raise node.invalid(f"expected nodes_modes from 0 to {len(_MODES) - 1}, got {number}")
    return _MODES[number]


def _nexts(node: Node, name: str, places: Sequence[int], leafs: Sequence[int], nodes: int, leaves: int) -> list[int]:
    for place, is_leaf in zip(places, leafs, strict=True):
        if not 0 <= place < (leaves if is_leaf else nodes):
            what = f"leaf {place} of {leaves}" if is_leaf else f"decision {place} of {nodes}"
            raise node.invalid(f"nodes_{name}nodeids goes on to {what}")
    return [-1 - place if is_leaf else place for place, is_leaf in zip(places, leafs, strict=True)]


def _placed(following: Sequence[int], count: int) -> list[int]:
    return [place if place >= 0 else count - 1 - place for place in following]


def _depth(node: Node, roots: Array, nexts: Sequence[Array], count: int) -> int:
    """How many decisions the longest way has; ways may join, but not go round in circles."""
    reached, depth = roots, 0
    while (inner := reached[reached < count]).size:
        reached, depth = np.unique(np.concatenate([following[inner] for following in nexts])), depth + 1
        if depth > count:
            raise node.invalid("its decisions go round in circles")
        check_depth(node, depth)
    return depth


__all__ = ["ensemble_of"]
