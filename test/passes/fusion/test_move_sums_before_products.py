"""Sums over the results of linear layers give what they gave behind them, with any window and any axes."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from lowered_network import parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.passes.fusion.sums_of_windows import SummedAxis, WindowAxis, joined_weights
from mlirt.passes.pipeline import run_passes

_DTYPES = {"f32": (np.float32, 1e-5), "f16": (np.float16, 4e-3)}


def test_taps_that_reach_all_cells_share_one_sum() -> None:
    axis = SummedAxis.of(WindowAxis(8, 10, 3, 1, 1, 0, transposed=True))
    assert axis.is_whole
    assert axis.of_tap == (0, 0, 0)


def test_taps_at_the_border_have_sums_of_their_own() -> None:
    axis = SummedAxis.of(WindowAxis(5, 5, 3, 1, 1, 1, transposed=False))
    counts = [axis.weights[number].tolist() for number in axis.of_tap]
    assert counts == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]]
    assert not axis.is_whole


def test_joined_weights_are_those_of_all_pairs() -> None:
    rows, columns = (
        SummedAxis(np.array(one), (0, 1), is_whole=False) for one in ([[1, 0], [2, 1]], [[1, 1, 0], [0, 3, 1]])
    )
    joined = joined_weights([rows, columns])
    assert joined.shape == (4, 2, 3)
    assert joined[2].tolist() == np.outer([2, 1], [1, 1, 0]).tolist()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    def pair(low: int, high: int) -> tuple[int, int]:
        return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    transposed, channels, kernels = data.draw(st.booleans()), *pair(1, 3)
    window, stride, dilation, pre, post, sizes = (
        pair(*one) for one in ((1, 3), (1, 2), (1, 2), (0, 2), (0, 2), (6, 11))
    )
    more = tuple(data.draw(st.integers(0, step - 1)) for step in stride) if transposed else (0, 0)
    columns = list(zip(sizes, window, stride, dilation, pre, post, more, strict=True))
    if transposed:
        results = [(n - 1) * s + 1 + d * (k - 1) - a - b + o for n, k, s, d, a, b, o in columns]
    else:
        results = [(n + a + b - 1 - d * (k - 1)) // s + 1 for n, k, s, d, a, b, _ in columns]
    assume(min(results) > 0)
    element = data.draw(st.sampled_from(sorted(_DTYPES)))
    axes = data.draw(st.sampled_from([(2, 3), (2,), (3,), (1, 2, 3), (0, 3)]))
    keeps, kind = data.draw(st.booleans()), data.draw(st.sampled_from(["sum", "avg"]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    image, made = (2, channels, *sizes), (2, kernels, *results)
    total = [1 if axis in axes else size for axis, size in enumerate(made) if keeps or axis not in axes]
    weights = (channels, kernels, *window) if transposed else (kernels, channels, *window)
    lists = {"stride": stride, "dilation": dilation, "pre_padding": pre, "post_padding": post}
    lists |= {"output_padding": more} if transposed else {}
    given_lists = ", ".join(f"{name} = array<i64: {one[0]}, {one[1]}>" for name, one in lists.items())

    def of(shape: Sequence[int]) -> str:
        return f"tensor<{'x'.join(map(str, [*shape, element]))}>"

    def constant(name: str, shape: Sequence[int]) -> str:
        numbers = json.dumps(rng.integers(-3, 4, shape).astype(float).tolist())
        return f"%{name} = trt.constant {{value = dense<{numbers}> : {of(shape)}}} : {of(shape)}"

    layer, keep_dims = "deconvolution" if transposed else "convolution", "" if keeps else ", keep_dims = false"
    text = f"""
func.func @main(%x: {of(image)} {{trt.name = "x"}}) -> ({of(total)} {{trt.name = "y"}}) {{
  {constant("w", weights)}
  {constant("b", [kernels])}
  {constant("s", [1, kernels, 1, 1])}
  %c = trt.{layer} %x, %w, %b {{{given_lists}}} : ({of(image)}, {of(weights)}, {of([kernels])}) -> {of(made)}
  %d = trt.elementwise sub %s, %c : ({of([1, kernels, 1, 1])}, {of(made)}) -> {of(made)}
  %q = trt.elementwise prod %d, %s : ({of(made)}, {of([1, kernels, 1, 1])}) -> {of(made)}
  %y = trt.reduce {kind} %q {{axes = array<i64: {", ".join(map(str, axes))}>{keep_dims}}} : ({of(made)}) -> {of(total)}
  func.return %y : {of(total)}
}}"""
    module, context = parse_module(text)
    dtype, tolerance = _DTYPES[element]
    feeds = {"x": rng.standard_normal(image).astype(dtype)}
    expected = interpret(module, context, feeds)["y"].astype(np.float64)
    run_passes(module, context, "move-sums-before-products,dce")
    event("moved" if any(op.name == "trt.shuffle" for op in module.walk()) else "declined")
    found = interpret(module, context, feeds)["y"].astype(np.float64)
    assert found.shape == expected.shape
    bound = tolerance * max(np.abs(expected).max(), 1.0)
    np.testing.assert_allclose(found, expected, atol=bound, rtol=0)
