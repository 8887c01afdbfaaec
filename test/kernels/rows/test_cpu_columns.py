"""Running totals of columns and the first elements of rows, compiled for the CPU, against what the ops mean."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from compiled_ops import check_compiled
from cpu_kernel_runs import MAX_WIDTH, widths
from fused_network import Network, t
from xdsl.ir import SSAValue

import mlirt
from mlirt.dialects.fused.cumulative import CumulativeOp
from mlirt.dialects.fused.topk import ExtremeKind, TopkOp
from mlirt.dialects.running_totals import CumulativeKind

RNG = np.random.default_rng(11)


def _running(
    shape: tuple[int, ...],
    axis: int,
    element: str = "float32",
    bits: int = MAX_WIDTH,
    kind: CumulativeKind = CumulativeKind.SUM,
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> set[str]:
    names = [f"n{axis}" if size > 100 else size for axis, size in enumerate(shape)]

    def build(network: Network) -> list[SSAValue]:
        return [network.add(CumulativeOp(kind, network.inputs[0], axis, exclusive, reverse))]

    # Their sums and products are exact.
    numbers = RNG.integers(0, 4, shape) if kind is CumulativeKind.SUM else RNG.choice([0.5, 1, 2, -1], shape)
    return check_compiled([t(element, *names)], build, [numbers.astype(element)], bits)


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("shape", [(39, 48), (3, 47, 53), (2, 35, 3000)])
def test_columns_of_sizes(shape: tuple[int, ...], bits: int) -> None:
    assert _running(shape, len(shape) - 2, bits=bits) == {"columns"}


@pytest.mark.parametrize("element", ["int32", "int64", "uint8", "float16", "float64"])
def test_columns_of_types(element: str) -> None:
    assert _running((36, 70), 0, element) == {"columns"}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("kind", list(CumulativeKind))
def test_kinds_of_totals(kind: CumulativeKind, exclusive: bool, reverse: bool) -> None:
    assert _running((2, 36, 50), 1, kind=kind, exclusive=exclusive, reverse=reverse) == {"columns"}


def test_totals_of_many_numbers_are_rounded_once() -> None:
    """As those of rows in memory are: 600 roundings to float32 one after the other are 8 times as far away."""
    numbers = RNG.standard_normal((600, 64)).astype(np.float32)
    node = onnx.helper.make_node("CumSum", ["x", "axis"], ["y"])
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [600, 64]) for name in "xy"]
    axis = onnx.numpy_helper.from_array(np.array(0), "axis")
    graph = onnx.helper.make_graph([node], "totals", values[:1], values[1:], [axis])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    exact = numbers.astype(np.float64).cumsum(0)
    found = mlirt.compile(model, "cpu").run({"x": numbers})["y"]
    assert abs(found - exact).max() <= abs(exact).max() * 2**-23


def test_rows_in_memory_and_few_rows_or_columns_are_left() -> None:
    assert _running((40, 50), 1) == {"cumulative"}
    assert _running((50, 8), 0) == {"cumulative"}
    assert _running((5, 80), 0) == {"cumulative"}


def _first(x: np.ndarray, axis: int, kind: ExtremeKind, *, both: bool = True, name: str = "float32") -> set[str]:
    result = [1 if number == axis else size for number, size in enumerate(x.shape)]

    def build(network: Network) -> list[SSAValue]:
        op = TopkOp(kind, network.inputs[0], axis, t(name, *result), t("int64", *result), True)
        network.add(op)
        return [op.values, op.indices] if both else [op.indices]

    return check_compiled([t(name, *x.shape)], build, [x])


@pytest.mark.parametrize("kind", list(ExtremeKind))
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", ["float32", "float16", "uint8", "int64"])
def test_the_first_of_many_equal_elements(name: str, axis: int, kind: ExtremeKind) -> None:
    x = RNG.integers(0, 5, (6, 9, 37)).astype(name)
    assert _first(x, axis, kind, name=name) == _first(x, axis, kind, both=False, name=name) == {"topk"}


@pytest.mark.parametrize("kind", list(ExtremeKind))
@pytest.mark.parametrize("axis", [0, 1])
def test_the_first_where_elements_are_special(axis: int, kind: ExtremeKind) -> None:
    """The least number of a type is found too, and what is not a number is above all numbers."""
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], np.float32)
    _first(RNG.choice(special, (40, 40)), axis, kind)
    _first(np.full((5, 40), -np.inf, np.float32), axis, kind)
    _first(np.full((5, 40), np.iinfo(np.int32).min, np.int32), axis, kind, name="int32")
