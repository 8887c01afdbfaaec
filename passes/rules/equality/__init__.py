"""Equations between layers, held in an e-graph, and the choice of the cheapest layers by a cost model."""

from mlirt.passes.rules.equality.costs import MachineRates
from mlirt.passes.rules.equality.equation import EqualMatch, Equation, equation
from mlirt.passes.rules.equality.saturation import Saturation

__all__ = ["EqualMatch", "Equation", "MachineRates", "Saturation", "equation"]
