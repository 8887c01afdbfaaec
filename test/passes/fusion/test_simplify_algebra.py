"""Random expressions mean the same before and after algebra, and value ranges hold what layers give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from converted_layer import Array, NetworkBuilder, compare, layers_of, run_passes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from mlirt.dialects.context import RtContext
from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.unary import UnaryKind, UnaryOp
from mlirt.passes.fusion.algebra.sums import axes_before
from mlirt.passes.remarks import Remarks, recording
from mlirt.passes.rules.equality.value_ranges import ValueRanges

_SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 1e30, -1e30, 1e-40, np.inf, -np.inf, np.nan], np.float32)
_RELAXED = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


class Expression:
    """A network of few shapes, so that layers meet: rows, columns, and what has both."""

    def __init__(
        self, net: NetworkBuilder, draw: st.DataObject, array: Callable[[list[int]], Array], exact: bool
    ) -> None:
        self.net, self.draw, self.array, self.exact = net, draw, array, exact
        self.values: list[SSAValue] = [net.input(array(shape)) for shape in ([3, 4], [3, 4], [3, 1], [1, 2, 5, 6])]

    def pick(self, options: Sequence[object]) -> int:
        return self.draw.draw(st.integers(0, len(options) - 1))

    def value(self, rank: int | None = None) -> SSAValue:
        fitting = [one for one in self.values if rank is None or len(dims(one.type)) == rank]
        return fitting[self.pick([*fitting])]

    def grow(self) -> None:
        steps = (self.unary, self.activation, self.binary, self.binary, self.binary, self.reduction, self.choice)
        linear = (self.product, self.convolution, self.softmax, self.transpose, self.reshape)
        chosen = (*steps, *(() if self.exact else linear))
        self.values.append(chosen[self.pick(chosen)]())

    def unary(self) -> SSAValue:
        smooth = (UnaryKind.SIN, UnaryKind.EXP, UnaryKind.SQRT, UnaryKind.LOG)
        kinds = (UnaryKind.NEG, UnaryKind.ABS, UnaryKind.SIGN, *(smooth if self.exact else smooth[:1]))
        return self.net.layer(UnaryOp, [self.value()], kind=kinds[self.pick(kinds)])[0]

    def activation(self) -> SSAValue:
        kinds = (
            ActivationKind.RELU,
            ActivationKind.CLIP,
            ActivationKind.LEAKY_RELU,
            ActivationKind.ELU,
            ActivationKind.SIGMOID,
            ActivationKind.TANH,
            ActivationKind.SOFTPLUS,
            ActivationKind.GELU_ERF,
        )
        low = self.draw.draw(st.sampled_from([0.0, -1.0, 0.5]))
        kind = kinds[self.pick(kinds)]
        alpha, beta = (1.0, 1.0) if kind is ActivationKind.SOFTPLUS else (low, 2.0)
        return self.net.layer(ActivationOp, [self.value()], kind=kind, alpha=alpha, beta=beta)[0]

    def binary(self) -> SSAValue:
        left = self.value()
        shape = [int(str(one)) for one in dims(left.type)]
        same = [one for one in self.values if dims(one.type) == dims(left.type)]
        number = self.draw.draw(st.sampled_from([0.0, 0.5, -2.0, 3.0]))
        constants = ([1] * len(shape), shape, [n if k else 1 for k, n in enumerate(shape)])
        constant = np.full(constants[self.pick(constants)], number, np.float32)
        right = same[self.pick([*same])] if self.pick([0, 1]) else self.net.constant(constant)
        kinds = [
            ElementwiseKind.SUM,
            ElementwiseKind.SUB,
            ElementwiseKind.PROD,
            ElementwiseKind.MAX,
            ElementwiseKind.MIN,
        ]
        kinds += [ElementwiseKind.DIV] if self.exact else []
        pair = [left, right] if self.pick([0, 1]) else [right, left]
        return self.net.layer(ElementwiseOp, pair, kind=kinds[self.pick([*kinds])])[0]

    def reduction(self) -> SSAValue:
        value = self.value()
        axes = [axis for axis in range(len(dims(value.type))) if self.pick([0, 1])] or [0]
        kinds = (ReduceKind.MAX, ReduceKind.MIN) if self.exact else tuple(ReduceKind)
        kinds = tuple(kind for kind in kinds if kind is not ReduceKind.PROD)
        return self.net.layer(ReduceOp, [value], kind=kinds[self.pick(kinds)], axes=axes)[0]

    def choice(self) -> SSAValue:
        value = self.value()
        zero = self.net.constant(np.zeros([1] * len(dims(value.type)), np.float32))
        kinds = (ElementwiseKind.LESS, ElementwiseKind.GREATER_EQUAL, ElementwiseKind.EQUAL)
        test = self.net.layer(ElementwiseOp, [value, zero], kind=kinds[self.pick(kinds)])[0]
        return self.net.layer(SelectOp, [test, value, zero])[0]

    def product(self) -> SSAValue:
        value = self.value(2)
        weights = self.net.constant(0.3 * self.array([int(str(dims(value.type)[1])), 4]))
        return self.net.layer(MatrixMultiplyOp, [value, weights])[0]

    def convolution(self) -> SSAValue:
        value = self.value(4)
        kernel = self.net.constant(0.3 * self.array([2, int(str(dims(value.type)[1])), 1 + 2 * self.pick([0, 1]), 1]))
        bias = self.net.constant(self.array([2])) if self.pick([0, 1]) else None
        return self.net.layer(ConvolutionOp, [value, kernel, bias], pre_padding=[1, 0], post_padding=[1, 0])[0]

    def softmax(self) -> SSAValue:
        return self.net.layer(SoftmaxOp, [self.value()], axis=1)[0]

    def reshape(self) -> SSAValue:
        value = self.value()
        first, *rest = (int(str(one)) for one in dims(value.type))
        forms = ([first, 1, *rest], [first, int(np.prod(rest))], [first * rest[0], *rest[1:], 1])
        return self.net.layer(ShuffleOp, [value], reshape_dims=DimsAttr.of(forms[self.pick(forms)]))[0]

    def transpose(self) -> SSAValue:
        return self.net.layer(ShuffleOp, [self.value(2)], first_transpose=[1, 0])[0]


def grown(net: NetworkBuilder, data: st.DataObject, exact: bool) -> list[SSAValue]:
    generator = np.random.default_rng(data.draw(st.integers(0, 2**16)))

    def array(shape: list[int]) -> Array:
        numbers = generator.standard_normal(shape).astype(np.float32)
        special = generator.choice(_SPECIAL, shape)
        return np.where(generator.random(shape) < 0.5, special, numbers) if exact else numbers

    growth = Expression(net, data, array, exact)
    for _ in range(data.draw(st.integers(2, 12))):
        growth.grow()
    unread = [value for value in growth.values[4:] if value.first_use is None]
    return list(dict.fromkeys([*unread, growth.value()]))


@_RELAXED
@given(data=st.data())
def test_special_numbers_stay_as_they_are_where_nothing_is_granted(data: st.DataObject) -> None:
    compare(lambda net: grown(net, data, True), "simplify-algebra{fast-math=none},dce", rtol=1e-6, atol=1e-30)


@_RELAXED
@given(data=st.data(), target=st.sampled_from(["cpu", "cuda"]))
def test_what_is_granted_by_default_changes_rounding_alone(data: st.DataObject, target: str) -> None:
    compare(lambda net: grown(net, data, False), f"simplify-algebra{{target={target}}},dce", rtol=1e-4, atol=1e-4)


@_RELAXED
@given(data=st.data())
def test_finite_numbers_stay_finite(data: st.DataObject) -> None:
    granted = "simplify-algebra{fast-math=reassociate,accurate,finite,reciprocal},dce"
    compare(lambda net: grown(net, data, False), granted, rtol=1e-3, atol=1e-3)


@_RELAXED
@given(data=st.data(), exact=st.booleans())
def test_ranges_hold_all_numbers(data: st.DataObject, exact: bool) -> None:
    net = NetworkBuilder()
    outputs = grown(net, data, exact)
    values = list(dict.fromkeys([*outputs, *(op.results[0] for op in net.block.ops)]))
    ranges = ValueRanges(net.ctx)
    known = [ranges.of(value) for value in values]
    for found, array in zip(known, net.run(net.module(values)), strict=True):
        wide = array.astype(np.float64)
        numbers = wide[~np.isnan(wide)]
        assert found.may_be_nan or numbers.size == wide.size
        assert found.low <= numbers.min(initial=np.inf)
        assert numbers.max(initial=-np.inf) <= found.high


def _chain(length: int, *, meets: bool) -> tuple[NetworkBuilder, ModuleOp]:
    net = NetworkBuilder()
    value = net.input(np.ones([2, 3], np.float32))
    for number in range(length):
        factor = net.constant(np.full([1, 1], 1.0 + number % 3, np.float32))
        value = net.layer(ElementwiseOp, [value, factor], kind=ElementwiseKind.PROD)[0]
        if not meets:
            value = net.layer(UnaryOp, [value], kind=UnaryKind.SIN)[0]
    return net, net.module([value])


@pytest.mark.parametrize(
    ("source", "made", "axes", "before"),
    [
        ((2, 16, 5, 5), (2, 4, 4, 5, 5), (3, 4), [2, 3]),
        ((2, 16, 5, 5), (2, 4, 4, 5, 5), (2, 3, 4), None),
        ((2, 4, 4, 5), (2, 16, 5), (1,), [1, 2]),
        ((6,), (2, 3), (0, 1), [0]),
        ((6,), (2, 3), (0,), None),
        ((2, 3), (1, 2, 1, 3, 1), (2, 4), []),
    ],
)
def test_axes_in_front_of_a_reshape(
    source: tuple[int, ...], made: tuple[int, ...], axes: tuple[int, ...], before: list[int] | None
) -> None:
    assert axes_before(source, made, axes) == before


def test_a_long_chain_of_factors_is_one() -> None:
    net, module = _chain(8, meets=True)
    run_passes(module, net.ctx, "simplify-algebra,dce")
    assert [op.name for op in layers_of(module)].count("trt.elementwise") == 1


def test_where_no_equation_holds_nothing_changes() -> None:
    net, module = _chain(8, meets=False)
    before = str(module)
    run_passes(module, net.ctx, "simplify-algebra")
    assert str(module) == before


def test_lengths_may_be_known_to_a_run_alone() -> None:
    text = """
        func.func @main(%x: tensor<?x4xf32, #trt.dims<["n", "4"]>> {trt.name = "x"})
            -> (tensor<?x1xf32, #trt.dims<["n", "1"]>> {trt.name = "y"}) {
          %w = trt.constant {value = dense<0.5> : tensor<4x64xf32>} : tensor<4x64xf32>
          %s = trt.constant {value = dense<3.0> : tensor<1x1xf32>} : tensor<1x1xf32>
          %a = trt.elementwise prod %x, %s : (tensor<?x4xf32, #trt.dims<["n", "4"]>>, tensor<1x1xf32>)
              -> tensor<?x4xf32, #trt.dims<["n", "4"]>>
          %p = trt.matrix_multiply %a, %w : (tensor<?x4xf32, #trt.dims<["n", "4"]>>, tensor<4x64xf32>)
              -> tensor<?x64xf32, #trt.dims<["n", "64"]>>
          %r = trt.activation relu %p : (tensor<?x64xf32, #trt.dims<["n", "64"]>>)
              -> tensor<?x64xf32, #trt.dims<["n", "64"]>>
          %y = trt.reduce max %r {axes = array<i64: 1>} : (tensor<?x64xf32, #trt.dims<["n", "64"]>>)
              -> tensor<?x1xf32, #trt.dims<["n", "1"]>>
          func.return %y : tensor<?x1xf32, #trt.dims<["n", "1"]>>
        }"""
    ctx = RtContext()
    register_dialects(ctx)
    module, _ = parse_source(ctx, text, "lengths.mlir")
    feeds = {"x": np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)}
    expected = interpret(module, ctx, feeds)["y"]
    run_passes(module, ctx, "simplify-algebra,dce")
    assert [op.name for op in layers_of(module)].count("trt.elementwise") == 0
    np.testing.assert_allclose(interpret(module, ctx, feeds)["y"], expected, 1e-6)


@pytest.mark.parametrize(("right", "said"), [("none", "--fastMath=finite would permit it"), ("finite", "saves")])
def test_remarks_say_what_a_right_saves(right: str, said: str) -> None:
    net = NetworkBuilder()
    x = net.input(np.ones([64, 64], np.float32))
    module = net.module(net.layer(ElementwiseOp, [x, x], kind=ElementwiseKind.SUB))
    with recording(found := Remarks()), found.running("simplify-algebra", module):
        run_passes(module, net.ctx, f"simplify-algebra{{fast-math={right}}}")
    assert said in found.text()
