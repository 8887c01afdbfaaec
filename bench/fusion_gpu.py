"""Modules of a corpus on a GPU, each in a process that builds beside others and measures alone.

A row has the module's name, level and precision, the verdict, the errors, the launches and milliseconds of the device.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import copy
import fcntl
import gc
import os
import statistics
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from fusion_modules import Case, halved, load

Row = dict[str, Any]
LEVELS = ("level2", "level3", "level1")
_NO_DIGIT = 0.5
MIN_TOLERANCE = {"fp32": 1e-5, "fp16": 2e-3}
_ROUNDS, _SLOW_MS, _BROKEN = 5, 60.0, 3
_LARGE_BYTES = 256 << 20


@dataclass(frozen=True)
class Job:
    """A module in a precision; `work` is a folder that all processes share."""

    path: Path
    precision: str
    work: Path
    on_device: bool = True
    reduced: bool = False

    @property
    def name(self) -> str:
        """As it stands in the table."""
        return f"{self.level[-1]}/{self.path.stem[:44]} {self.precision}"

    @property
    def level(self) -> str:
        """The folder of the module."""
        return self.path.parent.name


def jobs_of(paths: Iterable[Path], precisions: Sequence[str], work: Path, **options: bool) -> list[Job]:
    """Sequences first, then networks, then single operators; the precisions of a module follow one another."""
    order = {level: place for place, level in enumerate(LEVELS)}
    ordered = sorted(paths, key=lambda path: (order.get(path.parent.name, len(LEVELS)), path.name))
    return [Job(path, precision, work, **options) for path in ordered for precision in precisions]


def run(job: Job) -> Row:
    """The row of a job; the process ends behind it where the device does not go on."""
    row: Row = {"name": job.name, "level": job.level, "precision": job.precision, "times": {}, "verdict": "refused"}
    try:
        warnings.simplefilter("ignore")
        _judge(job, row)
    except Exception as error:
        row["why"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if job.on_device and not _goes_on():
        write_row(job, row)
        os._exit(_BROKEN)
    return row


def row_file(job: Job) -> Path:
    """Where a process leaves the row of a job after which it ends."""
    return job.work / (job.name.replace("/", "_").replace(" ", ".") + ".json")


def write_row(job: Job, row: Row) -> None:
    """Leave a row where `row_file` says."""
    import json

    row_file(job).write_text(json.dumps(row), encoding="utf-8")


def _goes_on() -> bool:
    """Whether the device works, after what was kept for the module is given back."""
    import torch

    try:
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except Exception:
        return False
    return True


def _judge(job: Job, row: Row) -> None:
    import mlirt

    row["step"] = "load"
    case = load(job.path, reduced=job.reduced, filled=False)
    case = halved(case) if job.precision == "fp16" else case
    row["step"] = "build"
    start = time.perf_counter()
    engine: Any = mlirt.compile(case.module, tuple(case.inputs), job.precision, target="cuda", heuristic=True)
    row["build s"] = round(time.perf_counter() - start, 1)
    manifest = engine.engine.plan.manifest
    row["launches"] = len(manifest.launches)
    row["kernels"] = [str(manifest.kernels[one.kernel].name)[:60] for one in manifest.launches]
    plan = job.work / f"{row_file(job).stem}.plan"
    engine.save(plan)
    convention = engine.convention
    del engine
    row["verdict"] = "built"
    if job.on_device:
        row["step"] = "run"
        try:
            _on_device(job, case, plan, convention, row)
        finally:
            plan.unlink(missing_ok=True)
    del row["step"]


def _on_device(job: Job, case: Case, plan: Path, convention: Any, row: Row) -> None:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    large = sum(one.numel() * one.element_size() for one in case.inputs if hasattr(one, "numel")) > _LARGE_BYTES
    stream = torch.cuda.Stream()
    with Device(job.work) as device, torch.no_grad(), torch.cuda.stream(stream):
        contestants: dict[str, Callable[[], object]] | None = None
        if not large:
            with suppress(torch.OutOfMemoryError), device.shared():
                contestants = _contestants(job, case, plan, convention, stream, row)
        gc.collect()
        torch.cuda.empty_cache()
        with device.alone():  # what would not fit several times over is made here
            contestants = contestants or _contestants(job, case, plan, convention, stream, row)
            row["times"] = _times(contestants, stream.cuda_stream)


def _contestants(
    job: Job, case: Case, plan: Path, convention: Any, stream: Any, row: Row
) -> dict[str, Callable[[], object]]:
    """What takes part, warm; errors are in the row."""
    import torch
    from gpu_engine import ResidentPlan

    module, inputs = case.module.cuda(), case.filled_on("cuda", half=job.precision == "fp16")
    eager = leaves(module(*inputs))
    exact = _exact(module, inputs, row)
    own = error_of(eager, exact)
    del eager
    gathered = torch.utils._pytree.tree_leaves((tuple(inputs), {}))
    feeds = {name: one.contiguous() for name, one in zip(convention.inputs, gathered, strict=True) if name}
    ours = ResidentPlan(plan, feeds, stream.cuda_stream)
    ours()
    outputs = ours.outputs_in_place()
    found = [torch.as_tensor(outputs[name], device="cuda") for name, _ in convention.outputs if name is not None]
    kept = [one for (name, _), one in zip(convention.outputs, exact, strict=True) if name is not None]
    error = error_of(found, kept)
    row |= {"error": error, "own": own, "verdict": verdict(error, own, job.precision)}
    del found, kept, exact, outputs, feeds
    contestants: dict[str, Callable[[], object]] = {"ours": ours, "eager": lambda: module(*inputs)}
    start = time.perf_counter()
    try:
        compiled: Any = torch.compile(module, dynamic=False)
        compiled(*inputs)
        compiled(*inputs)
    except Exception as failure:
        row["peer"] = f"{type(failure).__name__}: {' '.join(str(failure).split())[:100]}"
    else:
        contestants["compiled"] = lambda: compiled(*inputs)
        row["compile s"] = round(time.perf_counter() - start, 1)
    gc.collect()
    torch.cuda.empty_cache()
    stream.synchronize()
    return contestants


def _exact(module: Any, inputs: Sequence[Any], row: Row) -> list[Any]:
    """The results in float64, or in float32 where that does not fit or the module makes float32 tensors itself."""
    import torch

    failure: Exception = ValueError("no judge")
    for dtype in (torch.float64, torch.float32):
        try:
            given = [one.to(dtype) if _is_floating(one) else one for one in inputs]
            return leaves(copy.deepcopy(module).to(dtype)(*given))
        except RuntimeError as error:  # no memory among them
            failure, row["judge"] = error, "float32"
    raise failure


def _is_floating(one: Any) -> bool:
    return hasattr(one, "is_floating_point") and one.is_floating_point()


def leaves(results: Any) -> list[Any]:
    """The tensors of what a module returns."""
    from torch.utils._pytree import tree_leaves

    return list(tree_leaves(results))


def error_of(found: Sequence[Any], exact: Sequence[Any]) -> float:
    """The largest error over the largest value of an output, the worst of the outputs; NaN where one is NaN."""
    worst = 0.0
    for ours, right in zip(found, exact, strict=True):
        largest = max(float(right.abs().max()), 1e-30)
        error = float((ours.to(right.dtype).reshape(right.shape) - right).abs().max()) / largest
        worst = error if error != error else max(worst, error)
    return worst


def verdict(error: float, own: float, precision: str) -> str:
    """right, wrong, or void where PyTorch in the same precision has no finite error, or no right digit."""
    if not own < _NO_DIGIT:
        return "void"
    return "right" if error <= max(10 * own, MIN_TOLERANCE[precision]) else "wrong"


def _times(contestants: Mapping[str, Callable[[], object]], stream: int) -> dict[str, float]:
    from gpu_timing import Stopwatch

    watch = Stopwatch(stream)
    slowest = max(watch.mean_ms(call, 1) for call in contestants.values())
    found = watch.in_turns(contestants, 1 if slowest > _SLOW_MS else _ROUNDS)
    return {name: round(ms, 5) for name, ms in found.items()}


class Device:
    """Who may use the device: several at once, or one alone. Newcomers stay out until all who wait to be alone were."""

    def __init__(self, work: Path) -> None:
        self._names = (work / "door.lock", work / "room.lock")
        self._files: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        self._files = [name.open("ab") for name in self._names]
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    @contextmanager
    def shared(self) -> Generator[None]:
        """Beside others."""
        door, room = self._files
        with _locked(door, fcntl.LOCK_EX):
            fcntl.flock(room, fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(room, fcntl.LOCK_UN)

    @contextmanager
    def alone(self) -> Generator[None]:
        """Alone. All who wait for that share the door, so that they follow one another."""
        door, room = self._files
        with _locked(door, fcntl.LOCK_SH), _locked(room, fcntl.LOCK_EX):
            yield


@contextmanager
def _locked(file: IO[bytes], kind: int) -> Generator[None]:
    fcntl.flock(file, kind)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def ratio(row: Row) -> float | None:
    """The time of the fastest peer over ours; None for an engine that has nothing to do, where PyTorch copies."""
    times: dict[str, float] = row["times"]
    if not row.get("launches"):
        return None
    peers = [ms for name, ms in times.items() if name != "ours"]
    return min(peers) / times["ours"] if "ours" in times and peers else None


def line(row: Row) -> str:
    """A row as it is printed when it comes."""
    found = ratio(row)
    parts = [f"{row['name']:52} {row['verdict']:7}", "" if found is None else f"{found:6.2f}x"]
    parts += [f"{name} {ms:.4f}" for name, ms in row["times"].items()]
    parts += [
        f"{key} {row[key]}"
        for key in ("launches", "build s", "compile s", "judge", "peer", "step", "why")
        if key in row
    ]
    with suppress(KeyError):
        parts.append(f"error {row['error']:.1e} ({row['own']:.1e})")
    return " ".join(part for part in parts if part)


def table(rows: Sequence[Row]) -> list[str]:
    """For each level and precision: how many are right, launches, ratios; then the slowest of all."""
    lines: list[str] = []
    for level in LEVELS:
        for precision in dict.fromkeys(row["precision"] for row in rows):
            group = [row for row in rows if (row["level"], row["precision"]) == (level, precision)]
            lines += [f"{level} {precision}: {_summary(group)}"] if group else []
    compared = sorted((found, row) for row in rows if (found := ratio(row)) is not None)
    for found, row in compared[:10]:
        lines += [f"  {found:5.2f} {row['name']} {row['launches']}: {', '.join(row['kernels'][:12])}"]
    lines += [f"  {row['verdict']} {row['name']}" for row in rows if row["verdict"] not in ("right", "built")]
    return lines


def _summary(group: Sequence[Row]) -> str:
    good = "built" if any(row["verdict"] == "built" for row in group) else "right"
    right = sum(row["verdict"] == good for row in group)
    launches = [row["launches"] for row in group if "launches" in row]
    text = f"{right} {good} of {len(group)}"
    if launches:
        text += f", launches {statistics.mean(launches):.2f} in the mean, most {max(launches)}"
    ratios = [found for row in group if (found := ratio(row)) is not None]
    if ratios:
        text += (
            f", fastest peer over ours {statistics.geometric_mean(ratios):.2f} in the geometric mean, "
            f"faster {sum(found > 1 for found in ratios) / len(ratios):.0%}, least {min(ratios):.2f}"
        )
    return text
