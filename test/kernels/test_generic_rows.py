"""Generic kernels that work along one axis: softmax, running sums, sorting."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from fused_network import Add, Array, Network, access, check, random_array, region, t
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.arith import AddfOp, MulfOp, TruncFOp
from xdsl.ir import SSAValue

from mlirt.dialects.fused.cumulative import CumulativeOp
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.fused.topk import ExtremeKind, TopkOp
from mlirt.dialects.running_totals import CumulativeKind
from mlirt.dialects.tensor_types import element_type

SORTED = ("float32", "float16", "float64", "int8", "uint8", "int32", "int64", "uint32", "uint64")


@pytest.mark.parametrize(
    ("element", "axis", "log"), list(product(["float32", "float16", "float64"], range(3), [False, True]))
)
def test_softmax(element: str, axis: int, log: bool) -> None:
    def build(network: Network) -> list[SSAValue]:
        return [network.add(SoftmaxOp(network.inputs[0], axis, log))]

    x = 8 * random_array(np.random.default_rng(0), element, (2, 3, 5))
    check([t(element, "n", 3, "m")], build, [x], rtol=2e-3 if element == "float16" else 1e-5)


@settings(max_examples=8, deadline=None)
@given(
    element=st.sampled_from(["float32", "float16"]),
    result=st.sampled_from(["float32", "float16"]),
    axis=st.integers(0, 2),
    log=st.booleans(),
    sizes=st.tuples(st.integers(0, 5), st.sampled_from([1, 3, 33]), st.sampled_from([1, 5, 17])),
)
def test_softmax_with_what_follows(
    element: str, result: str, axis: int, log: bool, sizes: tuple[int, int, int]
) -> None:
    def epilogue(add: Add, values: list[SSAValue]) -> list[SSAValue]:
        share, residual, bias = values
        total = add(MulfOp(add(AddfOp(share, residual)), bias))
        return [total if result == "float32" else add(TruncFOp(total, element_type(result)))]

    def build(network: Network) -> list[SSAValue]:
        x, residual, bias = network.triple
        body = region(["float32"] * 3, epilogue)
        reads = [access("d0", "d1", "d2"), access("d1", "0")]
        made = t(result, "n", sizes[1], sizes[2])
        op = SoftmaxOp(x, axis, log, extras=[residual, bias], access=reads, result=made, epilogue=body)
        return [network.add(op)]

    rng = np.random.default_rng(sum(sizes))
    arrays = [8 * random_array(rng, element, sizes), random_array(rng, "float32", sizes)]
    arrays.append(random_array(rng, "float32", (sizes[1], 1)))
    types = [t(element, "n", *sizes[1:]), t("float32", "n", *sizes[1:]), t("float32", sizes[1], 1)]
    check(types, build, arrays, rtol=2e-3 if result == "float16" else 1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", list(CumulativeKind))
@pytest.mark.parametrize("element", ["float32", "int32", "uint8", "float16"])
def test_cumulative(kind: CumulativeKind, element: str) -> None:
    x = random_array(np.random.default_rng(1), element, (2, 5, 3))
    for exclusive, reverse in product([False, True], repeat=2):

        def build(network: Network, exclusive: bool = exclusive, reverse: bool = reverse) -> list[SSAValue]:
            return [network.add(CumulativeOp(kind, network.inputs[0], 1, exclusive, reverse))]

        check([t(element, "n", 5, 3)], build, [x], rtol=5e-3 if element == "float16" else 1e-5)


def _awkward(element: str, length: int) -> Array:
    """Many equal numbers, and the ends of the range."""
    x = np.round(random_array(np.random.default_rng(2), element, (3, length, 2)) / 2).astype(element)
    if x.dtype.kind == "f":
        x[0, :6, 0] = [np.nan, -np.inf, np.inf, np.nan, -0.0, 0.0]
    else:
        limits = np.iinfo(x.dtype)
        x[0, :4, 0] = [limits.max, limits.min, limits.max, limits.min]
    return x


@pytest.mark.parametrize("kind", list(ExtremeKind))
@pytest.mark.parametrize("element", SORTED)
@pytest.mark.parametrize("axis", [1, 2])
def test_the_place_of_an_extreme_that_nobody_reads(kind: ExtremeKind, element: str, axis: int) -> None:
    for sizes in ((3, 40, 2), ("r", "n", 2)):

        def build(network: Network, sizes: tuple[int | str, ...] = sizes) -> list[SSAValue]:
            found = [1 if k == axis else size for k, size in enumerate(sizes)]
            op = TopkOp(kind, network.inputs[0], axis, t(element, *found), t("int64", *found))
            network.add(op)
            return [op.indices]

        check([t(element, *sizes)], build, [_awkward(element, 40)])


@pytest.mark.parametrize("kind", list(ExtremeKind))
@pytest.mark.parametrize("element", SORTED)
@pytest.mark.parametrize(("length", "count"), [(7, 3), (7, 7), (40, 2), (40, 5)])
def test_topk(kind: ExtremeKind, element: str, length: int, count: int) -> None:
    for sizes in ((3, length, 2), ("r", "n", 2)):

        def build(network: Network, sizes: tuple[int | str, ...] = sizes) -> list[SSAValue]:
            values, indices = t(element, sizes[0], count, 2), t("int64", sizes[0], count, 2)
            op = TopkOp(kind, network.inputs[0], 1, values, indices)
            network.add(op)
            return list(op.results)

        check([t(element, *sizes)], build, [_awkward(element, length)])
