"""The names of GPUs for other processes: those that the driver counts, in the words of CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import os

import pytest
from cuda_presence import has_cuda

from mlirt.runtime.visible_devices import (
    current_bus_id,
    device_names,
    device_of_number,
    environment_for,
    visible_devices,
)


def test_names_follow_the_variable() -> None:
    assert device_names(3, None) == ("0", "1", "2")
    assert device_names(2, "3, GPU-1f") == ("3", "GPU-1f")
    assert device_names(1, "0,-1,1") == ("0",), "the driver stops at the first that is none"
    assert device_names(0, "") == ()


def test_devices_are_dealt_out_where_there_are_several() -> None:
    assert [device_of_number(number, ("2", "5")) for number in range(4)] == ["2", "5", "2", "5"]
    assert device_of_number(3, ("2",)) is None
    assert device_of_number(3, ()) is None


def test_the_environment_is_ours_but_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert environment_for("1") == {**os.environ, "CUDA_VISIBLE_DEVICES": "1"}
    assert environment_for(None) == dict(os.environ)


@pytest.mark.skipif(has_cuda(), reason="needs a machine without a CUDA device, and this one has some")
def test_none_without_a_driver() -> None:
    assert visible_devices() == ()
    assert current_bus_id() is None
