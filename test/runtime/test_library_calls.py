"""Launches that a library computes: run in the order of the plan, refused where the plan or the machine is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver
from lowered_network import parse_module

from mlirt.builder.plan_writer.manifest import manifest_of
from mlirt.errors import PlanError, UnsupportedError
from mlirt.passes.pipeline import run_passes
from mlirt.runtime import cublas_lt, cudnn, shared_libraries
from mlirt.runtime.c_library.export import export_c
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cuda import CudaDevice
from mlirt.runtime.plan_file import Plan, make_plan

PRODUCT = """
    func.func @main(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>> {trt.name = "x"}, %w: tensor<3x4xf32> {trt.name = "w"})
        -> (tensor<?x4xf32, #trt.dims<["n", "4"]>> {trt.name = "y"}) {
      %y = fused.matmul %x, %w : (tensor<?x3xf32, #trt.dims<["n", "3"]>>, tensor<3x4xf32>)
          -> tensor<?x4xf32, #trt.dims<["n", "4"]>> {
      ^bb0(%acc: f32):
        fused.yield %acc : f32
      }
      func.return %y : tensor<?x4xf32, #trt.dims<["n", "4"]>>
    }"""


def plan_of(change: Callable[[dict[str, Any]], None] | None = None) -> Plan:
    module, context = parse_module(PRODUCT)
    tactic = "convert-fused-to-kernel{target=cuda features=cublas_lt tactic=cuda_cublas_lt}"
    run_passes(module, context, f"{tactic},plan-memory")
    manifest: dict[str, Any] = manifest_of(module)
    manifest["target"] = {"kind": "cuda", "arch": "sm_90a"}
    if change is not None:
        change(manifest)
    return make_plan(manifest, {}, {})


def test_the_plan_says_which_library_it_needs() -> None:
    (kernel,) = plan_of().manifest.kernels
    assert kernel.name.startswith("cublas_lt_product")
    assert kernel.objects == {}
    assert kernel.written == {2, 3}
    assert kernel.call is not None
    assert (kernel.call.library, kernel.call.elements) == ("cublas_lt", ("float32", "float32", "float32"))


def test_a_library_computes_launches_in_the_captured_graph() -> None:
    driver, plan = FakeDriver(), plan_of()
    context = ExecutionContext(plan.manifest, CudaDevice(plan, driver).session())
    noise = np.random.default_rng(0)
    for rows in (5, 2, 5):
        x, w = noise.standard_normal((rows, 3), np.float32), noise.standard_normal((3, 4), np.float32)
        np.testing.assert_allclose(context.run({"x": x, "w": w})["y"], x @ w, rtol=1e-5)
    assert sum(driver.replays.values()) == 3
    assert len(driver.products.asked) == 2  # once for each shape
    assert driver.launches == []


def test_a_c_library_makes_no_such_call(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="are calls of cublas_lt, which a C library does not make"):
        export_c(plan_of(), tmp_path)


def test_an_empty_product_is_not_asked_for() -> None:
    driver, plan = FakeDriver(), plan_of()
    context = ExecutionContext(plan.manifest, CudaDevice(plan, driver).session())
    found = context.run({"x": np.zeros((0, 3), np.float32), "w": np.zeros((3, 4), np.float32)})
    assert found["y"].shape == (0, 4)
    assert driver.products.asked == []


@pytest.mark.parametrize(
    ("module", "name", "what"), [(cublas_lt, "open_cublas_lt", "cuBLASLt"), (cudnn, "open_cudnn", "cuDNN")]
)
def test_a_library_that_is_not_there_is_named(
    module: Any, name: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(names: object) -> None:
        return None

    getattr(module, name).cache_clear()
    monkeypatch.setattr(module, "load_shared", nothing)
    with pytest.raises(PlanError, match=rf"calls {what}, which is not here: install .* without the tactic source"):
        getattr(module, name)()


def test_libraries_are_looked_for_in_the_packages_of_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    (folder / "libnobody.so.1").write_bytes(b"no library")
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    tried: list[str] = []

    def load(name: str) -> None:
        tried.append(name)
        raise OSError(name)

    monkeypatch.setattr(shared_libraries.ctypes, "CDLL", load)
    assert shared_libraries.load_shared(["libnobody.so.1"]) is None
    assert tried == [str(folder / "libnobody.so.1"), "libnobody.so.1"]


BROKEN: list[tuple[str, object, str]] = [
    ("library", "../evil.so", "library: '../evil.so' is none of cublas_lt, cudnn"),
    ("symbol", "system", "symbol: cublas_lt computes a 'matmul'"),
    ("call", None, "kernels[0].call: is missing"),
    ("args", [*["ptr"] * 4, *["i64"] * 9, "i32"], "kernels[0].args: expected 4 pointers and 10 numbers"),
]
BROKEN_CALLS: list[tuple[str, object, str]] = [
    ("elements", ["float32"], "call.elements: expected three or four of"),
    ("elements", ["float32", "float32", "text"], "call.elements: expected three or four of"),
    ("transposed", [1, 0], "call.transposed: expected true or false"),
    ("activation", "tanh", "call.activation: expected one of none, relu, gelu_tanh"),
    ("proposal", -1, "call.proposal: expected a whole number"),
    ("colour", 1, "call.colour: is no field"),
]


@pytest.mark.parametrize(("field", "value", "message"), [*BROKEN, *BROKEN_CALLS])
def test_what_breaks_a_rule_is_refused(field: str, value: object, message: str) -> None:
    def change(manifest: dict[str, Any]) -> None:
        kernel = manifest["kernels"][0]
        (kernel["call"] if (field, value, message) in BROKEN_CALLS else kernel)[field] = value

    with pytest.raises(PlanError) as found:
        plan_of(change)
    assert message in str(found.value)


def test_a_plan_for_the_cpu_calls_no_library() -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["target"] = {"kind": "cpu"}

    with pytest.raises(PlanError, match="only a plan for CUDA calls libraries"):
        plan_of(change)
