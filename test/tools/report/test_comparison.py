"""Launches of two engines meet in the fewest groups that have the same layers."""

from __future__ import annotations

from mlirt.tools.report.comparison import Group, groups


def test_other_fusions_of_the_same_layers_share_a_group() -> None:
    ours = [("conv", "relu"), ("pool",), ("product",)]
    theirs = [("conv",), ("relu", "pool"), ("product",)]
    assert groups(ours, theirs) == [
        Group(("conv", "relu", "pool"), (0, 1), (0, 1)),
        Group(("product",), (2,), (2,)),
    ]


def test_layers_of_one_engine_alone() -> None:
    assert groups([("a",), ()], [("b",)]) == [Group(("a",), (0,), ()), Group(("b",), (), (0,))]
