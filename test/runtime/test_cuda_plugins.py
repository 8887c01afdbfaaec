"""Plugins in engines for a GPU, on a driver that keeps device memory on the host: they stand between graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver, Maker, cuda_plan
from repeat_plugin import RepeatCreator, registered

from mlirt.errors import PluginError
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cuda import CudaDevice
from mlirt.runtime.decisions import decisions
from mlirt.runtime.engine import Engine
from mlirt.runtime.plan_file import Plan

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
STATE = np.frombuffer(b'{"factor": 3.0, "times": 1}', np.uint8)


def with_plugin(manifest: dict[str, Any]) -> None:
    """The plugin stands between both kernels of the tiny plan: cos of the reverse of 3 * (2 * x + 1)."""
    lengths = [{"int": length} for length in ("n", 4, "n", 4)]
    manifest["kernels"].append(
        {
            "name": "plugin_1",
            "symbol": "Repeat",
            "object": {},
            "args": ["ptr"] * 2 + ["i64"] * 4,
            "written": [1],
            "plugin": {
                "version": "1",
                "namespace": "",
                "state": "state",
                "inputs": 1,
                "elements": ["float32", "float32"],
                "ranks": [2, 2],
            },
        }
    )
    launch = {"kernel": 2, "layer": "rep", "args": [{"buffer": 1}, {"buffer": 5}, *lengths], "grid": [1, 1, 1]}
    manifest["launches"].insert(1, launch)
    manifest["launches"][2]["args"][0] = {"buffer": 5}
    manifest["buffers"].append({"kind": "arena", "bytes": manifest["buffers"][1]["bytes"], "first": 1, "last": 2})
    manifest["buffers"][4] |= {"first": 3, "last": 4}


def plugin_plan(tiny: Maker, **more: Any) -> Plan:
    def make() -> Any:
        parts = tiny()
        parts.weights["state"] = STATE
        return parts

    def change(manifest: dict[str, Any]) -> None:
        with_plugin(manifest)
        manifest |= more

    return cuda_plan(make, change)


def expected(x: np.ndarray) -> np.ndarray:
    return np.cos(3 * (2 * x + 1).ravel()[::-1]).reshape(x.shape)


def test_plugin_between_graphs(tiny: Maker) -> None:
    """tensorrt-features.md#19.5, 19.8, 19.13: the plugin gets device addresses and the context's stream; graphs stand
    around it.
    """
    driver, creator = FakeDriver(), RepeatCreator()
    with registered(creator):
        device = CudaDevice(plugin_plan(tiny), driver)
        context = ExecutionContext(device.manifest, device.session())
        assert creator.events == ["deserialize rep", "initialize", "clone"]
        for x in (X, X[:1], X, X):
            creator.events.clear()
            np.testing.assert_allclose(context.run({"x": x})["y"], expected(x), rtol=1e-6)
            assert creator.events[-1] == f"enqueue {x.shape} -> {x.shape} on a stream"
        assert creator.events == ["enqueue (2, 4) -> (2, 4) on a stream"]
        assert driver.replays.total() == 8
        assert [layer for layer, _ in context.profile({"x": X})] == ["double", "rep", "turn", "weigh"]
        blocks = len(driver.memory)
        del context
        assert len(driver.memory) < blocks  # the workspace too
        creator.events.clear()
        del device
        assert creator.events == ["terminate", "destroy"]


def test_plugin_in_a_branch(tiny: Maker) -> None:
    """The host decides about a branch with a plugin in it, also where the device could."""
    sign = {"buffer": 0, "offset": 3}
    program = [0, {"if": sign, "then": [1, 2], "else": []}, 3]
    with registered(RepeatCreator()):
        plan = plugin_plan(tiny, program=program)
        driver = FakeDriver()
        context = ExecutionContext(plan.manifest, CudaDevice(plan, driver).session())
        ones = np.ones((2, 4), np.float32)
        np.testing.assert_allclose(context.run({"x": ones})["y"], expected(ones), rtol=1e-6)
        assert driver.replays.total() == 3
        (decision,) = decisions(plan.manifest, on_device=True)
        assert (decision.kind, decision.layers, decision.decided_by) == ("branch", ("rep", "turn"), "host")


def test_no_creator(tiny: Maker) -> None:
    """tensorrt-features.md#19.14."""
    with pytest.raises(PluginError, match=r"rep: getPluginCreator\(\) could not find Plugin Repeat version 1"):
        CudaDevice(plugin_plan(tiny), FakeDriver())


def test_an_engine_that_waits_needs_no_creator(tiny: Maker) -> None:
    """A plan for a GPU can be made and saved where neither the GPU nor the plugin is."""
    engine = Engine(plugin_plan(tiny), waits=True)
    assert engine.target == "cuda"
