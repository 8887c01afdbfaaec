"""Generic kernels that move elements: pads, gathers, scatters, concatenations and views."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from fused_network import Network, access, check, context, dim, network_of, random_array, region, t
from lowered_network import lower
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.fused.interleave import InterleaveOp
from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.scatter import ScatterOp
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.indexing import GatherMode, ScatterMode, ScatterReduction
from mlirt.dialects.kernel.core import FuncOp, LoadOp, StoreOp
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.dialects.slicing import PadMode

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("mode", list(PadMode))
def test_pads(mode: PadMode) -> None:
    x = random_array(RNG, "float32", (2, 3, 4))

    def symbolic(network: Network) -> list[SSAValue]:
        pre = [0, dim("n"), -1]
        return [network.add(PadOp(network.inputs[0], pre, t("float32", "n", "3 + 2*n", 7), mode))]

    def strided(network: Network) -> list[SSAValue]:
        return [network.add(PadOp(network.inputs[0], [0, 5, -2], t("float32", 2, 9, 3), mode, stride=[1, 3, 2]))]

    check([t("float32", "n", 3, 4)], symbolic, [x])
    check([t("float32", 2, 3, 4)], strided, [x])


@pytest.mark.parametrize("element", ["float32", "uint8", "bool"])
def test_pad_with_a_fill(element: str) -> None:
    def build(network: Network) -> list[SSAValue]:
        x, fill = network.inputs
        return [network.add(PadOp(x, [1, 2], t(element, 5, 6), PadMode.CONSTANT, fill))]

    check([t(element, 3, 4), t(element, 1)], build, [random_array(RNG, element, (3, 4)), np.ones(1, element)])


@pytest.mark.parametrize("element", ["int32", "int64", "uint8"])
def test_gathers(element: str) -> None:
    low = 0 if element == "uint8" else -7
    for axis in range(3):
        sizes: list[int | str] = ["n", 5, "m"]
        result = t("float32", *sizes[:axis], 2, 3, *sizes[axis + 1 :])
        indices = RNG.integers(low, 7, (2, 3)).astype(element)
        check(
            [t("float32", *sizes), t(element, 2, 3)],
            lambda network, axis=axis, result=result: [network.add(GatherOp(*network.pair, result, axis=axis))],
            [random_array(RNG, "float32", (4, 5, 6)), indices],
        )
    check(
        [t("float32", "n", 5, "m"), t(element, "n", 3)],
        lambda network: [network.add(GatherOp(*network.pair, t("float32", "n", 5, 3), axis=2, num_elementwise_dims=1))],
        [random_array(RNG, "float32", (2, 5, 6)), RNG.integers(low, 7, (2, 3)).astype(element)],
    )


def test_gathers_of_elements_and_coordinates() -> None:
    indices = RNG.integers(-7, 7, (3, 5, 2))
    check(
        [t("uint8", "n", 5, "m"), t("int64", 3, 5, 2)],
        lambda network: [network.add(GatherOp(*network.pair, t("uint8", 3, 5, 2), GatherMode.ELEMENT, axis=2))],
        [random_array(RNG, "uint8", (4, 5, 6)), indices],
    )
    check(
        [t("float32", "n", 5, "m", 2), t("int64", 3, 5, 2)],
        lambda network: [network.add(GatherOp(*network.pair, t("float32", 3, 5, "m", 2), GatherMode.ND))],
        [random_array(RNG, "float32", (4, 5, 6, 2)), indices],
    )
    check(
        [t("float32", 3, 5, "m", 2), t("int64", 3, 5, 2)],
        lambda network: [
            network.add(GatherOp(*network.pair, t("float32", 3, 5, 2), GatherMode.ND, num_elementwise_dims=1))
        ],
        [random_array(RNG, "float32", (3, 5, 6, 2)), indices],
    )


@pytest.mark.parametrize(
    ("element", "reduction"), list(product(["float32", "int32", "uint8", "float16"], ScatterReduction))
)
def test_scatters(element: str, reduction: ScatterReduction) -> None:
    data, indices = random_array(RNG, element, (4, 5, 6)), RNG.integers(-7, 7, (3, 5, 2))
    for axis in range(3):
        check(
            [t(element, "n", 5, "m"), t("int64", 3, 5, 2), t(element, 3, 5, 2)],
            lambda network, axis=axis: [network.add(ScatterOp(*network.triple, axis=axis, reduction=reduction))],
            [data, indices, random_array(RNG, element, (3, 5, 2))],
            rtol=5e-3 if element == "float16" else 1e-5,
        )
    check(
        [t(element, "n", 5, "m"), t("int64", 3, 5, 2), t(element, 3, 5, "m")],
        lambda network: [network.add(ScatterOp(*network.triple, ScatterMode.ND, reduction=reduction))],
        [data, indices, random_array(RNG, element, (3, 5, 6))],
        rtol=2e-2 if element == "float16" else 1e-5,
        atol=1e-2 if element == "float16" else 1e-6,
    )


def _negated(network: Network, value: SSAValue) -> SSAValue:
    indices = access("d0", "d1", "d2")
    body = region(["float32"], lambda add, values: [add(arith.NegfOp(values[0]))])
    return network.add(PointwiseOp([value], [indices], [value.type], body))


def _nested(network: Network) -> list[SSAValue]:
    """Concatenations in each other, with producers that may write in place, one of which has another reader."""
    x, y = network.inputs
    parts = [_negated(network, x), _negated(network, y), network.add(SoftmaxOp(x, 2))]
    inner = ConcatOp(parts, 1, t("float32", "n", "2*c + 4", 3))
    inner.in_place = [True, True, True]
    network.add(inner)
    shared = _negated(network, y)
    outer = ConcatOp([shared, inner.output, y], 1, t("float32", "n", "2*c + 12", 3))
    outer.in_place = [True, True, True]
    return [network.add(outer), shared]


NESTED = [t("float32", "n", "c", 3), t("float32", "n", 4, 3)]


def test_concatenations() -> None:
    arrays = [random_array(RNG, "float32", (2, 5, 3)), random_array(RNG, "float32", (2, 4, 3))]
    check(NESTED, _nested, arrays)
    check(NESTED, _repeated, arrays)


def _repeated(network: Network) -> list[SSAValue]:
    """A concatenation that has a tensor twice."""
    return [network.add(ConcatOp([*network.inputs, network.inputs[0]], 1, t("float32", "n", "2*c + 4", 3)))]


def test_what_is_joined_with_itself_is_read_once() -> None:
    module = lower(network_of(NESTED, _repeated), context())
    kernels = {op.sym_name.data: op for op in module.walk() if isinstance(op, FuncOp)}
    launched = [kernels[op.kernel_name()] for op in module.walk() if isinstance(op, LaunchOp)]
    accesses = [[type(op) for op in kernel.walk() if isinstance(op, LoadOp | StoreOp)] for kernel in launched]
    assert accesses == [[LoadOp, StoreOp, StoreOp], [LoadOp, StoreOp]]


def test_producers_write_into_a_concatenation() -> None:
    module = lower(network_of(NESTED, _nested), context())
    launches = [op for op in module.walk() if isinstance(op, LaunchOp)]
    # Two negations and a softmax in place; a negation that is returned too and the input `y` are copied.
    assert len(launches) == 6


def _interleaved(network: Network) -> list[SSAValue]:
    """Pixels in turn, by producers that may write in place, of which one has another reader, and by an input."""
    wide, narrow = network.inputs
    parts = [wide, *(network.add(SoftmaxOp(value, 3)) for value in (narrow, wide, narrow))]
    op = InterleaveOp(parts, [2, 2], t("float32", "n", 3, "2*h", 7))
    op.in_place = [False, True, True, True]
    return [network.add(op), network.add(SoftmaxOp(parts[1], 1))]


INTERLEAVED = [t("float32", "n", 3, "h", 4), t("float32", "n", 3, "h", 3)]


def test_interleaved_pixels() -> None:
    arrays = [random_array(RNG, "float32", (5, 3, 2, 4)), random_array(RNG, "float32", (5, 3, 2, 3))]
    check(INTERLEAVED, _interleaved, arrays)


def test_producers_write_their_pixels_in_turn() -> None:
    module = lower(network_of(INTERLEAVED, _interleaved), context())
    launches = [op for op in module.walk() if isinstance(op, LaunchOp)]
    # Three parts in place, what reads one of them, and a copy of the input.
    assert len(launches) == 5


def _stacked(network: Network) -> list[SSAValue]:
    """Tensors stacked along a new axis, of which the last two views join axes as well, or are shared."""
    x, y = network.inputs
    made = [network.add(SoftmaxOp(value, 1)) for value in (x, x, y, x)]
    parts = [network.add(ViewOp(value, t("float32", "n", 1, 6))) for value in made]
    op = ConcatOp(parts, 1, t("float32", "n", 4, 6))
    op.in_place = [True] * 4
    return [network.add(op), made[3]]


STACKED = [t("float32", "n", 6), t("float32", "n", 2, 3)]


def test_producers_write_through_views_that_add_axes() -> None:
    check(STACKED, _stacked, [random_array(RNG, "float32", (5, 6)), random_array(RNG, "float32", (5, 2, 3))])
    module = lower(network_of(STACKED, _stacked), context())
    # Four times a softmax, of which one writes rows that a view joins, and a copy of what is returned too.
    assert len([op for op in module.walk() if isinstance(op, LaunchOp)]) == 5


def test_views_share_memory_and_copy_where_they_cannot() -> None:
    def build(network: Network) -> list[SSAValue]:
        (x,) = network.inputs
        part = _negated(network, x)
        whole = ConcatOp([part, _negated(network, x)], 1, t("float32", "n", 8, 3))
        whole.in_place = [True, True]
        network.add(whole)
        return [network.add(ViewOp(whole.output, t("float32", "24*n"))), network.add(ViewOp(x, t("float32", "n", 12)))]

    check([t("float32", "n", 4, 3)], build, [random_array(RNG, "float32", (2, 4, 3))])
    launches = [
        op for op in lower(network_of([t("float32", "n", 4, 3)], build), context()).walk() if isinstance(op, LaunchOp)
    ]
    assert len(launches) == 2
