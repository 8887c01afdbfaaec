"""Stages on GPUs, on drivers that keep memory on the host: what goes where, what is kept, what is given back."""

from __future__ import annotations

import ctypes
import queue
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver, cuda_plan
from tiny_plan import tiny_parts

from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cuda import CudaDevice
from mlirt.runtime.plan_file import read_plan
from mlirt.serve.pipeline import cuda_stage, nccl, pipeline
from mlirt.serve.pipeline.pipeline import Pipeline


class Ends:
    """Communicators of GPUs whose memory is the host's; `moved` is how many bytes went from which to which."""

    def __init__(self, count: int) -> None:
        self.lines: dict[tuple[int, int], queue.Queue[bytes]] = defaultdict(queue.Queue)
        self.moved: dict[tuple[int, int], int] = defaultdict(int)
        self.closed: list[int] = []
        self.ends = [End(self, rank) for rank in range(count)]


class End:
    def __init__(self, all_ends: Ends, rank: int) -> None:
        self.all, self.rank = all_ends, rank

    def send(self, address: int, size: int, to: int, stream: int) -> None:
        self.all.moved[self.rank, to] += size
        self.all.lines[self.rank, to].put(ctypes.string_at(address, size))

    def receive(self, address: int, size: int, source: int, stream: int) -> None:
        ctypes.memmove(address, self.all.lines[source, self.rank].get(timeout=20), size)

    def close(self) -> None:
        self.all.closed.append(self.rank)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> tuple[list[FakeDriver], Ends]:
    drivers, ends = [FakeDriver(), FakeDriver()], Ends(2)

    def load(source: str) -> SimpleNamespace:
        plan = read_plan(source)
        driver = drivers[int(Path(source).stem)]
        return SimpleNamespace(plan=plan, context=ExecutionContext(plan.manifest, CudaDevice(plan, driver).session()))

    def communicators(devices: list[int]) -> list[End]:
        return ends.ends[: len(devices)]

    monkeypatch.setattr(cuda_stage, "open_driver", drivers.__getitem__)
    monkeypatch.setattr(cuda_stage, "load", load)
    monkeypatch.setattr(pipeline, "communicators", communicators)
    return drivers, ends


def saved(folder: Path, number: int, names: dict[str, str]) -> Path:
    """The tiny plan for a stage, with other names of its input x and its outputs y = cos(2 x + 1) reversed, and z."""

    def change(manifest: dict[str, Any]) -> None:
        for tensor in (*manifest["inputs"], *manifest["outputs"]):
            tensor["name"] = names.get(tensor["name"], tensor["name"])

    path = folder / f"{number}.plan"
    cuda_plan(tiny_parts, change).save(path)
    return path


def made(x: np.ndarray) -> np.ndarray:
    return np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(x.shape)


def drawn(rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, 4)).astype(np.float32)


def test_tensors_go_from_gpu_to_gpu(gpus: tuple[list[FakeDriver], Ends], tmp_path: Path) -> None:
    drivers, ends = gpus
    plans = [saved(tmp_path, 0, {}), saved(tmp_path, 1, {"x": "y", "y": "u", "z": "v"})]
    with Pipeline(plans) as running:
        assert [one.name for one in running.inputs] == ["x"]
        assert running.outputs == ("z", "u", "v")
        futures = [running.submit({"x": drawn(rows, rows)}) for rows in (3, 1, 40, 3)]
        for rows, future in zip((3, 1, 40, 3), futures, strict=True):
            found = future.result(20)
            np.testing.assert_allclose(found["u"], made(made(drawn(rows, rows))), rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(found["z"], np.arange(8, dtype=np.float32) + 0.5)
    assert dict(ends.moved) == {(0, 1): 4 * 4 * (3 + 1 + 40 + 3)}
    assert sorted(ends.closed) == [0, 1]
    assert all(driver.launches for driver in drivers)


def test_what_a_run_makes_is_what_the_next_one_reads(gpus: tuple[list[FakeDriver], Ends], tmp_path: Path) -> None:
    expected = made(made(drawn(2)))
    with Pipeline([saved(tmp_path, 0, {})], state={"x": "y"}) as running:
        assert running.outputs == ("z",)
    with Pipeline([saved(tmp_path, 0, {})], state={"x": "y"}, outputs=["y"]) as running:
        running.run({"x": drawn(2)})
        np.testing.assert_allclose(running.run({})["y"], expected, rtol=1e-5, atol=1e-6)
        running.forget()
        with pytest.raises(InvalidInputError, match="input 'x' is missing"):
            running.run({})


def test_a_stage_that_fails_leaves_nothing_on_its_way(gpus: tuple[list[FakeDriver], Ends], tmp_path: Path) -> None:
    plans = [saved(tmp_path, 0, {}), saved(tmp_path, 1, {"x": "y", "y": "u", "z": "v"})]
    with Pipeline(plans) as running:
        with pytest.raises(InvalidInputError, match="input 'x': expected float32, got float64"):
            running.run({"x": drawn(2).astype(np.float64)})
        found = running.run({"x": drawn(2)})
        np.testing.assert_allclose(found["u"], made(made(drawn(2))), rtol=1e-5, atol=1e-6)
    assert all(line.empty() for line in gpus[1].lines.values())


def test_memory_is_given_back(gpus: tuple[list[FakeDriver], Ends], tmp_path: Path) -> None:
    driver = gpus[0][0]
    with Pipeline([saved(tmp_path, 0, {})], state={"x": "y"}) as running:
        running.run({"x": drawn(2)}, sequence="a")
        running.run({}, sequence="a")
        before = len(driver.memory)
        running.run({"x": drawn(2)}, sequence="b")
        grown = len(driver.memory)
        running.forget("b")
        running.run({}, sequence="a")
        assert before < grown
        assert len(driver.memory) == before


def test_a_first_run_that_fails_keeps_no_memory(gpus: tuple[list[FakeDriver], Ends], tmp_path: Path) -> None:
    driver = gpus[0][0]
    with Pipeline([saved(tmp_path, 0, {})], state={"x": "y"}) as running:
        running.run({"x": drawn(2)}, sequence="a")
        before = len(driver.memory)
        for number in range(3):
            with pytest.raises(InvalidInputError):
                running.run({"x": drawn(2)[:, :3]}, sequence=number)
        assert len(driver.memory) == before


def test_one_device_for_each_stage(gpus: tuple[list[FakeDriver], Ends], tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"devices: expected one for each of 1 stages, got \[0, 1\]"):
        Pipeline([saved(tmp_path, 0, {})], devices=[0, 1])


def test_without_nccl_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(names: object) -> None:
        pass

    monkeypatch.setattr(nccl, "load_shared", nothing)
    with pytest.raises(PlanError, match="install the package nvidia-nccl-cu13"):
        nccl.communicators([0, 1])
