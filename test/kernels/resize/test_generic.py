"""Generic resize kernels: tables for fixed lengths and formulas for symbolic ones agree with the reference."""

from __future__ import annotations

import numpy as np
from fused_network import Network, check, random_array, t
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, FloatAttr, f64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.resize import ResizeOp
from mlirt.dialects.interpolation import Coordinate, ResizeKind, Rounding, Selector
from mlirt.dialects.trt.resize import CoordinateAttr, ResizeKindAttr, RoundingAttr, SelectorAttr

# Lengths after, for 8 x 5 before: as numbers, as expressions, with their scales if these are given.
LENGTHS = [
    ((4, 8), ("h//2", "w*17//10"), (1.0, 1.0, 0.5, 1.7)),
    ((4, 8), ("h//2", "w*17//10"), None),
    ((1, 9), ("h - 7", "2*w - 1"), None),
    ((16, 5), ("2*h", "w"), None),
]


@settings(max_examples=50, deadline=None)
@given(
    kind=st.sampled_from(ResizeKind),
    coordinate=st.sampled_from(Coordinate),
    rounding=st.sampled_from(Rounding),
    selector=st.sampled_from(Selector),
    exclude_outside=st.booleans(),
    antialias=st.booleans(),
    lengths=st.sampled_from(LENGTHS),
    element=st.sampled_from(["float32", "float16", "float64"]),
)
def test_resize(
    kind: ResizeKind,
    coordinate: Coordinate,
    rounding: Rounding,
    selector: Selector,
    exclude_outside: bool,
    antialias: bool,
    lengths: tuple[tuple[int, int], tuple[str, str], tuple[float, ...] | None],
    element: str,
) -> None:
    fixed, symbolic, scales = lengths
    properties: dict[str, Attribute] = {
        "kind": ResizeKindAttr(kind),
        "coordinate": CoordinateAttr(coordinate),
        "rounding": RoundingAttr(rounding),
        "selector": SelectorAttr(selector),
        "exclude_outside": BoolAttr.from_bool(exclude_outside),
        "antialias": BoolAttr.from_bool(antialias),
        "extrapolation_value": FloatAttr(7.0, f64),
    }
    if scales is not None:
        properties["scales"] = DenseArrayBase.from_list(f64, list(scales))
    if coordinate is Coordinate.TF_CROP_AND_RESIZE:
        properties["roi"] = DenseArrayBase.from_list(f64, [0, 0, 0.1, 0.2, 1, 1, 0.8, 1.1])
    x = random_array(np.random.default_rng(0), element, (2, 2, 8, 5))
    rtol, atol = (3e-3, 1e-3) if element == "float16" else (1e-4, 1e-5)
    for before, after in ((("n", 2, 8, 5), fixed), (("n", 2, "h", "w"), symbolic)):

        def build(network: Network, after: tuple[int | str, ...] = after) -> list[SSAValue]:
            result = t(element, "n", 2, *after)
            return [network.add(ResizeOp.build(operands=network.inputs, properties=properties, result_types=[result]))]

        check([t(element, *before)], build, [x], rtol=rtol, atol=atol)


def test_nearest_keeps_any_element_type() -> None:
    for element in ("uint8", "int64", "bool"):

        def build(network: Network, element: str = element) -> list[SSAValue]:
            kind: dict[str, Attribute] = {"kind": ResizeKindAttr(ResizeKind.NEAREST)}
            result = t(element, 3, "2*n")
            return [network.add(ResizeOp.build(operands=network.inputs, properties=kind, result_types=[result]))]

        check([t(element, 3, "n")], build, [random_array(np.random.default_rng(1), element, (3, 4))])
