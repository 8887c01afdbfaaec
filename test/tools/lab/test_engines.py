"""Sides are timed by the clock of their device: of a GPU here a simulated one, whose clock counts launches."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from fake_driver import FakeDriver, cuda_plan
from tiny_plan import tiny_parts

from mlirt.runtime import cuda
from mlirt.tools.lab.engines import open_both
from mlirt.tools.lab.interleaving import measure


def test_times_are_those_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver()
    monkeypatch.setattr(cuda, "CudaDevice", partial(cuda.CudaDevice, driver=driver))
    plan = cuda_plan(tiny_parts)
    feeds = {"x": np.ones((3, 4), np.float32)}
    first, second = open_both(plan, plan, feeds)(False)
    launches = len(plan.manifest.launches)
    assert first() == second() == pytest.approx(launches / 1e3)  # the clock counts one millisecond a launch
    found = measure(open_both(plan, plan, feeds), 0.2, 0.01)
    assert (found.ratio.low, found.ratio.value, found.ratio.high) == (1, 1, 1)
    assert found.ratio.verdict == "no difference that could be shown"
