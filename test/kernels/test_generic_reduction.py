"""Generic kernels that accumulate: reductions of random shapes over random axes, and matrix products."""

from __future__ import annotations

import numpy as np
import pytest
from fused_network import Network, access, check, random_array, region, summing, t
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.symbolic import Dim, sym
from mlirt.dialects.tensor_types import element_type, tensor

NAMES = ("n", "m", "p", "q")
NUMERIC = (ReduceKind.ADD, ReduceKind.MUL, ReduceKind.MAX, ReduceKind.MIN)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_reductions(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    dims: list[Dim] = [sym(NAMES[k]) if data.draw(st.booleans()) else size for k, size in enumerate(lengths)]
    axes = data.draw(st.sets(st.sampled_from(range(len(lengths))), min_size=1))
    keeps = data.draw(st.booleans())
    kind = data.draw(st.sampled_from(NUMERIC))
    element = data.draw(st.sampled_from(["float32", "float64", "int32"]))
    result: list[Dim] = [1 if axis in axes else size for axis, size in enumerate(dims) if keeps or axis not in axes]
    kept = [axis for axis in range(len(dims)) if keeps or axis not in axes]
    reduced = sorted(axes)
    indices: list[Dim] = [
        sym(f"d{len(result) + reduced.index(axis)}") if axis in axes else sym(f"d{kept.index(axis)}")
        for axis in range(len(dims))
    ]
    type_ = element_type(element)

    def build(network: Network) -> list[SSAValue]:
        op = ReductionOp(
            kind,
            network.inputs,
            [access(*map(str, indices))],
            [dims[axis] for axis in reduced],
            tensor(type_, result),
            identity_region(type_),
            identity_region(type_),
        )
        return [network.add(op)]

    array = random_array(np.random.default_rng(0), element, lengths)
    check([tensor(type_, dims)], build, [array // 3 if element == "int32" else array], rtol=1e-4, atol=1e-5)


def test_reduction_with_body_and_epilogue() -> None:
    def build(network: Network) -> list[SSAValue]:
        x, y, bias = network.inputs
        body = region(["float32", "float32"], lambda add, values: [add(arith.MulfOp(values[0], values[1]))])
        accesses = [access("d0", "d2", "d1"), access("d2")]
        op = ReductionOp(
            ReduceKind.ADD,
            [x, y],
            accesses,
            [sym("k")],
            t("float32", "n", 3),
            body,
            summing(2),
            [bias],
            [access("d1")],
        )
        return [network.add(op)]

    rng = np.random.default_rng(1)
    arrays = [random_array(rng, "float32", shape) for shape in ((2, 7, 3), (7,), (3,))]
    check([t("float32", "n", "k", 3), t("float32", "k"), t("float32", 3)], build, arrays)


@pytest.mark.parametrize("kind", [ReduceKind.AND, ReduceKind.OR])
def test_reductions_of_booleans(kind: ReduceKind) -> None:
    type_ = element_type("bool")

    def build(network: Network) -> list[SSAValue]:
        identity = identity_region(type_), identity_region(type_)
        op = ReductionOp(kind, network.inputs, [access("d0", "d1")], [sym("m")], t("bool", 4), *identity)
        return [network.add(op)]

    x = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1]], np.bool_)
    check([t("bool", 4, "m")], build, [x])
    check([t("bool", 4, "m")], build, [x[:, :0]])


def test_not_a_number_wins() -> None:
    type_ = element_type("float32")

    def build(network: Network) -> list[SSAValue]:
        identity = identity_region(type_), identity_region(type_)
        op = ReductionOp(ReduceKind.MAX, network.inputs, [access("d0", "d1")], [3], t("float32", 2), *identity)
        return [network.add(op)]

    check([t("float32", 2, 3)], build, [np.array([[1, np.nan, 2], [3, 4, 5]], np.float32)])


@pytest.mark.parametrize("transpose_lhs", [False, True])
@pytest.mark.parametrize("transpose_rhs", [False, True])
def test_matrix_products(transpose_lhs: bool, transpose_rhs: bool) -> None:
    def transposed(sizes: list[int | str], is_transposed: bool) -> list[int | str]:
        return [*sizes[:-2], sizes[-1], sizes[-2]] if is_transposed else sizes

    def build(network: Network) -> list[SSAValue]:
        lhs, rhs, bias = network.inputs
        result, extras = t("float32", "n", "k", "m", 4), [bias]
        op = MatmulOp(lhs, rhs, result, summing(2), extras, [access("d3")], transpose_lhs, transpose_rhs)
        return [network.add(op)]

    left, right = transposed(["n", 1, "m", 7], transpose_lhs), transposed([1, "k", 7, 4], transpose_rhs)
    lengths = {"n": 2, "m": 3, "k": 5}
    shapes = [[lengths.get(str(size), size) for size in sizes] for sizes in (left, right)]
    rng = np.random.default_rng(2)
    arrays = [random_array(rng, "float32", [int(size) for size in shape]) for shape in shapes]
    arrays.append(random_array(rng, "float32", (4,)))
    check([t("float32", *left), t("float32", *right), t("float32", 4)], build, arrays, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("left", ["int8", "uint8"])
def test_integer_products_accumulate_in_32_bits(left: str) -> None:
    def build(network: Network) -> list[SSAValue]:
        return [network.add(MatmulOp(*network.pair, t("int32", 3, 4), identity_region(i32)))]

    rng = np.random.default_rng(3)
    arrays = [rng.integers(100, 127, (3, 300)).astype(left), rng.integers(-128, 127, (300, 4)).astype(np.int8)]
    check([t(left, 3, 300), t("int8", 300, 4)], build, arrays)
