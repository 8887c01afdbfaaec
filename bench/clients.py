"""Programs that others wrote for TensorRT, unchanged, on mlirt: what runs, and why the rest does not.

    bash bench/clients.sh OUT [WHEELS] [--models MODELS] [--only REGEX] [--parts polygraphy,trex,onnx,calls]
                          [--onnx-data FOLDER] [--processes N] [--seconds S] [--level N]

MODELS holds <id>/model.onnx and perhaps <id>/inputs.npz. Parts:

polygraphy  for each model: `run --trt --onnxrt` (results within `--atol` and `--rtol` 1e-3) with a timing cache, a plan
            and a record of tactics; the same from that cache and record; `run --int8 --calibration-cache`, whose cache
            must have numbers; `convert`; `inspect model` of the plan; `debug build` with two builds
trex        TensorRT's Engine Explorer reads the inspector's JSON of each model's plan: layers, precisions, formats
onnx        the test cases of the package `onnx` for the operators that onnx-tensorrt's backend test names; with
            `--onnx-data`, those in a folder onnx/backend/test/data of another version
calls       the start of a program that loads a plan, within a second where there is no GPU, and a call of `execute_v2`
            beside one of `Engine.run`

With `--level` Polygraphy builds with that optimization level: on a GPU 0 and 1 choose kernels by estimates.

A step that has not begun when `--seconds` are over is counted as not run. The last lines are a table. Every log is in
OUT; the exit status is 1 where something failed.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from client_steps import Step, calls_steps, model_steps, onnx_steps


def main() -> int:
    """Run the parts that are asked for; 1 where a step failed."""
    options = _options()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.seconds
    parts = set(options.parts.split(","))
    folders = sorted(p.parent for p in options.models.glob("*/model.onnx")) if options.models else []
    folders = [folder for folder in folders if re.search(options.only, folder.name)]
    folders.sort(key=lambda folder: _size(folder / "model.onnx"), reverse=True)  # the longest chains first
    chains = [model_steps(folder.resolve(), out, parts, options.level) for folder in folders]
    if "onnx" in parts:
        chains[:0] = onnx_steps(out, options.processes, options.onnx_data)
    if "calls" in parts:
        _run_chain(calls_steps(out), end)  # alone, since it is timed
    with ThreadPoolExecutor(options.processes) as pool:
        list(pool.map(_run_chain, chains, [end] * len(chains)))
    steps = [step for chain in [*chains, calls_steps(out) if "calls" in parts else []] for step in chain]
    return _table([step.read_again() for step in steps])


def _run_chain(chain: list[Step], end: float) -> None:
    for step in chain:
        if time.monotonic() < end:
            step.run(max(end - time.monotonic(), 1))
            print(step.line(), flush=True)


def _table(steps: list[Step]) -> int:
    for step in steps:
        if step.outcome == "failed":
            print(f"FAILED {step.kind} {step.name}: {step.reason()}")
    print(f"{'step':<28}{'passed':>8}{'failed':>8}{'not run':>9}")
    for kind in dict.fromkeys(step.kind for step in steps):
        counts: Counter[str] = Counter()
        notes: list[str] = []
        for step in steps:
            if step.kind == kind:
                counts.update(step.counts())
                notes += step.notes()
        print(f"{kind:<28}{counts['passed']:>8}{counts['failed']:>8}{counts['not run']:>9}  {'; '.join(notes)}"[:200])
    return int(any(step.outcome == "failed" for step in steps))


def _size(path: Path) -> int:
    return path.stat().st_size


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--onnx-data", type=Path)
    parser.add_argument("--only", default="", help="models whose name has this")
    parser.add_argument("--parts", default="polygraphy,trex,onnx,calls")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--level", type=int, choices=range(6))
    parser.add_argument("--seconds", type=float, default=1e6, help="no step begins after this")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
