"""Which code runs on a CUDA device: machine code and PTX, by their architectures, against its compute capability."""

import re
from collections.abc import Sequence

from mlirt.errors import PlanError

_ARCH = re.compile(r"^(sm|compute)_(\d{2,3})([af]?)$")

_TEGRA = {(5, 3), (6, 2), (7, 2), (8, 7), (8, 8), (10, 1), (11, 0)}
"""Jetson and Drive, and others of that kind; 10.1 became 11.0."""
_STARTS_EARLY = 90
"""The first architecture whose code may begin before the launch before it has ended, and waits for that itself."""


def rank_of(arch: str, capability: tuple[int, int]) -> tuple[int, int, int] | None:
    """How well code suits a device of this compute capability, the greatest best; None where it does not run there.

    `sm_80` runs on 8.0 and later 8.x, `sm_90a` on 9.0 alone, `sm_100f` on 10.x from 10.0 on. Those of Tegra run on
    themselves alone: the CUDA programming guide excepts them from binary compatibility. `compute_80` is PTX, which the
    driver compiles for all devices from 8.0 on; PTX of `compute_90a` runs on 9.0 alone.
    """
    match = _ARCH.match(arch)
    if match is None:
        return None
    own, suffix = divmod(int(match[2]), 10), match[3]
    is_same, is_older = own == capability, own < capability
    if match[1] == "compute":
        return (0, int(match[2]), 0) if is_same or (is_older and not suffix) else None
    fixed = suffix == "a" or capability in _TEGRA or own in _TEGRA
    if not (is_same or (is_older and own[0] == capability[0] and not fixed)):
        return None
    return (1, own[1], ("", "f", "a").index(suffix))


def choose_architecture(offered: Sequence[str], capability: tuple[int, int]) -> str | None:
    """The best of the `offered` codes for a device of this capability: machine code before PTX, the newest of each."""
    ranks = {arch: rank for arch in offered if (rank := rank_of(arch, capability)) is not None}
    return max(ranks, key=lambda arch: ranks[arch]) if ranks else None


def is_ptx(arch: str) -> bool:
    """Whether code is PTX, which the driver compiles."""
    return arch.startswith("compute_")


def starts_early(arch: str, capability: tuple[int, int]) -> bool:
    """Whether code and a device let a launch begin before the one before it has ended."""
    match = _ARCH.match(arch)
    return match is not None and _STARTS_EARLY <= min(int(match[2]), 10 * capability[0] + capability[1])


def refuse_device(offered: Sequence[str], capability: tuple[int, int]) -> PlanError:
    """The error for a device that none of the `offered` codes runs on."""
    return PlanError(
        f"the plan has code for {', '.join(sorted(offered))}, but this device is sm_{capability[0]}{capability[1]}; "
        "rebuild it for this device"
    )
