"""What the fusion benchmark does beside the device: order, verdicts, locks between processes, the table."""

from __future__ import annotations

import fcntl
import multiprocessing
import time
from multiprocessing.context import ForkProcess
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest
from fusion_gpu import Device, Row, jobs_of, line, row_file, table, verdict


def test_sequences_come_first_and_precisions_of_a_module_together(tmp_path: Path) -> None:
    paths = [Path(f"{level}/{name}.py") for level in ("level1", "level2", "level3") for name in ("b", "a")]
    names = [job.name for job in jobs_of(paths, ["fp32", "fp16"], tmp_path)]
    assert names[:4] == ["2/a fp32", "2/a fp16", "2/b fp32", "2/b fp16"]
    assert [name[0] for name in names] == list("222233331111")


def test_rows_of_two_precisions_have_two_files(tmp_path: Path) -> None:
    first, second = jobs_of([Path("level2/a.b.py")], ["fp32", "fp16"], tmp_path)
    assert row_file(first) != row_file(second)
    assert row_file(first).parent == tmp_path


@pytest.mark.parametrize(
    ("error", "own", "precision", "expected"),
    [
        (1e-5, 0.0, "fp32", "right"),
        (2e-5, 1e-6, "fp32", "wrong"),
        (9e-5, 1e-5, "fp32", "right"),
        (1.9e-3, 0.0, "fp16", "right"),
        (float("nan"), 1e-3, "fp16", "wrong"),
        (1.0, float("nan"), "fp16", "void"),
        (1.0, float("inf"), "fp16", "void"),
        (0.6, 0.6, "fp32", "void"),
    ],
)
def test_verdicts(error: float, own: float, precision: str, expected: str) -> None:
    assert verdict(error, own, precision) == expected


def test_table_names_the_slowest_and_what_is_not_right() -> None:
    rows = [
        _row("2/quick fp32", {"ours": 1.0, "eager": 4.0, "compiled": 3.0}),
        _row("2/slow fp32", {"ours": 4.0, "eager": 2.0}, launches=2),
        _row("2/lost fp32", {}, verdict="refused") | {"why": "no kernel"},
        _row("1/nothing to do fp32", {"ours": 0.001, "eager": 2.0}, launches=0) | {"level": "level1"},
    ]
    lines = table(rows)
    assert lines[0] == (
        "level2 fp32: 2 right of 3, launches 1.33 in the mean, most 2, "
        "fastest peer over ours 1.22 in the geometric mean, faster 50%, least 0.50"
    )
    assert lines[1] == "level1 fp32: 1 right of 1, launches 0.00 in the mean, most 0"
    assert lines[2:] == ["   0.50 2/slow fp32 2: a, a", "   3.00 2/quick fp32 1: a", "  refused 2/lost fp32"]
    assert "no kernel" in line(rows[2])


def _row(name: str, times: dict[str, float], *, launches: int = 1, verdict: str = "right") -> Row:
    found: dict[str, Any] = {"name": name, "level": "level2", "precision": "fp32", "times": times, "verdict": verdict}
    return found | {"launches": launches, "kernels": ["a"] * launches}


def _stay(work: Path, alone: bool, name: str, events: SimpleQueue[tuple[str, str]], told: Event) -> None:
    with Device(work) as device, device.alone() if alone else device.shared():
        events.put((name, "in"))
        told.wait()
        events.put((name, "out"))


def _is_held(lock: Path, kind: int = fcntl.LOCK_EX) -> bool:
    with lock.open("ab") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _wait_until_held(lock: Path) -> None:
    end = time.monotonic() + 60
    while not _is_held(lock):
        assert time.monotonic() < end, "nobody waits to be alone"
        time.sleep(0.01)


def test_who_measures_leaves_the_door_to_others_who_measure(tmp_path: Path) -> None:
    door = tmp_path / "door.lock"
    with Device(tmp_path) as device, device.alone():
        assert _is_held(door)
        assert not _is_held(door, fcntl.LOCK_SH)
        assert _is_held(tmp_path / "room.lock", fcntl.LOCK_SH)


def test_who_measures_is_alone_and_is_not_passed_by_newcomers(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    events: SimpleQueue[tuple[str, str]] = context.SimpleQueue()
    told, processes, found = context.Event(), list[ForkProcess](), list[tuple[str, str]]()
    for name, alone in (("a", False), ("b", False), ("measures", True), ("late", False)):
        processes.append(context.Process(target=_stay, args=(tmp_path, alone, name, events, told), daemon=True))
        processes[-1].start()
        if name in ("a", "b"):
            found.append(events.get())
        if name == "measures":
            _wait_until_held(tmp_path / "door.lock")  # by it, as others are in
    told.set()
    found += [events.get() for _ in range(6)]
    for process in processes:
        process.join()
    assert {name for name, what in found[:2] if what == "in"} == {"a", "b"}
    assert {what for _, what in found[2:4]} == {"out"}
    assert found[4:6] == [("measures", "in"), ("measures", "out")]
    assert found[6][0] == "late"
