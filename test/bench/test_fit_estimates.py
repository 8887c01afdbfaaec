"""The numbers that bench/fit_estimates.py fits are those of a device, and what it writes is a device file."""

from __future__ import annotations

from pathlib import Path

import pytest
from fit_estimates import FAMILIES

from mlirt.dialects.device_files import gpu_device


@pytest.mark.parametrize(("family", "name"), [("warpgroups", "latency"), ("tiles", "float_64x64.busy")])
@pytest.mark.parametrize("like", ["h100-pcie", "h200+processors=100"])
def test_fitted_numbers_are_a_device_file(family: str, name: str, like: str, tmp_path: Path) -> None:
    fitted = FAMILIES[family](gpu_device(like))
    fitted.set(name, 1234.0)
    path = tmp_path / "mine.toml"
    path.write_text(fitted.file(like))
    device = gpu_device(str(path))
    assert FAMILIES[family](device).get(name) == 1234.0
    assert device.processors == gpu_device(like).processors
    for other in fitted.names:
        assert FAMILIES[family](device).get(other) == pytest.approx(fitted.get(other), rel=1e-3)


def test_estimates_follow_from_the_numbers() -> None:
    from mlirt.kernels.lib.cuda.warpgroups.group_choice import GroupWork

    fitted = FAMILIES["warpgroups"](gpu_device("h200"))
    work = GroupWork(4096, 4096, 1, 64, may_split=True, device=gpu_device("h200"))
    before = fitted.estimate(work, "cuda_wgmma:128x256s4")
    fitted.set("start", fitted.get("start") + 1600)
    after = fitted.estimate(work, "cuda_wgmma:128x256s4")
    assert before is not None
    assert after == pytest.approx(before + 1)
    assert fitted.estimate(work, "cuda_tiles:64x64") is None
