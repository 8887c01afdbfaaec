"""How much of the processors' time a container may take: the quota of its control group, version 1 or 2."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_MOUNT, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


@cache
def processor_quota(mount: Path = _MOUNT, own: Path = _OWN) -> float | None:
    """How many processors' time this process's control group has, or the narrowest above it; None without a limit."""
    quotas = [quota for group in _groups(mount, own) if (quota := _quota_of(group)) is not None]
    return min(quotas, default=None)


def within_quota(processors: int, quota: float | None) -> int:
    """How many threads a quota has time for; part of a processor counts as one."""
    return processors if quota is None else max(1, min(processors, math.ceil(quota)))


def _groups(mount: Path, own: Path) -> Iterator[Path]:
    """The folders of the control groups that this process is in, each with those above it."""
    try:
        lines = own.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        lines = ["0::/"]
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            yield from _from_root(mount, path)
        elif "cpu" in controllers.split(","):
            yield from _from_root(mount / controllers, path)
            yield from _from_root(mount / "cpu", path)


def _from_root(root: Path, path: str) -> Iterator[Path]:
    """In a container the root may be the group itself, whose path on the host is not to be seen."""
    folder = root
    yield folder
    for name in path.strip("/").split("/"):
        if name in ("", ".."):
            return
        folder = folder / name
        yield folder


def _quota_of(group: Path) -> float | None:
    if (second := _numbers(group / "cpu.max")) is not None:
        return _ratio(*second) if len(second) == 2 else None
    quota, period = _numbers(group / "cpu.cfs_quota_us"), _numbers(group / "cpu.cfs_period_us")
    return _ratio(quota[0], period[0]) if quota and period else None


def _ratio(quota: int, period: int) -> float | None:
    return quota / period if quota > 0 and period > 0 else None


def _numbers(path: Path) -> list[int] | None:
    """The numbers in a file, "max" being -1; None where there is no such file."""
    try:
        return [-1 if word == "max" else int(word) for word in path.read_text("ascii").split()]
    except (OSError, ValueError):
        return None
