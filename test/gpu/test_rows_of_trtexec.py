"""Rows about trtexec on a GPU: what is queued ahead, its advice, graphs and loops."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from device_networks import gpu_config, loop_plan, plan_of, repeated_product_plan
from layer_networks import CollectingLogger, new_network

import mlirt as trt
from mlirt.tools import rt_exec

pytestmark = pytest.mark.gpu
BOUND = "* Throughput may be bound by {} rather than GPU Compute and the GPU may be under-utilized."
GRAPHS = "operations that are not permitted under CUDA graph capture mode."
_TRIES = 2
QUICK = ["--warmUp=50", "--duration=0", "--iterations=40", "--avgRuns=0"]
Measured = Callable[..., str]


def long_plan() -> bytes:
    """Products that take long beside the way of their inputs, and beside what it costs to queue them on a busy host."""
    return repeated_product_plan(CollectingLogger(), 1024, 2048, 32)


def activation_plan(elements: int) -> bytes:
    """y = relu(x)."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (elements,))
    y = network.add_activation(x, trt.ActivationType.RELU).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return plan_of(network, gpu_config(logger), logger)


def non_zero_plan() -> bytes:
    """y = 2 * the places of what is not 0, of which the host has to know how many there are."""
    logger = CollectingLogger()
    network = new_network(logger)
    found = network.add_non_zero(network.add_input("x", trt.float32, (4, 32))).get_output(0)
    y = network.add_elementwise(found, found, trt.ElementWiseOperation.SUM).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return plan_of(network, gpu_config(logger), logger)


@pytest.fixture
def measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Measured:
    """Runs a plan by rt-exec; returns what it prints."""

    def measure(plan: bytes, *flags: str) -> str:
        path = tmp_path / "engine.plan"
        path.write_bytes(plan)
        assert rt_exec.main([f"--loadEngine={path}", *QUICK, *flags]) == 0, capsys.readouterr()
        return capsys.readouterr().out

    return measure


@pytest.mark.parametrize("flags", [[], ["--noDataTransfers"]])
def test_one_run_is_queued_ahead(measured: Measured, tmp_path: Path, flags: list[str]) -> None:
    """tensorrt-features.md#30.6: a run is queued while the one before it is under way, and not the one behind it; the
    kernels of two runs do not overlap.
    """
    measured(long_plan(), f"--exportTimes={tmp_path / 'times.json'}", *flags)
    runs: list[dict[str, float]] = json.loads((tmp_path / "times.json").read_text())
    assert len(runs) >= 40
    runs.sort(key=lambda run: run["startEnqMs"])
    assert median([run["computeMs"] for run in runs]) > 0.1
    following = list(pairwise(runs))
    ahead = [after["endEnqMs"] < run["endD2hMs"] for run, after in following]
    assert sum(ahead) > 0.8 * len(ahead)
    if not flags:
        one_by_one = [after["startComputeMs"] > run["endComputeMs"] - 0.1 for run, after in following]
        assert sum(one_by_one) > 0.8 * len(one_by_one)
        second = [after["startEnqMs"] > run["endComputeMs"] for run, after in zip(runs, runs[2:], strict=False)]
        assert sum(second) > 0.8 * len(second)


def test_advice_where_the_host_is_slow(measured: Measured) -> None:
    """tensorrt-features.md#30.9: a network of one small kernel takes longer to queue than to compute."""
    out = measured(activation_plan(64))
    assert "[W] " + BOUND.format("Enqueue Time") in out
    assert "--useCudaGraph (utilize CUDA graphs where possible) may increase the throughput." in out


def test_advice_where_transfers_are_slow(measured: Measured) -> None:
    """tensorrt-features.md#30.9: 64 MiB each way take longer than one pass over them; without them nothing is said.

    Where another process uses the GPU, the pass may take longer than both: then it is measured again.
    """
    plan, said = activation_plan(1 << 24), ["[W] " + BOUND.format(way) for way in ("H2D Latency", "D2H Latency")]
    out = measured(plan)
    for _ in range(_TRIES):
        if all(one in out for one in said):
            break
        out = measured(plan)
    for one in said:
        assert one in out
    assert "Add --noDataTransfers flag to disable data transfers." in out
    assert "--noDataTransfers flag" not in measured(plan, "--noDataTransfers")


def test_no_advice_where_the_device_is_busy(measured: Measured) -> None:
    """tensorrt-features.md#30.9."""
    assert "Throughput may be bound by" not in measured(long_plan(), "--noDataTransfers")


def test_graphs_and_loops(measured: Measured) -> None:
    """tensorrt-features.md#30.12: where the host decides, --useCudaGraph warns in trtexec's words and runs; a loop that
    the device decides about is part of the graph, and one kernel is one.
    """
    out = measured(non_zero_plan(), "--useCudaGraph")
    assert f"[W] The built TensorRT engine contains {GRAPHS}" in out
    assert "[W] The specified --useCudaGraph flag has been ignored." in out
    assert GRAPHS not in measured(non_zero_plan())
    assert GRAPHS not in measured(activation_plan(64), "--useCudaGraph")
    plan = loop_plan(CollectingLogger())
    (decision,) = trt.load(plan).decisions
    assert (GRAPHS in measured(plan, "--useCudaGraph")) == (decision.decided_by == "host")
