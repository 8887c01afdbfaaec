"""The target "auto" says in one line which target it is and why; plans for a GPU tell what they are without one."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from fake_driver import FakeDriver
from onnx import ModelProto, helper
from onnx_models import model_of

import mlirt
from mlirt.builder.host import automatic_target
from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime import cuda_driver
from mlirt.runtime.engine import Engine
from mlirt.tools import rt_exec


def model() -> ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node("Softmax", ["a"], ["y"], name="soft"),
    ]
    return model_of(nodes, {"x": ("float32", ["n", 4])}, ["y"], {"w": np.eye(4, 5, dtype=np.float32)})


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(ordinal: int | None = None) -> None:
        raise PlanError("the plan was built for CUDA, but no CUDA driver (libcuda) is here; build it for the CPU")

    monkeypatch.setattr(cuda_driver, "open_driver", absent)


@pytest.mark.usefixtures("no_driver")
def test_log_says_which_and_why(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mlirt"):
        mlirt.compile(model(), "cpu")
        assert not any("the target is" in message for message in caplog.messages)
        mlirt.compile(model())
    said = [message for message in caplog.messages if "the target is" in message]
    assert said == ["mlirt: the target is cpu: no CUDA driver (libcuda) is here"]


def test_with_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    driver: Any = FakeDriver()
    driver.describe = lambda: "NVIDIA H100, 132 processors, driver 13000"
    monkeypatch.setattr(cuda_driver, "open_driver", lambda: driver)
    assert automatic_target() == ("cuda", "the CUDA driver is here, with NVIDIA H100, 132 processors, driver 13000")


@pytest.mark.usefixtures("no_driver")
def test_tools_and_tensorrts_builder_say_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(model().SerializeToString())
    assert rt_exec.main([f"--onnx={path}", "--buildOnly"]) == 0
    assert "[I] The target is cpu: no CUDA driver (libcuda) is here." in capfd.readouterr().out
    builder = mlirt.Builder(mlirt.Logger(mlirt.Logger.Severity.INFO))
    network = builder.create_network(1)
    network.mark_output(network.add_identity(network.add_input("x", mlirt.float32, (2,))).get_output(0))
    assert builder.build_serialized_network(network, builder.create_builder_config()) is not None
    said = capfd.readouterr()
    assert (said.out + said.err).count("The target is cpu: no CUDA driver (libcuda) is here") == 1


@pytest.mark.usefixtures("no_driver")
def test_plan_for_a_gpu_tells_its_inputs_without_one(tmp_path: Path) -> None:
    mlirt.compile(model(), target="cuda", heuristic=True).save(tmp_path / "net.plan")
    engine = mlirt.load(tmp_path / "net.plan")
    assert [str(one) for one in (*engine.inputs, *engine.outputs)] == ["x float32[n, 4]", "y float32[n, 5]"]
    with pytest.raises(PlanError, match="no CUDA driver"):
        engine.run({"x": np.ones((2, 4), np.float32)})
    logger = mlirt.Logger()
    assert mlirt.Runtime(logger).deserialize_cuda_engine((tmp_path / "net.plan").read_bytes()) is None


def test_memory_of_a_dynamic_plan_without_profile() -> None:
    engine = cast("Engine", mlirt.compile(model(), target="cpu"))
    from mlirt.runtime.plan_file import plan_bytes

    plan = plan_bytes(engine.plan.manifest_json, engine.plan.sections, engine.plan.weights)
    found = mlirt.Runtime(mlirt.Logger()).deserialize_cuda_engine(plan)
    assert found is not None
    assert found.device_memory_size > 0


def test_advice_fits_what_was_given() -> None:
    engine = mlirt.compile(model(), target="cpu")
    with pytest.raises(InvalidInputError, match=r"got float64; convert it with numpy.asarray\(value, 'float32'\)"):
        engine.run({"x": cast("Any", [[1.0, 2.0, 3.0, 4.0]])})
    with pytest.raises(InvalidInputError, match=r"got float64; convert it with .astype\('float32'\)"):
        engine.run({"x": np.ones((1, 4))})


def test_values_that_must_be_known_can_be_given() -> None:
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], name="total", keepdims=0)]
    total = model_of(nodes, {"x": ("float32", [2, 4]), "axes": ("int64", ["count"])}, ["y"])
    with pytest.raises(mlirt.MlirtError) as caught:
        mlirt.compile(total, target="cpu")
    assert "graph input 'axes'; give its value by constants= (an array by input), or make it a con" in str(caught.value)
    engine = mlirt.compile(total, target="cpu", constants={"axes": np.array([1])})
    np.testing.assert_array_equal(engine.run({"x": np.ones((2, 4), np.float32)})["y"], [4, 4])
