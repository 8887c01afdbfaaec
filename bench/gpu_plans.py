"""Builds the plans of the GPU benchmark, several at a time in processes of their own; needs no GPU."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from gpu_cases import Case, data_of


def plan_path(case: Case, folder: Path) -> Path:
    return folder / f"{case.name}.plan"


def build_plan_file(case: Case, folder: Path, options: Mapping[str, Any]) -> str:
    """Build a plan unless it is there; says how long it took."""
    path = plan_path(case, folder)
    if path.exists():
        return "was there"
    start = time.perf_counter()
    shapes = {name: list(array.shape) for name, array in case.feeds().items()}
    _plan(case, shapes, options).save(path)
    return f"built in {time.perf_counter() - start:.1f} s"


def _plan(case: Case, shapes: Mapping[str, Sequence[int]], options: Mapping[str, Any]) -> Any:
    """An engine where there is a GPU, as users build it; elsewhere the plan alone."""
    import mlirt
    from mlirt.builder.build import BuildOptions, build_plan
    from mlirt.builder.host import gpu_is_here
    from mlirt.dialects.context import RtContext
    from mlirt.frontend.onnx.importer import import_model

    if gpu_is_here():
        return mlirt.compile(case.proto(), "cuda", case.precision, input_shapes=shapes, **options)
    context = RtContext()
    module = import_model(case.proto(), context, shapes, None)
    return build_plan(module, context, "cuda", BuildOptions(case.precision, name=case.network))


def prepare_data(case: Case, folder: Path) -> str:
    """Compute inputs and expected outputs unless they are there."""
    start = time.perf_counter()
    data_of(case, folder)
    return f"expected outputs in {time.perf_counter() - start:.1f} s"


def prepare(cases: Sequence[Case], folder: Path, jobs: int, options: Mapping[str, Any]) -> dict[str, str]:
    """Build what the cases need; returns why, by the case's name, for each that failed."""
    failures: dict[str, str] = {}
    builds = jobs or _jobs(options)
    os.environ.setdefault("MLIRT_JOBS", str(max(1, (os.cpu_count() or 1) // min(builds, max(1, len(cases))))))
    # A process that was forked from one that uses CUDA could not use it.
    with ProcessPoolExecutor(builds, multiprocessing.get_context("spawn")) as pool:
        running: dict[Future[str], str] = {}
        data: set[str] = set()
        for case in cases:
            running[pool.submit(build_plan_file, case, folder, options)] = case.name
            if case.data_name not in data:
                running[pool.submit(prepare_data, case, folder)] = case.data_name
                data.add(case.data_name)
        for future in as_completed(running):
            name = running[future]
            try:
                print(f"{name}: {future.result()}", flush=True)
            except Exception as error:
                failures[name] = f"{type(error).__name__}: {error}"[:300]
                print(f"{name}: {failures[name]}", flush=True)
    return failures


def _jobs(options: Mapping[str, Any]) -> int:
    """A build keeps about two cores busy; builds that measure on the GPU must have it for themselves."""
    from mlirt.builder.host import gpu_is_here

    if gpu_is_here() and not options.get("heuristic"):
        return 1
    return max(1, min(8, (os.cpu_count() or 2) // 2))
