"""Rewrite rules as values: patterns of layers, what takes their place, and the driver that applies them."""

from mlirt.passes.rules.conditions import Condition, either, near, positive, where
from mlirt.passes.rules.driver import RulePass, apply_rules
from mlirt.passes.rules.layers import Layer, binary, op
from mlirt.passes.rules.match import Match
from mlirt.passes.rules.patterns import Pattern, constant, each, number, optional, repeated, some, value
from mlirt.passes.rules.rule import Outcome, Rule, layer, rule

__all__ = [
    "Condition",
    "Layer",
    "Match",
    "Outcome",
    "Pattern",
    "Rule",
    "RulePass",
    "apply_rules",
    "binary",
    "constant",
    "each",
    "either",
    "layer",
    "near",
    "number",
    "op",
    "optional",
    "positive",
    "repeated",
    "rule",
    "some",
    "value",
    "where",
]
