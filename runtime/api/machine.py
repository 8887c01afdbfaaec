"""The model of device that a plan was made on, beside that which it runs on (tensorrt-features.md#21.4, 31.10)."""

from __future__ import annotations

from collections.abc import Mapping

from mlirt.errors import MlirtError

_FIELDS = {
    "model": "its model",
    "processors": "the number of its processors",
    "cache_bytes": "the size of its cache",
    "shared_bytes": "the shared memory of a block",
    "memory_gb_s": "the bandwidth of its memory",
    "clock_mhz": "its clock",
}

WARNING = (
    "Using an engine plan file across different models of devices is not recommended and is likely to affect "
    "performance or even cause errors."
)
"""TensorRT's words."""


def machine_of(target: str) -> dict[str, object]:
    """What is known of the device that an engine for a target runs on here; nothing where there is none."""
    if target != "cuda":
        from mlirt.runtime.host_cpu import host_model

        return {"model": host_model()}
    from mlirt.runtime.cuda_driver import open_driver

    try:
        driver = open_driver()
        driver.activate()
        return {"model": driver.name(), "cache_bytes": driver.cache_bytes(), **driver.figures()}
    except MlirtError:
        return {}


def differences(made_on: Mapping[str, object], here: Mapping[str, object]) -> list[str]:
    """What of the device is another than where the plan was made, in words; of what is known of both."""
    return [
        f"{_FIELDS[key]} is {here[key]}, and was {made_on[key]}"
        for key in _FIELDS
        if key in made_on and key in here and made_on[key] != here[key]
    ]
