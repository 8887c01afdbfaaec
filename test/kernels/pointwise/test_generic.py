"""Generic pointwise kernels: random accesses, several results, indices and sizes in the body, blocked layouts."""

from __future__ import annotations

import numpy as np
import pytest
from fused_network import Add, Network, access, check, context, dim, network_of, random_array, region, summing, t
from hypothesis import given, settings
from hypothesis import strategies as st
from lowered_network import lower
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.fused_op import IndexOp, SizeOp, identity_region
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.kernel.core import ParallelOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.dialects.symbolic import Dim, sym
from mlirt.dialects.tensor_types import tensor

NAMES = ("n", "m", "p", "q")


@st.composite
def spaces(draw: st.DrawFn) -> tuple[list[int], list[Dim]]:
    """Lengths of an iteration space, and the same with some of them symbolic."""
    lengths = draw(st.lists(st.integers(0, 4), min_size=0, max_size=4))
    symbolic = [draw(st.booleans()) for _ in lengths]
    return lengths, [
        sym(NAMES[k]) if named else size for k, (size, named) in enumerate(zip(lengths, symbolic, strict=True))
    ]


@st.composite
def operands(draw: st.DrawFn, lengths: list[int], space: list[Dim]) -> tuple[list[int], list[Dim], list[Dim]]:
    """(lengths, dimensions, access) of an operand: axes permuted, repeated, reversed, strided or broadcast."""
    order = draw(st.permutations(range(len(lengths))))
    sizes: list[int] = []
    dims: list[Dim] = []
    indices: list[Dim] = []
    for axis in order:
        size, extent, index = lengths[axis], space[axis], sym(f"d{axis}")
        match draw(st.sampled_from(["as is", "broadcast", "reversed", "strided", "gone"])):
            case "as is":
                sizes, dims, indices = [*sizes, size], [*dims, extent], [*indices, index]
            case "broadcast":
                sizes, dims, indices = [*sizes, 1], [*dims, 1], [*indices, 0]
            case "reversed":
                sizes, dims, indices = [*sizes, size], [*dims, extent], [*indices, extent - 1 - index]
            case "strided":
                sizes, dims, indices = [*sizes, 2 * size + 1], [*dims, 2 * extent + 1], [*indices, 2 * index + 1]
            case _:
                pass
    return sizes, dims, indices


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_reads_what_its_accesses_say(data: st.DataObject) -> None:
    lengths, space = data.draw(spaces())
    picked = [data.draw(operands(lengths, space)) for _ in range(data.draw(st.integers(1, 3)))]
    # Every symbol is the length of some operand's dimension.
    picked.append((lengths, space, [sym(f"d{k}") for k in range(len(space))]))
    rng = np.random.default_rng(0)

    def build(network: Network) -> list[SSAValue]:
        accesses = [AccessAttr.of(indices) for _, _, indices in picked]
        made = PointwiseOp(network.inputs, accesses, [tensor(f32, space)], summing(len(picked)))
        return [network.add(made)]

    types = [tensor(f32, dims) for _, dims, _ in picked]
    check(types, build, [random_array(rng, "float32", sizes) for sizes, _, _ in picked])


def test_several_results_with_indices_and_sizes() -> None:
    def build(network: Network) -> list[SSAValue]:
        def body(add: Add, values: list[SSAValue]) -> list[SSAValue]:
            place = add(arith.IndexCastOp(add(IndexOp(1)), i64))
            size = add(arith.IndexCastOp(add(SizeOp(dim("n*m"))), i64))
            number = add(arith.SIToFPOp(add(arith.AddiOp(place, size)), f32))
            return [add(arith.AddfOp(values[0], number)), values[0]]

        made = PointwiseOp(
            network.inputs, [access("d0", "d1", "d2")], [t("float32", "n", "m", 4)] * 2, region(["float32"], body)
        )
        network.add(made)
        return list(made.outputs)

    check([t("float32", "n", "m", 4)], build, [random_array(np.random.default_rng(1), "float32", (3, 5, 4))])


def _copy(network: Network, *sizes: int | str) -> list[SSAValue]:
    indices = access(*(f"d{k}" for k in range(len(sizes))))
    return [network.add(PointwiseOp(network.inputs, [indices], [t("float32", *sizes)], identity_region(f32)))]


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize(("sizes", "loops"), [((2, 3, 4), 1), (("n", 3, "m"), 1), ((1, "n", 1), 1), ((), 1)])
def test_dense_operands_need_one_loop(target: str, sizes: tuple[int | str, ...], loops: int) -> None:
    module = lower(network_of([t("float32", *sizes)], lambda network: _copy(network, *sizes)), context(), target)
    (loop,) = [op for op in module.walk() if isinstance(op, ParallelOp)]
    assert len(loop.extents) == loops


def test_broadcast_along_the_middle_needs_three_loops() -> None:
    def build(network: Network) -> list[SSAValue]:
        return [
            network.add(
                PointwiseOp(network.inputs, [access("d0", "0", "d2")], [t("float32", 2, 3, 4)], identity_region(f32))
            )
        ]

    module = lower(network_of([t("float32", 2, 1, 4)], build), context())
    (loop,) = [op for op in module.walk() if isinstance(op, ParallelOp)]
    assert len(loop.extents) == 3


def test_lanes_beyond_the_channels_are_zero_and_the_halo_stays() -> None:
    blocked = tensor(f32, [1, 2, 3, 2, 4], channels=7, halo=(1, 2))

    def build(network: Network) -> list[SSAValue]:
        def body(add: Add, values: list[SSAValue]) -> list[SSAValue]:
            return [add(arith.AddfOp(values[0], values[0]))]

        indices = access("d0", "d1", "d2", "d3", "d4")
        padded = network.add(PointwiseOp(network.inputs, [indices], [blocked], region(["float32"], body)))
        return [network.add(PointwiseOp([padded], [indices], [t("float32", 1, 2, 3, 2, 4)], identity_region(f32)))]

    x = random_array(np.random.default_rng(2), "float32", (1, 2, 3, 2, 4))
    made = context()
    found = run_plan(lower(network_of([t("float32", 1, 2, 3, 2, 4)], build), made), made, {"input0": x})["output0"]
    expected = 2 * x
    expected[:, 1, :, :, 3] = 0
    np.testing.assert_array_equal(found, expected)
