"""Buffers with borders that share memory with others: results equal those of buffers with slots of their own."""

from __future__ import annotations

import threading
from functools import cache

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from onnx_models import Array, run_onnxruntime

from mlirt.builder.compile import compile
from mlirt.runtime import placements
from mlirt.runtime.engine import Engine
from mlirt.runtime.plan_file import Plan
from mlirt.runtime.shape_binding import bind_shapes

CHANNELS = 16
# A branch in a loop, and a way there and back; every convolution reads a border.
NETWORK = """
<ir_version: 8, opset_import: ["" : 17]>
network (float[n, 16, h, w] x, int64 count, float[16, 16, 3, 3] w0, float[16, 16, 3, 3] w1, float[16, 16, 5, 5] w2)
   => (float[n, 16, i, j] y) {
   a = Conv <pads = [1, 1, 1, 1]> (x, w0)
   b = Relu (a)
   wide = Conv <pads = [2, 2, 2, 2]> (b, w2)
   soft = Tanh (wide)
   small = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (soft)
   go = Constant <value = bool {1}> ()
   looped = Loop (count, go, small) <body: graph = body (int64 i, bool go_in, float[n, 16, k, l] s) =>
      (bool go_out, float[n, 16, k, l] t) {
      go_out = Identity (go_in)
      two = Constant <value = int64 {2}> ()
      none = Constant <value = int64 {0}> ()
      half = Mod (i, two)
      even = Equal (half, none)
      p = Conv <pads = [1, 1, 1, 1]> (s, w1)
      q = Tanh (p)
      t = If (even) <
         then_branch: graph = one () => (float[n, 16, k, l] r1) {
            r0 = Conv <pads = [2, 2, 2, 2]> (q, w2)
            r1 = Tanh (r0)
         },
         else_branch: graph = other () => (float[n, 16, k, l] u3) {
            u0 = Conv <pads = [1, 1, 1, 1]> (q, w0)
            u1 = Relu (u0)
            u2 = Conv <pads = [1, 1, 1, 1]> (u1, w1)
            u3 = Tanh (u2)
         }>
   }>
   y0 = Conv <pads = [1, 1, 1, 1]> (looped, w0)
   y = Tanh (y0)
}
"""
SHAPES = [(1, 12, 20), (2, 9, 6), (1, 3, 40), (3, 16, 16), (1, 1, 2), (1, 12, 20)]


def _network() -> onnx.ModelProto:
    model = parser.parse_model(NETWORK)
    noise = np.random.default_rng(0)
    while len(model.graph.input) > 2:
        value = model.graph.input.pop(2)
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        weight = (noise.standard_normal(shape) * (shape[1] * shape[2] ** 2) ** -0.5).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, value.name))
    return model


@cache
def _plan() -> Plan:
    engine = compile(_network(), target="cpu")
    assert isinstance(engine, Engine)
    return engine.plan


def _feeds(shape: tuple[int, int, int], count: int = 3) -> dict[str, Array]:
    batch, rows, pixels = shape
    x = np.random.default_rng(1).standard_normal((batch, CHANNELS, rows, pixels)).astype(np.float32)
    return {"x": x, "count": np.array(count)}


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> list[Array]:
    """The results where each border has a slot of its own; small arenas share memory, too, from then on."""
    with monkeypatch.context() as patch:
        patch.setattr(placements, "_SMALL_UNITS", 1 << 40)
        engine = Engine(_plan())
        results = [engine.run(_feeds(shape, count))["y"] for shape in SHAPES for count in (0, 1, 3)]
    monkeypatch.setattr(placements, "_SMALL_UNITS", 0)
    return results


def _equal(engine: Engine, wanted: list[Array]) -> None:
    feeds = [_feeds(shape, count) for shape in SHAPES for count in (0, 1, 3)]
    for given, want in zip(feeds, wanted, strict=True):
        np.testing.assert_array_equal(engine.run(given)["y"], want)


def test_the_network_is_right() -> None:
    feeds = _feeds(SHAPES[0])
    np.testing.assert_allclose(Engine(_plan()).run(feeds)["y"], run_onnxruntime(_network(), feeds)[0], atol=1e-5)


def test_results_are_equal_to_the_bit(apart: list[Array]) -> None:
    engine = Engine(_plan())
    for _ in range(2):
        _equal(engine, apart)


def test_memory_is_saved(apart: list[Array]) -> None:
    bound = bind_shapes(_plan().manifest, [(1, CHANNELS, 64, 64), ()])
    assert bound.rewritten.sum() >= 4
    assert bound.live_bytes <= bound.arena_bytes <= 1.15 * bound.live_bytes


@pytest.mark.parametrize("side", ["start", "end"])
def test_between_guard_pages(apart: list[Array], monkeypatch: pytest.MonkeyPatch, side: str) -> None:
    """There every border is written again in each run, and nothing else is there at first."""
    monkeypatch.setenv("MLIRT_GUARD", side)
    _equal(Engine(_plan()), apart)


def test_contexts_side_by_side(apart: list[Array]) -> None:
    engine = Engine(_plan())
    faults: list[BaseException] = []

    def many() -> None:
        context = engine.create_execution_context()
        try:
            for _ in range(4):
                for want, (shape, count) in zip(apart, [(s, c) for s in SHAPES for c in (0, 1, 3)], strict=True):
                    np.testing.assert_array_equal(context.run(_feeds(shape, count))["y"], want)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=many) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
