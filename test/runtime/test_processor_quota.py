"""Quotas of containers, read from folders as Linux makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirt.runtime.processor_quota import processor_quota, within_quota


def tree(folder: Path, own: str, files: dict[str, str]) -> tuple[Path, Path]:
    mount = folder / "cgroup"
    for name, text in files.items():
        path = mount / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    (folder / "own").write_text(own, encoding="ascii")
    return mount, folder / "own"


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/a/b\n", {"cpu.max": "max 100000", "a/cpu.max": "200000 100000", "a/b/cpu.max": "400000 100000"}, 2.0),
        ("0::/a\n", {"a/cpu.max": "50000 100000\n"}, 0.5),
        ("0::/not/seen/here\n", {"cpu.max": "300000 100000\n"}, 3.0),
        ("4:cpu,cpuacct:/", {"cpu,cpuacct/cpu.cfs_quota_us": "2500", "cpu,cpuacct/cpu.cfs_period_us": "1000"}, 2.5),
        ("1:cpu:/x\n0::/\n", {"cpu/x/cpu.cfs_quota_us": "100000\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, 1.0),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ("4:memory:/\n", {"memory/cpu.cfs_quota_us": "1", "memory/cpu.cfs_period_us": "1"}, None),
        ("nonsense", {"cpu.max": "no numbers"}, None),
        ("0::/../..\n", {"cpu.max": "100000 100000"}, 1.0),
        ("", {}, None),
    ],
)
def test_quotas(tmp_path: Path, own: str, files: dict[str, str], expected: float | None) -> None:
    assert processor_quota(*tree(tmp_path, own, files)) == expected


def test_a_system_without_control_groups(tmp_path: Path) -> None:
    assert processor_quota(tmp_path / "none", tmp_path / "neither") is None


@pytest.mark.parametrize(
    ("processors", "quota", "expected"), [(64, None, 64), (64, 1.5, 2), (64, 0.2, 1), (2, 8.0, 2), (4, 3.0, 3)]
)
def test_threads_that_a_quota_has_time_for(processors: int, quota: float | None, expected: int) -> None:
    assert within_quota(processors, quota) == expected
