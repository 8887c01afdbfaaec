"""Nodes in an order in which each comes after what it reads."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from mlirt.errors import InvalidModelError
from mlirt.frontend.onnx.node_order import ordered_nodes, tensors_read


def chain(*edges: tuple[str, str]) -> list[onnx.NodeProto]:
    return [helper.make_node("Relu", [source], [target], name=target) for source, target in edges]


def names(nodes: list[onnx.NodeProto], wanted: list[str]) -> list[str]:
    return [node.name for _, node in ordered_nodes(nodes, {"x"}, wanted)]


def test_a_good_order_is_kept() -> None:
    nodes = chain(("x", "a"), ("x", "b"), ("b", "c"), ("a", "d"))
    assert names(nodes, ["d", "c"]) == ["a", "b", "c", "d"]


def test_a_bad_order_is_mended() -> None:
    assert names(chain(("a", "b"), ("x", "a")), ["b"]) == ["a", "b"]


def test_what_nothing_needs_is_left_out() -> None:
    assert names(chain(("x", "a"), ("x", "b")), ["b"]) == ["b"]


def test_long_chains_need_no_recursion() -> None:
    nodes = chain(*((f"t{k - 1}" if k else "x", f"t{k}") for k in range(5000)))
    assert len(names(nodes[::-1], ["t4999"])) == 5000


def test_a_cycle_is_found() -> None:
    with pytest.raises(InvalidModelError, match="the graph has a cycle"):
        names(chain(("c", "a"), ("a", "b"), ("b", "c")), ["b"])


def test_subgraphs_read_from_around_them() -> None:
    branch = helper.make_graph([helper.make_node("Add", ["a", "b"], ["r"])], "g", [], [onnx.ValueInfoProto(name="r")])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    assert sorted(set(tensors_read(node))) == ["a", "b", "c"]
