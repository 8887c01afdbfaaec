"""Means over windows of a convolution's results are what one convolution gives, with any windows."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from lowered_network import parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.passes.pipeline import run_passes


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    def pair(low: int, high: int) -> tuple[int, int]:
        return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    is_deconvolution, groups = data.draw(st.booleans()), data.draw(st.integers(1, 2))
    groups = 1 if is_deconvolution else groups
    channels, kernels = (groups * one for one in pair(1, 3))
    window, stride, dilation, sizes = pair(1, 3), pair(1, 3), pair(1, 2), pair(6, 11)
    pre, post, pooled, step = pair(0, 2), pair(0, 2), pair(1, 3), pair(1, 4)
    more = tuple(data.draw(st.integers(0, one - 1)) for one in stride) if is_deconvolution else (0, 0)
    columns = list(zip(sizes, window, stride, dilation, pre, post, more, strict=True))
    if is_deconvolution:
        middle = [(n - 1) * s + 1 + d * (k - 1) - a - b + o for n, k, s, d, a, b, o in columns]
    else:
        middle = [(n + a + b - 1 - d * (k - 1)) // s + 1 for n, k, s, d, a, b, _ in columns]
    results = [(length - size) // one + 1 for length, size, one in zip(middle, pooled, step, strict=True)]
    assume(min(middle) > 0 and min(results) > 0)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    image, between, made = (2, channels, *sizes), (2, kernels, *middle), (2, kernels, *results)
    weights = (channels, kernels, *window) if is_deconvolution else (kernels, channels // groups, *window)
    lists = {"stride": stride, "dilation": dilation, "pre_padding": pre, "post_padding": post}
    lists |= {"output_padding": more} if is_deconvolution else {}
    written = ", ".join(f"{name} = array<i64: {one[0]}, {one[1]}>" for name, one in lists.items())

    def of(shape: Sequence[int]) -> str:
        return f"tensor<{'x'.join(map(str, shape))}xf32>"

    def constant(name: str, shape: Sequence[int]) -> str:
        numbers = json.dumps(rng.integers(-3, 4, shape).astype(float).tolist())
        return f"%{name} = trt.constant {{value = dense<{numbers}> : {of(shape)}}} : {of(shape)}"

    layer = "deconvolution" if is_deconvolution else "convolution"
    types = ", ".join(map(of, (image, weights, [kernels])))
    pool = f"window = array<i64: {pooled[0]}, {pooled[1]}>, stride = array<i64: {step[0]}, {step[1]}>"
    text = f"""
func.func @main(%x: {of(image)} {{trt.name = "x"}}) -> ({of(made)} {{trt.name = "y"}}) {{
  {constant("w", weights)}
  {constant("b", [kernels])}
  %c = trt.{layer} %x, %w, %b {{num_groups = {groups} : i64, {written}}} : ({types}) -> {of(between)}
  %y = trt.pooling average %c {{{pool}}} : ({of(between)}) -> {of(made)}
  func.return %y : {of(made)}
}}"""
    module, context = parse_module(text)
    feeds = {"x": rng.standard_normal(image).astype(np.float32)}
    expected = interpret(module, context, feeds)["y"].astype(np.float64)
    run_passes(module, context, "fold-pooling-into-convolution,dce")
    event("declined" if any(op.name == "trt.pooling" for op in module.walk()) else f"folded {layer}")
    found = interpret(module, context, feeds)["y"].astype(np.float64)
    np.testing.assert_allclose(found, expected, atol=1e-5 * max(np.abs(expected).max(), 1.0), rtol=0)
