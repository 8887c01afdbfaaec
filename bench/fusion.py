"""What fusion makes of a folder of PyTorch modules: right or not on the CPU, and how many launches on both targets.

    python bench/fusion.py FOLDER [--only PART,..] [--full] [--targets cpu,cuda] [--precision fp16] [--time]
        [--picture FILE.svg]

Each file below FOLDER has `Model`, `get_init_inputs()` and `get_inputs()`. Sizes at the top of a file are reduced
unless `--full` is given (bench/fusion_modules.py says how). A module is right where its largest error, over the largest
value, against the module in float64 is at most ten times that of PyTorch in float32, and at least 1e-5 is allowed.
Launches for "cuda" are counted in a plan of the given precision, which needs no GPU. `moved` is the bytes of the
buffers that the launches for the CPU are given, over those of inputs, weights and outputs. With `--time` the engine for
the CPU is timed against eager PyTorch, torch.compile and, where it is installed, onnxruntime, with the threads that
PyTorch takes by itself; the picture shows the ratios to the fastest. Needs PyTorch.

    python bench/fusion.py FOLDER --count [--precision fp32,fp16] [--full] [--remarks]

Launches for a GPU, and the bytes that they move over those of inputs, weights and outputs, counted behind the passes:
nothing is compiled and nothing runs, so that it takes two seconds a module. In fp16 the module is in half precision, as
with `--gpu`. `--remarks` prints for modules of more than two launches what passes declined, and why.

    python bench/fusion.py FOLDER --gpu [--precision fp32,fp16] [--jobs 14] [--time-limit SECONDS] [--rows FILE.jsonl]

On a machine with an NVIDIA GPU: all modules at the sizes of their files, in float32 as PyTorch computes it without
TF32, and in half precision (module, inputs and outputs). Plans are built with estimates by several processes; one
process at a time measures, with the device to itself: the engine as a captured CUDA graph, eager PyTorch and
torch.compile's default in turns on one stream. Right is judged as above, with at least 2e-3 for halves. Each row is
printed when it comes; the last lines are the table. With `--build-only` nothing runs on a device.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fusion_figures import left_out, moved_and_least, picture, ratio, summary, times_of
from fusion_modules import Case, load


@dataclass
class Found:
    """What is known of a module."""

    verdict: str
    text: str
    launches: dict[str, int] = field(default_factory=dict[str, int])
    times: dict[str, float] = field(default_factory=dict[str, float])


def main() -> None:
    """One line a module, and the counts."""
    options = _arguments()
    paths = sorted(path for path in options.folder.rglob("*.py") if _wanted(str(path), options.only))
    if options.gpu or options.build_only:
        _on_gpu(paths, options)
        return
    if options.count:
        _counted(paths, options)
        return
    found: dict[str, Found] = {}
    for path in paths:
        targets = options.targets.split(",")
        one = judge(path, targets, reduced=not options.full, timed=options.time, precision=options.precision)
        found[path.stem] = one
        print(f"{path.stem[:48]:48} {one.verdict:8} {one.text}", flush=True)
    counts = Counter(one.verdict for one in found.values())
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())) or "no modules")
    launches = {
        target: [one.launches[target] for one in found.values() if target in one.launches]
        for target in options.targets.split(",")
    }
    ratios = {name: ratio(one.times) for name, one in found.items() if one.times}
    print("\n".join([*summary(launches, ratios), *(left_out() if options.time else [])]))
    if options.picture is not None and ratios:
        options.picture.write_text(picture(ratios), encoding="utf-8")


def _counted(paths: Sequence[Path], options: argparse.Namespace) -> None:
    """A line a module and precision, and the table."""
    from fusion_launches import WANTED_LAUNCHES, Counted, count, table

    rows: list[Counted] = []
    for path, precision in [(path, one) for path in paths for one in options.precision.split(",")]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row = count(path, precision, reduced=not options.full, explained=options.remarks)
        except Exception as error:  # of the module, of its export or of the build
            why = " ".join(str(error).split())[:160]
            print(f"{path.stem[:48]:48} {precision} {type(error).__name__}: {why}", flush=True)
            continue
        rows.append(row)
        print(row.line(), flush=True)
        if len(row.kernels) > WANTED_LAUNCHES and row.remarks:
            print(row.remarks, flush=True)
    print("\n".join(table(rows)))


def _on_gpu(paths: Sequence[Path], options: argparse.Namespace) -> None:
    """A line a row, and the table, when all is done or time is over."""
    import json

    from fusion_gpu import jobs_of, line, row_file, run, table
    from worker_processes import Workers

    end = time.monotonic() + options.time_limit
    # A build keeps one core busy, and so does torch.compile's.
    for name in ("MLIRT_JOBS", "OMP_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"):
        os.environ.setdefault(name, "1")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, Workers(options.jobs, options.job_limit) as workers:
        switches = {"on_device": not options.build_only, "reduced": options.build_only and not options.full}
        for job in jobs_of(paths, options.precision.split(","), Path(folder), **switches):
            workers.submit(job, run, job)
        for done in workers.results(lambda: time.monotonic() > end):
            left = row_file(done.key)
            row = done.result or (json.loads(left.read_text(encoding="utf-8")) if left.exists() else None)
            lost = {"name": done.key.name, "level": done.key.level, "precision": done.key.precision, "times": {}}
            rows.append(row or lost | {"verdict": "refused", "why": done.why})
            print(line(rows[-1]), flush=True)
            if options.rows is not None:
                with options.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
        missing = len(workers.left())
    print("\n".join([*table(rows), *([f"the time limit left out {missing} rows"] if missing else [])]), flush=True)


def judge(
    path: Path, targets: Sequence[str], *, reduced: bool = True, timed: bool = False, precision: str = "fp32"
) -> Found:
    """right, wrong, refused, or skipped where the file itself fails; and what was found."""
    import mlirt

    try:
        case = load(path, reduced=reduced)
        eager, exact = _results(case)
    except Exception as error:
        return Found("skipped", f"{type(error).__name__}: {' '.join(str(error).split())[:160]}")
    made = Found("right", "")
    for target in targets:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                given = "fp32" if target == "cpu" else precision
                engine: Any = mlirt.compile(case.module, tuple(case.inputs), given, target=target, heuristic=True)
        except mlirt.MlirtError as error:
            return Found("refused", f"{target}: {str(error)[:200]}")
        manifest = engine.engine.plan.manifest
        made.launches[target] = len(manifest.launches)
        if target == "cpu":
            error, own = _error(_leaves(engine(*case.inputs)), exact), _error(eager, exact)
            moved, least = moved_and_least(manifest)
            made.verdict = "right" if error <= max(10 * own, 1e-5) else "wrong"
            made.text = f"error {error:.1e} (PyTorch {own:.1e}) moved {moved / max(least, 1):.2f} "
            made.times = times_of(case, engine) if timed else {}
    made.text += ", ".join(f"{target} {count} launches" for target, count in made.launches.items())
    made.text += "".join(f", {name} {value:.3f} ms" for name, value in made.times.items())
    return made


def _results(case: Case) -> tuple[list[Any], list[Any]]:
    """The results in float32 and in float64."""
    import copy

    import torch

    with torch.no_grad():
        eager = _leaves(case.module(*case.inputs))
        doubled = [one.double() if one.is_floating_point() else one for one in case.inputs]
        return eager, _leaves(copy.deepcopy(case.module).double()(*doubled))


def _leaves(results: Any) -> list[Any]:
    from torch.utils._pytree import tree_leaves

    return [leaf.double() for leaf in tree_leaves(results)]


def _error(found: Sequence[Any], exact: Sequence[Any]) -> float:
    return max(float((a - b).abs().max()) / max(float(b.abs().max()), 1e-30) for a, b in zip(found, exact, strict=True))


def _wanted(path: str, only: str) -> bool:
    return not only or any(part in path for part in only.split(","))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="parts of paths, such as level2/1")
    parser.add_argument("--full", action="store_true", help="sizes as the files have them")
    parser.add_argument("--targets", default="cpu,cuda")
    parser.add_argument("--precision", default="fp32", help="of plans for cuda, as rt-opt takes it")
    parser.add_argument("--count", action="store_true", help="launches for a GPU behind the passes, no code")
    parser.add_argument("--remarks", action="store_true", help="what passes declined, of --count")
    parser.add_argument("--gpu", action="store_true", help="run and measure on a GPU")
    parser.add_argument("--build-only", action="store_true", help="as --gpu, but build alone; reduced without --full")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) - 2), help="processes of --gpu")
    parser.add_argument("--job-limit", type=float, default=240, help="seconds for a row of --gpu")
    parser.add_argument("--time-limit", type=float, default=1e9, help="seconds for all rows of --gpu")
    parser.add_argument("--rows", type=Path, help="a file to which --gpu appends its rows as JSON")
    parser.add_argument("--time", action="store_true", help="against eager PyTorch, torch.compile and onnxruntime")
    parser.add_argument("--picture", type=Path, help="an SVG of the ratios of times")
    return parser.parse_args()


if __name__ == "__main__":
    main()
