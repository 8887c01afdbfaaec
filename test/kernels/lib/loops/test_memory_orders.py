"""Every family of loop nests on tensors whose dimensions lie in memory in another order, by strides alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from fused_network import Build, Network, access, check, dim, random_array, region, t
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.blocked_layout import blocked
from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.layout import Layout
from mlirt.dialects.slicing import PadMode
from mlirt.dialects.tensor_types import Tensor, channels_last, rank, with_order

RNG = np.random.default_rng(0)
X = t("float32", "n", 6, "h", 5)
SHAPE = (2, 6, 4, 5)


def last(type_: Tensor) -> Tensor:
    """The type with its channels innermost in memory."""
    return with_order(type_, channels_last(rank(type_)))


def _compare(op: Operation, network: Network) -> list[SSAValue]:
    """The first result of an op whose images lie with their channels last, transposed back at the end."""
    value = network.add(op)
    return [network.add(ReformatOp(value, with_order(value.type)))]


def _transposed(network: Network) -> SSAValue:
    x = network.inputs[0]
    return network.add(ReformatOp(x, with_order(x.type, channels_last(4))))


def _pointwise(network: Network) -> list[SSAValue]:
    x, y = network.inputs[0], _transposed(network)
    place = access("d0", "d1", "d2", "d3")
    body = region(["float32"] * 3, lambda add, v: [add(arith.AddfOp(add(arith.MulfOp(v[0], v[1])), v[2]))])
    flipped = access("d0", "5 - d1", "d2", "d3")
    return _compare(PointwiseOp([x, y, y], [place, place, flipped], [last(X)], body), network)


def _pad(network: Network) -> list[SSAValue]:
    result = last(t("float32", "n", 8, "h + 2", 9))
    return _compare(PadOp(_transposed(network), [0, 1, 1, 2], result, PadMode.CONSTANT), network)


def _window(network: Network) -> list[SSAValue]:
    op = WindowOp(
        WindowKind.MAX,
        _transposed(network),
        last(t("float32", "n", 6, "h", 3)),
        identity_region(f32),
        window=[3, 3],
        stride=[1, 2],
        dilation=[1, 1],
        pre_padding=[1, 1],
        post_padding=[1, 1],
    )
    return _compare(op, network)


def _softmax(network: Network) -> list[SSAValue]:
    value = _transposed(network)
    first = network.add(SoftmaxOp(value, 1))
    return [first, *_compare(SoftmaxOp(value, 3), network)]


def _reduction(network: Network) -> list[SSAValue]:
    op = ReductionOp(
        ReduceKind.ADD,
        [_transposed(network)],
        [access("d0", "d1", "d4", "d5")],
        [dim("h"), 5],
        last(t("float32", "n", 6, 1, 1)),
        identity_region(f32),
        identity_region(f32),
    )
    return _compare(op, network)


def _convolution(network: Network) -> list[SSAValue]:
    op = ConvolutionOp(
        _transposed(network),
        network.inputs[1],
        last(t("float32", "n", 4, "h", 3)),
        identity_region(f32),
        stride=[1, 2],
        dilation=[1, 1],
        pre_padding=[1, 1],
        post_padding=[1, 1],
        groups=2,
    )
    return _compare(op, network)


def _concat(network: Network) -> list[SSAValue]:
    value = _transposed(network)
    parts = [
        network.add(PadOp(value, [0, cut, 0, 0], last(t("float32", "n", 4, "h", 5)), PadMode.EDGE)) for cut in (0, -2)
    ]
    op = ConcatOp([*parts, network.inputs[0]], 1, last(t("float32", "n", 14, "h", 5)))
    op.in_place = [True, True, False]
    return _compare(op, network)


def _gather(network: Network) -> list[SSAValue]:
    gather = GatherOp(_transposed(network), network.inputs[1], last(t("float32", "n", 6, 3, 5)), axis=2)
    return _compare(gather, network)


def _views(network: Network) -> list[SSAValue]:
    value = _transposed(network)
    shapes: Sequence[Tensor] = (t("float32", "n", 6, "5*h"), t("float32", "n", 2, 3, "h", 5), t("float32", "30*n*h"))
    place = {3: access("d0", "d1", "d2"), 5: access("d0", "d1", "d2", "d3", "d4"), 1: access("d0")}
    views = [network.add(ViewOp(value, shape)) for shape in shapes]
    return [
        network.add(PointwiseOp([view], [place[rank(view.type)]], [view.type], identity_region(f32))) for view in views
    ]


@pytest.mark.parametrize(
    ("build", "more"),
    [
        (_pointwise, None),
        (_pad, None),
        (_window, None),
        (_softmax, None),
        (_reduction, None),
        (_convolution, t("float32", 4, 3, 3, 3)),
        (_concat, None),
        (_gather, t("int32", 3)),
        (_views, None),
    ],
)
def test_channels_last(build: Build, more: Tensor | None) -> None:
    arrays = [random_array(RNG, "float32", SHAPE)]
    if build is _convolution:
        arrays.append(random_array(RNG, "float32", (4, 3, 3, 3)))
    elif build is _gather:
        arrays.append(np.array([2, 0, 3], np.int32))
    check([X] if more is None else [X, more], build, arrays)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 0, 2)])
def test_longer_rows_end_in_zeros(order: tuple[int, ...]) -> None:
    type_ = t("float32", "n", 3, 2, 5)

    def build(network: Network) -> list[SSAValue]:
        row = with_order(type_, order, 8)
        return _compare(ReformatOp(network.inputs[0], row), network)

    check([type_], build, [random_array(RNG, "float32", (4, 3, 2, 5))])


@pytest.mark.parametrize(("element", "lanes"), [("float16", 2), ("int8", 4), ("float32", 32)])
def test_blocks_meet_channels_last(element: str, lanes: int) -> None:
    """Copies of formats whose vectors have images of their own, to and from images with their channels innermost."""
    type_ = t(element, "n", 6, "h", 5)

    def build(network: Network) -> list[SSAValue]:
        blocks = network.add(ReformatOp(network.inputs[0], blocked(type_, lanes)))
        innermost = network.add(ReformatOp(blocks, last(type_)))
        again = network.add(ReformatOp(innermost, blocked(type_, lanes)))
        return [network.add(ReformatOp(again, type_)), network.add(ReformatOp(innermost, type_))]

    check([type_], build, [random_array(RNG, element, SHAPE)])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_strides_of_another_shape(data: st.DataObject) -> None:
    """Where NumPy reshapes without a copy, so do strides, and the other way round."""
    before = data.draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4))
    order = data.draw(st.permutations(range(len(before))))
    after = data.draw(st.permutations([*before, 1]))
    array = np.arange(int(np.prod(before))).reshape([before[axis] for axis in order]).transpose(np.argsort(order))
    if data.draw(st.booleans()) and len(after) > 2:
        after = [after[0] * after[1], *after[2:]]
    found = Layout(tuple(before), tuple(step // array.itemsize for step in array.strides)).reshaped(after)
    want = array.reshape(after)
    assert (found is not None) == np.shares_memory(want, array)
    if found is not None:
        steps = [int(str(step)) * array.itemsize for step in found.strides()]
        np.testing.assert_array_equal(np.lib.stride_tricks.as_strided(array, after, steps), want)
