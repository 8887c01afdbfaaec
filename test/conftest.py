"""Lets pytest run the `.mlir` tests in this process, and skips what needs a GPU where there is none."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cuda_presence import has_cuda
from hypothesis import settings
from lit_in_process import Failure, requirements, run_test

pytest_plugins = ["slow_tests"]

# Thousands of tests leave modules of IR and kernels behind: looking through them often costs a tenth of all time.
gc.set_threshold(100_000, 20, 50)

# How long an example takes says something about the machine and what else runs on it.
settings.register_profile("mlirt", deadline=None)
settings.load_profile("mlirt")
# Whatever a test compiles for GPUs, its machine code waits for what it starts (builder/machine_code/check.py).
os.environ.setdefault("MLIRT_CHECK_MACHINE_CODE", "1")
# Tests see what the compiler does, not what it did; those of the cache of plans open it themselves.
os.environ["MLIRT_PLAN_CACHE_MB"] = "0"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Every `.mlir` file below test/ is a test, as for lit."""
    if file_path.suffix != ".mlir":
        return None
    return MlirFile.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType]


class MlirFile(pytest.File):
    """One `.mlir` file."""

    def collect(self) -> Iterable[pytest.Item]:
        item: MlirItem = MlirItem.from_parent(self, name="RUN")  # pyright: ignore[reportUnknownMemberType]
        if "cuda" in requirements(self.path):
            item.add_marker(pytest.mark.gpu)
        return [item]


class MlirItem(pytest.Item):
    """All RUN lines of one file, in order."""

    def runtest(self) -> None:
        with TemporaryDirectory(prefix="mlirt-test-") as folder:
            run_test(self.path, Path(folder))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: str | None = None) -> str:
        return str(excinfo.value) if isinstance(excinfo.value, Failure) else str(excinfo.getrepr(style="short"))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, str(self.path.name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test marked `gpu` is skipped, with the reason, on a machine without one."""
    if has_cuda():
        return
    for item in items:
        if item.get_closest_marker("gpu") is not None:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device, and this machine has none"))
