"""Random small networks compute the same before and after each pass, and after the passes of each phase together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from converted_layer import Array, NetworkBuilder, compare
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.padding import PaddingOp
from mlirt.dialects.trt.pooling import PoolingKind, PoolingOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.scale import ScaleOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.unary import UnaryKind, UnaryOp

CLEANUP = "canonicalize,fold-constants,propagate-shapes,simplify-shuffles,hoist-row-transposes,fold-constants"
LAYERS = (
    "fold-scale-into-convolution,fuse-padding-convolution,fold-pooling-into-convolution,move-sums-before-products,"
    "simplify-algebra,fuse-sibling-convolutions{min-work=1},canonicalize,cse,dce"
)
FUSION = (
    "convert-trt-to-fused,eliminate-dead-layers,sink-views,fold-joined-slices,fuse-pointwise,"
    "fuse-convolution-activation,fuse-convolution-elementwise,split-gated-products{few-rows=0},fuse-convolution-elementwise,"
    "fuse-convolution-pooling,eliminate-dead-layers,fuse-windows,"
    "fuse-window-reduction,fuse-row-reductions,fuse-row-elementwise,fuse-rows-reduction,cse,nest-concatenations,"
    "eliminate-concatenation"
)
FUSED = "convert-trt-to-fused,"
PIPELINES = (
    *CLEANUP.split(",")[:4],
    *LAYERS.split(","),
    *(FUSED + name for name in FUSION.split(",")[1:]),
    FUSED + "fuse-pointwise,fuse-convolution-elementwise",
    f"{CLEANUP},{LAYERS},{FUSION}",
    f"{CLEANUP},{CLEANUP},{LAYERS},{FUSION},{FUSION.partition(',')[2]}",
)


class Growth:
    """A network in the making: every step adds one layer on values that are there."""

    def __init__(self, net: NetworkBuilder, draw: st.DataObject) -> None:
        self.net = net
        self.draw = draw
        self.values: list[SSAValue] = [
            net.input(self.array(shape)) for shape in ([1, 4, 5, 6], [1, 4, 5, 6], [2, 3, 4])
        ]

    def choose(self, options: Sequence[object]) -> int:
        return self.draw.draw(st.integers(0, len(options) - 1))

    def array(self, shape: Sequence[int]) -> Array:
        seed = self.draw.draw(st.integers(0, 2**16))
        return np.random.default_rng(seed).standard_normal(tuple(shape)).astype(np.float32)

    def value(self, rank: int | None = None) -> SSAValue:
        fitting = [value for value in self.values if rank is None or len(dims(value.type)) == rank]
        return fitting[self.choose(fitting)]

    def constant(self, shape: Sequence[int]) -> SSAValue:
        plain = self.draw.draw(st.sampled_from([None, 0.0, 1.0]))
        return self.net.constant(self.array(shape) if plain is None else np.full(shape, plain, np.float32))

    def grow(self) -> None:
        """Add a layer; steps for which no value fits add nothing."""
        step = STEPS[self.choose(STEPS)]
        made = step(self)
        if made is not None:
            self.values.append(made)


def shape_of(value: SSAValue) -> list[int]:
    return [length for length in dims(value.type) if isinstance(length, int)]


def _unary(g: Growth) -> SSAValue:
    kinds = (UnaryKind.NEG, UnaryKind.ABS, UnaryKind.SIN)
    return g.net.layer(UnaryOp, [g.value()], kind=kinds[g.choose(kinds)])[0]


def _activation(g: Growth) -> SSAValue:
    kinds = (ActivationKind.RELU, ActivationKind.SIGMOID, ActivationKind.CLIP)
    return g.net.layer(ActivationOp, [g.value()], kind=kinds[g.choose(kinds)], alpha=-0.5, beta=0.75)[0]


def _binary(g: Growth) -> SSAValue:
    kinds = (ElementwiseKind.SUM, ElementwiseKind.PROD, ElementwiseKind.SUB, ElementwiseKind.MAX)
    left = g.value()
    same = [value for value in g.values if shape_of(value) == shape_of(left)]
    shape = shape_of(left)
    masks = ([1] * len(shape), [n if k == 1 else 1 for k, n in enumerate(shape)], shape)
    right = same[g.choose(same)] if g.choose([0, 1]) else g.constant(masks[g.choose(masks)])
    pair = [left, right] if g.choose([0, 1]) else [right, left]
    return g.net.layer(ElementwiseOp, pair, kind=kinds[g.choose(kinds)])[0]


def _scale(g: Growth) -> SSAValue:
    value = g.value(4)
    channels = [shape_of(value)[1]]
    return g.net.layer(ScaleOp, [value, g.constant(channels), g.constant(channels)])[0]


def _convolution(g: Growth) -> SSAValue | None:
    value = g.value(4)
    shape = shape_of(value)
    if shape[2] < 3 or shape[3] < 3:
        return None
    size = 1 + 2 * g.choose([0, 1])
    kernel = g.net.constant(0.3 * g.array([2 + g.choose([0, 1]), shape[1], size, size]))
    bias = g.net.constant(g.array([shape_of(kernel)[0]])) if g.choose([0, 1]) else None
    return g.net.layer(ConvolutionOp, [value, kernel, bias], pre_padding=[1, 0], post_padding=[0, 1])[0]


def _pooling(g: Growth) -> SSAValue | None:
    value = g.value(4)
    kinds = (PoolingKind.MAX, PoolingKind.AVERAGE)
    if min(shape_of(value)[2:]) < 2:
        return None
    return g.net.layer(PoolingOp, [value], kind=kinds[g.choose(kinds)], window=[2, 2])[0]


def _padding(g: Growth) -> SSAValue:
    value = g.value(4)
    return g.net.layer(PaddingOp, [value], pre=[0, 0, 1, g.choose([0, 1])], post=[0, 0, 0, 1])[0]


def _matrix_product(g: Growth) -> SSAValue:
    value = g.value()
    shape = shape_of(value)
    flipped = bool(g.choose([0, 1]))
    depth = shape[-1]
    weights = g.net.constant(0.3 * g.array([*[1] * (len(shape) - 2), *([3, depth] if flipped else [depth, 3])]))
    operation = MatrixOperation.TRANSPOSE if flipped else MatrixOperation.NONE
    return g.net.layer(MatrixMultiplyOp, [value, weights], rhs_op=operation)[0]


def _transpose(g: Growth) -> SSAValue:
    value = g.value()
    order = g.draw.draw(st.permutations(range(len(shape_of(value)))))
    return g.net.layer(ShuffleOp, [value], first_transpose=list(order))[0]


def _reshape(g: Growth) -> SSAValue:
    value = g.value()
    shape = shape_of(value)
    forms = (
        [1, *shape],
        [shape[0], -1, shape[-1]],
        [*shape[:-1], 1, shape[-1]],
        [-1, shape[-1]],
        [length for length in shape if length != 1],
    )
    chosen = forms[g.choose(forms)]
    lengths = chosen if 2 <= len(chosen) <= 4 else [-1, shape[-1]]
    return g.net.layer(ShuffleOp, [value], reshape_dims=DimsAttr.of(lengths))[0]


def _slice(g: Growth) -> SSAValue:
    value = g.value()
    shape = shape_of(value)
    axis = g.choose(shape)
    backwards = bool(g.choose([0, 1]))
    size = max(1, shape[axis] // 2)
    start = [shape[axis] - 1 if backwards and k == axis else 0 for k in range(len(shape))]
    sizes = [size if k == axis else length for k, length in enumerate(shape)]
    steps = [-1 if backwards and k == axis else 1 for k in range(len(shape))]
    return g.net.layer(SliceOp, [value], start=DimsAttr.of(start), size=DimsAttr.of(sizes), stride=steps)[0]


def _gather(g: Growth) -> SSAValue:
    value = g.value()
    axis = g.choose(shape_of(value))
    last = shape_of(value)[axis] - 1
    return g.net.layer(GatherOp, [value, g.net.constant(np.array([0, last, 0]))], axis=axis)[0]


def _reduce(g: Growth) -> SSAValue:
    value = g.value()
    kinds = (ReduceKind.SUM, ReduceKind.MAX, ReduceKind.AVG)
    return g.net.layer(ReduceOp, [value], kind=kinds[g.choose(kinds)], axes=[g.choose(shape_of(value))])[0]


def _softmax(g: Growth) -> SSAValue:
    value = g.value()
    return g.net.layer(SoftmaxOp, [value], axis=g.choose(shape_of(value)))[0]


def _join(g: Growth) -> SSAValue:
    value = g.value()
    same = [other for other in g.values if shape_of(other) == shape_of(value)]
    parts = [value, same[g.choose(same)], same[g.choose(same)]]
    return g.net.layer(ConcatenationOp, parts, axis=g.choose(shape_of(value)))[0]


STEPS: tuple[Callable[[Growth], SSAValue | None], ...] = (
    _unary,
    _activation,
    _binary,
    _binary,
    _scale,
    _convolution,
    _convolution,
    _pooling,
    _padding,
    _matrix_product,
    _transpose,
    _transpose,
    _reshape,
    _slice,
    _gather,
    _reduce,
    _softmax,
    _join,
)


def build(net: NetworkBuilder, data: st.DataObject) -> list[SSAValue]:
    """Some layers; what nothing reads is an output, and so is one more value."""
    growth = Growth(net, data)
    for _ in range(data.draw(st.integers(2, 12))):
        growth.grow()
    unread = [value for value in growth.values[3:] if value.first_use is None]
    return list(dict.fromkeys([*unread, growth.value()]))


@pytest.mark.parametrize("pipeline", PIPELINES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_pipeline_preserves_results(pipeline: str, data: st.DataObject) -> None:
    compare(lambda net: build(net, data), pipeline, rtol=1e-4, atol=1e-4)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_pipeline_keeps_the_names_of_layers(data: st.DataObject) -> None:
    module = compare(lambda net: build(net, data), f"{CLEANUP},{LAYERS},{FUSION}", rtol=1e-4, atol=1e-4)
    from converted_layer import layers_of

    from mlirt.dialects.locations import names

    nameless = [op.name for op in layers_of(module) if op.dialect_name() == "fused" and not names(op.location)]
    assert not nameless
