"""Expanded deconvolutions, volumes, signals and merged groups compute what they did, for all strides and windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.layout.merge_convolution_groups import merged
from mlirt.passes.pipeline import PipelineOptions, run_passes


def model(op: str, kernel: Sequence[int], rank: int, **attributes: Any) -> onnx.ModelProto:
    values = np.random.default_rng(0).standard_normal(kernel).astype(np.float32)
    channels = kernel[0] if op == "ConvTranspose" else kernel[1] * attributes.get("group", 1)
    sizes = ["n", channels, "h", "w", "z"][:rank]
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "k"], ["y"], **attributes)],
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(values, "k")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def check(network: onnx.ModelProto, shape: Sequence[int], expansion: str, before: str = "dce") -> str:
    ctx = RtContext()
    module = import_model(network, ctx)
    feeds = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    expected = interpret(module, ctx, feeds)["y"]
    run_passes(module, ctx, f"{before},convert-trt-to-fused,{expansion}", PipelineOptions(verify_each=True))
    np.testing.assert_allclose(interpret(module, ctx, feeds)["y"], expected, rtol=1e-4, atol=1e-5)
    return str(module)


@settings(max_examples=40, deadline=None)
@given(
    stride=st.integers(1, 3),
    window=st.integers(1, 4),
    pads=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    groups=st.sampled_from([1, 2, 4]),
    dilation=st.integers(1, 3),
    length=st.integers(3, 6),
)
def test_deconvolution(
    stride: int, window: int, pads: tuple[int, int], groups: int, dilation: int, length: int
) -> None:
    pre, post = (min(pad, (window - 1) * dilation) for pad in pads)
    network = model(
        "ConvTranspose",
        [4, 2, window, 2],
        4,
        strides=[stride, 2],
        dilations=[dilation, 1],
        pads=[pre, 0, post, 1],
        group=groups,
    )
    assert "transposed = true" not in check(network, [2, 4, length, 5], "expand-deconvolution")
    check(network, [2, 4, length, 5], "expand-deconvolution{lanes=2}")


@settings(max_examples=20, deadline=None)
@given(
    stride=st.integers(1, 3),
    window=st.integers(1, 5),
    pads=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    more=st.integers(0, 2),
    dilation=st.integers(1, 2),
    groups=st.sampled_from([1, 3]),
    length=st.integers(1, 6),
)
def test_deconvolution_of_a_signal(
    stride: int, window: int, pads: tuple[int, int], more: int, dilation: int, groups: int, length: int
) -> None:
    reach = (window - 1) * dilation
    pre, post = (min(pad, reach) for pad in pads)
    more = min(more, stride - 1)
    assume(stride * (length - 1) + reach + 1 + more - pre - post > 0)
    attributes = {"strides": [stride], "dilations": [dilation], "pads": [pre, post], "output_padding": [more]}
    network = model("ConvTranspose", [6, 4, window], 3, group=groups, **attributes)
    text = check(network, [5, 6, length], "expand-deconvolution{lanes=4},expand-convolution-rank")
    if 1 < stride <= reach + 1 and pre == post == 0:
        assert f"factors = array<i64: 1, {stride}>" in text


@settings(max_examples=30, deadline=None)
@given(
    stride=st.integers(1, 3),
    window=st.integers(1, 4),
    zeros=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    cut=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    more=st.integers(0, 1),
)
def test_padded_deconvolution(
    stride: int, window: int, zeros: tuple[int, int], cut: tuple[int, int], more: int
) -> None:
    """Zeros around the input are cells of the result: fewer are cut off, or some are added."""
    pre, post = (min(pad, window - 1) for pad in cut)
    attributes = {"strides": [stride, 2], "pads": [pre, 0, post, 1], "output_padding": [min(more, stride - 1), 0]}
    network = model("ConvTranspose", [4, 2, window, 2], 4, **attributes)
    (layer,) = network.graph.node
    layer.input[0] = "p"
    network.graph.initializer.append(numpy_helper.from_array(np.array([0, 0, zeros[0], 1, 0, 0, zeros[1], 0]), "z"))
    network.graph.node.insert(0, helper.make_node("Pad", ["x", "z"], ["p"]))
    for expansion in ("dce", "expand-deconvolution,dce"):
        text = check(network, [2, 4, 4, 5], expansion, "fold-constants,fuse-padding-convolution")
        assert "fused.pad" not in text
        assert ("transposed = true" in text) == (expansion == "dce")


@settings(max_examples=20, deadline=None)
@given(stride=st.integers(1, 3), window=st.integers(1, 5), dilation=st.integers(1, 2), groups=st.sampled_from([1, 3]))
def test_signal(stride: int, window: int, dilation: int, groups: int) -> None:
    network = model(
        "Conv", [6, 6 // groups, window], 3, strides=[stride], pads=[1, 2], dilations=[dilation], group=groups
    )
    assert "fused.view" in check(network, [2, 6, 12], "expand-convolution-rank")


@settings(max_examples=20, deadline=None)
@given(
    stride=st.integers(1, 2),
    window=st.integers(1, 3),
    dilation=st.integers(1, 2),
    pads=st.tuples(st.integers(-1, 2), st.integers(0, 2)),
    groups=st.sampled_from([1, 2]),
)
def test_volume(stride: int, window: int, dilation: int, pads: tuple[int, int], groups: int) -> None:
    attributes = {"strides": [stride, 1, 2], "dilations": [dilation, 2, 1], "pads": [pads[0], 0, 1, pads[1], 1, 0]}
    network = model("Conv", [6, 4, window, 2, 3], 5, group=groups, **attributes)
    text = check(network, [2, 4 * groups, 7, 5, 6], "expand-volume-convolution")
    assert text.count("fused.pointwise") == 2


@settings(max_examples=20, deadline=None)
@given(
    strides=st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 2)),
    window=st.tuples(st.integers(1, 3), st.integers(2, 3)),
    pads=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    groups=st.sampled_from([1, 2]),
    batch=st.sampled_from([1, 5]),
)
def test_frames_of_a_volume(
    strides: tuple[int, ...], window: tuple[int, int], pads: tuple[int, int], groups: int, batch: int
) -> None:
    attributes = {"strides": list(strides), "pads": [0, *pads, 0, pads[1], pads[0]]}
    network = model("Conv", [6, 4, 1, *window], 5, group=groups, **attributes)
    for axis, size in ((0, batch), (4, 6)):
        network.graph.input[0].type.tensor_type.shape.dim[axis].dim_value = size
    text = check(network, [batch, 4 * groups, 7, 5, 6], "expand-volume-convolution,eliminate-dead-layers")
    assert ('"6*d2 + d3"' in text) == (batch == 1)


@settings(max_examples=20, deadline=None)
@given(
    stride=st.integers(1, 2),
    window=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.integers(1, 2),
    pads=st.tuples(st.integers(-1, 2), st.integers(0, 2)),
    groups=st.sampled_from([1, 2]),
    width=st.integers(1, 4),
)
def test_volume_of_joined_axes(
    stride: int, window: tuple[int, int], dilation: int, pads: tuple[int, int], groups: int, width: int
) -> None:
    """Windows of length 1 along the last axis: its elements and those of the axis before are one axis."""
    attributes = {"strides": [stride, 1, 1], "dilations": [1, dilation, 3], "pads": [1, pads[0], 0, 0, pads[1], 0]}
    network = model("Conv", [6, 4, *window, 1], 5, group=groups, **attributes)
    network.graph.input[0].type.tensor_type.shape.dim[4].dim_value = width
    text = check(network, [5, 4 * groups, 4, 6, width], "expand-volume-convolution")
    assert "fused.pointwise" not in text


@settings(max_examples=20, deadline=None)
@given(
    blocks=st.integers(1, 2),
    rest=st.sampled_from([0, 0, 1]),
    window=st.integers(1, 3),
    batch=st.sampled_from([1, 2, 5]),
    side=st.integers(2, 9),
)
def test_volume_in_blocks(blocks: int, rest: int, window: int, batch: int, side: int) -> None:
    """The slices of the result go from blocks of channels to their places in one launch where blocks are whole."""
    network = model("Conv", [4 * blocks + rest, 3, window, 2, 1], 5)
    passes = "expand-volume-convolution,assign-layouts{target=cpu lanes=4},fuse-block-conversion,dce"
    text = check(network, [batch, 3, 5, 4, side], passes)
    into_blocks, out_of_blocks = 3 * window >= 4, rest > 0
    assert text.count("fused.reformat") == into_blocks + out_of_blocks


@settings(max_examples=20, deadline=None)
@given(groups=st.sampled_from([2, 3, 4, 6]), inputs=st.integers(1, 4), outputs=st.integers(1, 4))
def test_merged_groups(groups: int, inputs: int, outputs: int) -> None:
    network = model("Conv", [groups * outputs, inputs, 3, 2], 4, pads=[1, 0, 1, 1], group=groups)
    text = check(network, [2, groups * inputs, 4, 5], "merge-convolution-groups{lanes=4}")
    is_depthwise = inputs == outputs == 1
    is_whole = inputs % 4 == outputs % 4 == 0
    assert (f" groups = {groups}" in text) == (is_depthwise or is_whole)


@pytest.mark.parametrize(
    ("groups", "inputs", "outputs", "expected"),
    [
        (32, 4, 4, 4),
        (4, 28, 28, 4),
        (4, 136, 136, 2),
        (32, 16, 16, 1),
        (99, 3, 3, 99),
        (55, 8, 8, 55),
        (501, 3, 3, 1),
        (3, 5, 5, 3),
    ],
)
def test_how_many_groups_are_merged(groups: int, inputs: int, outputs: int, expected: int) -> None:
    """As few as fill vectors of 16 channels; not too many zeros."""
    assert merged(groups, inputs, outputs, 16) == expected
