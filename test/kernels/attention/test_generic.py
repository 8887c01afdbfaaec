"""Attention by plain loops, for every kind of it, on both targets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from attentions import SMALL
from lowered_network import compare, parse_module


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("name", SMALL)
def test_generic(name: str, element: str) -> None:
    case = replace(SMALL[name], element=element)
    module, context = parse_module(case.text())
    tolerance = 1e-5 if element == "f32" else 4e-3
    compare(module, context, case.inputs(), rtol=tolerance, atol=tolerance)
