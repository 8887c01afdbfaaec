"""Tactics for a CPU are measured on it where a build asks for that: by running each, cold or warm, with its borders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime_session import cpu_session
from recurrent_models import recurrent_model
from xdsl.dialects.builtin import ModuleOp, StringAttr

import mlirt
from mlirt.builder.host import cpu_target
from mlirt.builder.tactics.agreement import Outcome
from mlirt.builder.tactics.cpu_timer import CpuTimer
from mlirt.builder.tactics.network_of_one_op import EDGE
from mlirt.builder.tactics.selection import Tuning, select_tactics
from mlirt.builder.tactics.sites import find_sites
from mlirt.builder.tactics.timing_cache import TimingCache
from mlirt.builder.tactics.trial import trials
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.contraction import ConvolutionOp, MatmulOp
from mlirt.errors import InvalidInputError
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.tools.rt_exec import main

Plans = Sequence[Any]
Array = np.ndarray[Any, np.dtype[Any]]


def network(batch: int = 5) -> onnx.ModelProto:
    """A convolution whose images have borders, one that becomes a product with summed windows, and a product."""
    rng = np.random.default_rng(7)

    def stored(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array((rng.standard_normal(shape) / 8).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "k1"], ["a"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "k2"], ["c"], name="second", pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["d"]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("Gemm", ["e", "w"], ["y"], name="classifier"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 19, 13])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 33])
    initial = [stored("k1", 32, 3, 3, 3), stored("k2", 48, 32, 3, 3), stored("w", 48, 33)]
    graph = helper.make_graph(nodes, "timed", [x], [y], initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def layers(model: onnx.ModelProto) -> tuple[ModuleOp, RtContext]:
    """The network as tactics are chosen for it."""
    context = RtContext()
    module = import_model(model, context)
    run_phases(module, context, last="layout", options=PipelineOptions("cpu"))
    return module, context


def test_the_engine_is_right_and_a_second_build_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, cache = network(), TimingCache()
    engine = mlirt.compile(model, target="cpu", cpu_timing=True, timing_cache=cache)
    x = np.random.default_rng(0).standard_normal((5, 3, 19, 13)).astype(np.float32)
    want = cpu_session(model).run(None, {"x": x})[0]
    np.testing.assert_allclose(engine.run({"x": x})["y"], want, rtol=1e-4, atol=1e-5)
    (place,) = cache.places()
    module, context = layers(model)
    timed = 0
    for site in find_sites(module, context, cpu_target()):
        known = cache.get(place, f"{site.text}; weights warm")
        if isinstance(site.ops[0], ConvolutionOp | MatmulOp):
            tiles = [time for name, time in known.items() if name.startswith("cpu_tiles:")]
            assert len(tiles) > 1
            assert all(0 < time < float("inf") for time in tiles), known
            timed += 1
    assert timed == 3

    def times(self: CpuTimer, plans: Plans, shapes: Plans, feeds: Plans) -> list[float]:
        raise AssertionError("measured again")

    monkeypatch.setattr(CpuTimer, "times", times)
    again = mlirt.compile(model, target="cpu", cpu_timing=True, timing_cache=cache)
    np.testing.assert_array_equal(again.run({"x": x})["y"], engine.run({"x": x})["y"])


class Planted(CpuTimer):
    """Measures what it runs; the last of each layer's ways is said to be the fastest, by so much."""

    gain = 0.5

    def times(self, plans: Plans, shapes: Plans, feeds: Plans) -> list[float]:
        assert all(0 < time < float("inf") for time in super().times(plans, shapes, feeds))
        return [*[10.0] * (len(plans) - 1), 10.0 * (1 - self.gain)]


def chosen(timer: CpuTimer, model: onnx.ModelProto) -> list[str]:
    """The tactics that the products of a network are given, in place of the estimated ones."""
    module, context = layers(model)
    select_tactics(module, context, cpu_target(), Tuning(timer), lambda text, done, total: None)
    ops = [op for op in module.walk() if isinstance(op, ConvolutionOp | MatmulOp)]
    names = [op.attributes.get("fused.tactic") for op in ops]
    return [name.data if isinstance(name, StringAttr) else "" for name in names]


def test_a_tactic_replaces_the_estimated_one_where_it_is_faster_by_more_than_noise() -> None:
    model, timer = network(), Planted(cpu_target(), 2)
    module, context = layers(model)
    sites = [site for site in find_sites(module, context, cpu_target()) if "cpu_amx" in str(site.candidates)]
    estimated = [next(one.name for one in site.candidates if one.cost is not None) for site in sites]
    assert all(name not in ("", first) for name, first in zip(chosen(timer, model), estimated, strict=True))
    timer.gain = timer.margin / 2
    assert all(name in ("", first) for name, first in zip(chosen(timer, model), estimated, strict=True))


def test_each_tile_computes_the_layer() -> None:
    """The tiles that are measured give the results of plain loops, also where pixels and channels are left over."""
    module, context = layers(network())
    timer, compared = CpuTimer(cpu_target(), 1), 0
    for site in find_sites(module, context, cpu_target()):
        names = [one.name for one in site.candidates if one.name.startswith("cpu_tiles:")]
        made = trials(site.ops[0], [*names, "generic"], context, cpu_target(), {}) if names else []
        with timer.compiler() as compiler:
            compiler.take(source for trial in made for source in trial.sources.values())
            codes = compiler.finish()
        want: Sequence[Array] = ()
        for trial in made:
            code = timer.plan_code({name: codes[one] for name, one in trial.sources.items()})
            plan = trial.plan(2, code)
            given = [np.ones(shape, np.float32) for shape in trial.shapes]
            given[0] = np.random.default_rng(1).standard_normal(trial.shapes[0]).astype(np.float32)
            (outcome,) = timer.outcomes([plan], [trial.shapes], [given])
            assert isinstance(outcome, Outcome)
            assert outcome.differing == 0
            want = want or outcome.outputs
            for got, expected in zip(outcome.outputs, want, strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
                compared += 1
    assert compared > 8


def test_borders_are_made_once_however_often_a_layer_runs() -> None:
    module, context = layers(network())
    (op,) = [op for op in module.walk() if isinstance(op, ConvolutionOp)]
    (trial,) = trials(op, ["cpu_tiles"], context, cpu_target(), {})
    timer = CpuTimer(cpu_target(), 1)
    with timer.compiler() as compiler:
        compiler.take(trial.sources.values())
        codes = compiler.finish()
    code = timer.plan_code({name: codes[one] for name, one in trial.sources.items()})
    launches = trial.plan(7, code).manifest.launches
    edges = [one for one in launches if one.layer == EDGE]
    assert edges
    assert len(launches) == len(edges) + 7 * (len(trial.manifest["launches"]) - len(edges))


def test_a_layer_that_is_a_loop_of_launches_is_left_to_its_estimate() -> None:
    model, given = recurrent_model("GRU", hidden=40)
    engine = mlirt.compile(model, target="cpu", cpu_timing=True, timing_cache=TimingCache())
    for got, want in zip(engine.run(given).values(), cpu_session(model).run(None, given), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_code_for_another_machine_is_not_measured_here() -> None:
    with pytest.raises(InvalidInputError, match=r"cpu_timing: .* but code for neoverse-v1 is asked for"):
        mlirt.compile(network(), target="cpu", cpu="neoverse-v1", cpu_timing=True)


def test_the_command_measures_and_keeps_the_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, times = tmp_path / "timed.onnx", tmp_path / "times"
    path.write_bytes(network(1).SerializeToString())
    flags = [f"--onnx={path}", "--target=cpu", "--cpuTiming", f"--timingCacheFile={times}", "--buildOnly"]
    assert main([*flags, "--avgTiming=2", "--minTiming=2"]) == 0
    assert any(name for name in TimingCache.load(times).places())
    assert main([*flags, "--cpu=neoverse-v1"]) == 1
    assert "leave one of the two out" in capsys.readouterr().err


def test_a_machine_with_more_features_than_its_code_may_use_says_so() -> None:
    """What all code may use, and what some kernels are made for: both are in the name of the place."""
    machine = replace(cpu_target(), special=frozenset({"avx512vnni"}))
    assert "avx512vnni" in CpuTimer(machine, 1).device
