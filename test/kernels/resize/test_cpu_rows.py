"""Resizing along rows, compiled for the CPU, against the meaning of the op."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from compiled_ops import check_compiled
from cpu_kernel_runs import MAX_WIDTH, widths
from fused_network import Network, random_array, t
from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.resize import ResizeOp
from mlirt.dialects.interpolation import Coordinate, ResizeKind
from mlirt.dialects.trt.resize import CoordinateAttr, ResizeKindAttr

RNG = np.random.default_rng(8)
LINEAR, CUBIC, NEAREST = ResizeKind.LINEAR, ResizeKind.CUBIC, ResizeKind.NEAREST


def resized(
    shape: Sequence[int],
    out: Sequence[int | str],
    kind: ResizeKind,
    *,
    names: Sequence[int | str] | None = None,
    element: str = "float32",
    bits: int = MAX_WIDTH,
    coordinate: Coordinate = Coordinate.HALF_PIXEL,
    antialias: bool = False,
) -> set[str]:
    def build(network: Network) -> list[SSAValue]:
        properties: dict[str, Attribute] = {
            "kind": ResizeKindAttr(kind),
            "coordinate": CoordinateAttr(coordinate),
            "antialias": BoolAttr.from_bool(antialias),
        }
        result = [t(element, *out)]
        return [network.add(ResizeOp.build(operands=network.inputs, properties=properties, result_types=result))]

    tolerance = 2e-3 if element == "float16" else 1e-5
    types = [t(element, *(names or shape))]
    return check_compiled(types, build, [random_array(RNG, element, tuple(shape))], bits, tolerance)


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("kind", [LINEAR, CUBIC, NEAREST])
def test_kinds(kind: ResizeKind, bits: int) -> None:
    assert resized((2, 3, 9, 21), (2, 3, 18, 45), kind, bits=bits) == {"resize_rows"}


@pytest.mark.parametrize("coordinate", [Coordinate.ALIGN_CORNERS, Coordinate.ASYMMETRIC])
@pytest.mark.parametrize("out", [(3, 5, 40), (3, 20, 7), (3, 10, 100)])
def test_shapes(coordinate: Coordinate, out: tuple[int, ...]) -> None:
    assert resized((3, 10, 20), out, LINEAR, coordinate=coordinate) == {"resize_rows"}


def test_signals_and_volumes() -> None:
    assert resized((5, 33), (5, 70), LINEAR) == {"resize_rows"}
    assert resized((2, 4, 5, 19), (2, 6, 9, 37), LINEAR) == {"resize_rows"}


def test_weights_beyond_the_nearest_elements() -> None:
    assert resized((2, 30, 40), (2, 12, 17), LINEAR, antialias=True) == {"resize_rows"}


@pytest.mark.parametrize("element", ["float16", "float64", "int8", "bool"])
def test_copied_elements_have_any_type(element: str) -> None:
    assert resized((3, 7, 18), (3, 14, 36), NEAREST, element=element) == {"resize_rows"}


def test_halves_are_summed_in_single_precision() -> None:
    assert resized((3, 7, 18), (3, 14, 36), LINEAR, element="float16") == {"resize_rows"}


def test_other_axes_may_have_sizes_of_the_run() -> None:
    assert resized((3, 2, 7, 18), ("n", "c", 14, 36), LINEAR, names=("n", "c", 7, 18)) == {"resize_rows"}


def test_what_has_no_rows_or_no_tables_is_left_to_other_tactics() -> None:
    assert resized((2, 9, 18), (2, 18, 18), LINEAR) == {"resize"}
    assert resized((2, 9, 18), (2, "2*h", "2*w"), LINEAR, names=(2, "h", "w")) == {"resize"}
    assert resized((2, 9, 18), (2, 18, 36), LINEAR, element="float64") == {"resize"}
