"""Which code runs on a CUDA device: the architectures of cubins against its compute capability."""

import re
from collections.abc import Sequence

_ARCH = re.compile(r"^sm_(\d{2,3})([af]?)$")

_TEGRA = {(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)}
"""Jetson and Drive; 10.1 became 11.0."""


def choose_architecture(offered: Sequence[str], capability: tuple[int, int]) -> str | None:
    """The newest of the `offered` architectures whose code runs on a device of this compute capability.

    `sm_80` runs on 8.0 and later 8.x, `sm_90a` on 9.0 alone, `sm_100f` on 10.x from 10.0 on. Those of Tegra run on
    themselves alone: the CUDA programming guide excepts them from binary compatibility.
    """
    fitting: list[tuple[int, int, str]] = []
    for arch in offered:
        match = _ARCH.match(arch)
        if match is None:
            continue
        major, minor = divmod(int(match[1]), 10)
        exact = match[2] == "a" or capability in _TEGRA or (major, minor) in _TEGRA
        if (major, minor) == capability or (not exact and major == capability[0] and minor < capability[1]):
            fitting.append((minor, ("", "f", "a").index(match[2]), arch))
    return max(fitting)[2] if fitting else None
