"""Which code of a plan runs on a device: machine code for it, PTX that its driver compiles, or none."""

from __future__ import annotations

import copy
import logging
import zlib
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver, Maker, cuda_plan

from mlirt.errors import PlanError
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cuda import CudaDevice
from mlirt.runtime.cuda_architectures import choose_architecture
from mlirt.runtime.plan_file import Plan, make_plan


@pytest.mark.parametrize(
    ("offered", "capability", "chosen"),
    [
        (["sm_80", "sm_90a"], (9, 0), "sm_90a"),
        (["sm_80", "sm_90", "sm_90a"], (9, 0), "sm_90a"),
        (["sm_80", "sm_90a"], (8, 6), "sm_80"),
        (["sm_80", "sm_86"], (8, 9), "sm_86"),
        (["sm_80", "sm_90a"], (10, 0), None),
        (["sm_100f"], (10, 3), "sm_100f"),
        (["sm_103a"], (10, 0), None),
        (["sm_90a", "nonsense", ""], (12, 0), None),
        ([], (9, 0), None),
        (["sm_80", "sm_86"], (8, 7), None),
        (["sm_80", "sm_87"], (8, 7), "sm_87"),
        (["sm_87"], (8, 9), None),
        (["sm_80", "compute_80"], (8, 6), "sm_80"),
        (["sm_80", "compute_80"], (8, 7), "compute_80"),
        (["sm_80", "compute_80", "compute_89"], (9, 0), "compute_89"),
        (["sm_80", "compute_80"], (12, 0), "compute_80"),
        (["sm_80", "compute_80"], (7, 5), None),
        (["sm_90a", "compute_90a"], (10, 0), None),
        (["sm_86", "sm_100a", "sm_120"], (12, 1), "sm_120"),
        (["sm_80", "sm_100a"], (10, 0), "sm_100a"),
    ],
)
def test_the_best_architecture_is_chosen(offered: list[str], capability: tuple[int, int], chosen: str | None) -> None:
    assert choose_architecture(offered, capability) == chosen


def test_a_device_without_code_is_refused(tiny: Maker) -> None:
    with pytest.raises(PlanError, match=r"code for sm_80, sm_90a, but this device is sm_75; rebuild it"):
        CudaDevice(cuda_plan(tiny), FakeDriver(capability=(7, 5)))


def _with_ptx(manifest: dict[str, Any]) -> None:
    manifest["kernels"][0]["object"] = {"sm_90a": "scale.o", "compute_80": "scale.ptx"}
    manifest["kernels"][1]["object"] = {"sm_90a": "reverse.o", "compute_80": "scale.ptx"}
    for kernel in manifest["kernels"]:
        kernel["dependent_launch"] = True


def ptx_plan(tiny: Maker, section: bytes) -> Plan:
    """A plan with machine code for one architecture, and PTX."""
    plan = cuda_plan(tiny)
    manifest = copy.deepcopy(dict(plan.manifest_json))
    _with_ptx(manifest)
    return make_plan(manifest, {**plan.sections, "scale.ptx": section}, plan.weights)


def test_a_newer_device_runs_ptx(tiny: Maker, caplog: pytest.LogCaptureFixture) -> None:
    """The driver compiles it, one line of the log says so, and its launches wait: it has no early starts."""
    text = b".version 7.8\n.target sm_80\n"
    plan = ptx_plan(tiny, zlib.compress(text))
    for capability, is_early in (((9, 0), True), ((12, 1), False)):
        driver = FakeDriver(capability=capability)
        with caplog.at_level(logging.INFO, "mlirt"):
            ExecutionContext(plan.manifest, CudaDevice(plan, driver).session()).run({"x": np.ones((5, 4), np.float32)})
        assert (text + b"\0" in driver.codes) != is_early
        assert any(driver.dependent) == is_early
    (told,) = [record.getMessage() for record in caplog.records if "PTX" in record.getMessage()]
    assert told.startswith("mlirt: the plan has no machine code for sm_121: the driver compiles PTX of compute_80")


@pytest.mark.parametrize("section", [b"no text", zlib.compress(b"other"), zlib.compress(b".version 7.8")[:-3]])
def test_damaged_ptx_is_refused(tiny: Maker, section: bytes) -> None:
    with pytest.raises(PlanError, match=r"damaged object code 'scale.ptx': not compressed PTX"):
        CudaDevice(ptx_plan(tiny, section), FakeDriver(capability=(12, 0)))


def test_a_device_with_less_shared_memory_is_refused(tiny: Maker) -> None:
    CudaDevice(cuda_plan(tiny), FakeDriver(shared_bytes=65536))
    with pytest.raises(PlanError, match=r"kernel 'scale' needs 65536 bytes of shared memory, .*\(sm_90\) has 49152"):
        CudaDevice(cuda_plan(tiny), FakeDriver(shared_bytes=49152))
