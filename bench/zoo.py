"""How fast networks at their usual sizes are on a GPU, beside PyTorch; sorted by the worst.

    python bench/zoo.py                               all cases of zoo_networks.py, half precision
    python bench/zoo.py --cases vit_b_16.32,detr.1    some: a name and a batch
    python bench/zoo.py --target cpu --cases mobilenet_v2.2 --jobs 1 --no-peer     what can be tried without a GPU

Each case has a process of its own, `--jobs` of them prepare side by side, then they are measured one after the other.
The engine is the one that `torch.compile(backend="mlirt")` makes; it, a graph that was captured around a call of the
compiled module, and two peers take turns as CUDA graphs on one stream: PyTorch eager and its default back end, pictures
with their channels innermost. Times are milliseconds, medians over the rounds. `ratio` is the faster peer over the
engine, `kept` the engine over the captured call. Kernels are chosen by the cost model unless `--measured`.

A case is wrong where its result is further from float32 than 5 times PyTorch's own in that precision, and where it
is more than one engine; then the exit status is 1. Behind the table stand, for each case below `--below`, the
layers that take the most time beyond what memory and arithmetic need (the roof, bench/roofline.py). A case that is not
ready after `--budget` seconds is ended, and said so.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import argparse
import json
import logging
import math
import multiprocessing
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

_TYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_MAX_ERROR = 5.0
_LAYERS = 6


@dataclass
class Row:
    """What was found about a case: milliseconds by side, and the layers that take longest beyond their roofs."""

    case: str
    times: dict[str, float] = field(default_factory=dict[str, float])
    error: float = math.nan
    peer_error: float = math.nan
    launches: int = 0
    seconds: float = 0.0
    """Until the engine was built, the peer not counted."""
    peer_seconds: float = 0.0
    wrong: str = ""
    layers: list[str] = field(default_factory=list[str])

    @property
    def ratio(self) -> float:
        """The faster peer's time over the engine's; infinite where there is none."""
        peers = [self.times[side] for side in ("eager", "compile") if side in self.times]
        return min(peers) / self.times["engine"] if peers and "engine" in self.times else math.inf

    @property
    def kept(self) -> float:
        """How much of the engine's speed a captured call has."""
        return self.times["engine"] / self.times["captured"] if "captured" in self.times else math.nan

    def __str__(self) -> str:
        cells = [f"{self.times[side]:.3f}" if side in self.times else "-" for side in SIDES]
        return (
            f"| {self.case} | {self.ratio:.2f} | {' | '.join(cells)} | {self.kept:.3f} | {self.launches} "
            f"| {self.error:.1e} | {self.peer_error:.1e} | {self.seconds:.0f} | {self.peer_seconds:.0f} | {self.wrong}"
        )


SIDES = ("engine", "captured", "eager", "compile")
_HEAD = f"| case | ratio | {' | '.join(SIDES)} | kept | launches | error | PyTorch's | s to build | peer's |"


def _prepared(case: str, given: argparse.Namespace) -> tuple[Any, Any, dict[str, Any], Row]:
    """The machine, the engine, what takes turns, and the row so far."""
    import torch
    from torch_gpu import Engines, Machine, captured_or_why, engine_call, worst_error
    from zoo_networks import network

    from mlirt.builder.from_torch.dynamo_backend import mlirt_backend

    torch.set_num_threads(1)
    row, machine, engines = Row(case), Machine(given.target), Engines()
    name, _, batch = case.rpartition(".")
    module, inputs = network(name, int(batch))
    dtype = getattr(torch, _TYPES[given.precision])
    module = module.to(machine.device)
    with torch.inference_mode(), machine.on_stream():
        wanted = module(*(one.to(machine.device) for one in inputs)).float()
    module = module.to(dtype)
    inputs = tuple((one.to(dtype) if one.is_floating_point() else one).to(machine.device) for one in inputs)
    options = {"target": given.target} | ({} if given.measured else {"heuristic": True})
    compiled = torch.compile(module, backend=mlirt_backend, options=options)
    begun = time.perf_counter()
    with torch.no_grad(), machine.on_stream():
        row.error = worst_error(compiled(*inputs), wanted)
        row.peer_error = worst_error(module(*inputs), wanted)
        row.seconds = time.perf_counter() - begun
        if row.error > _MAX_ERROR * row.peer_error + 1e-6 or math.isnan(row.error):
            row.wrong = "its error"
        if len(engines.made) != 1:
            row.wrong = f"{len(engines.made)} engines"
        for _ in range(3):
            compiled(*inputs)
        sides: dict[str, Any] = {}
        feeds: dict[str, Any] = {}
        if len(engines.made) == 1:
            feeds = engines.feeds(engines.made[0])
            sides["engine"] = machine.captured(engine_call(engines.made[0], feeds))
        sides["captured"] = captured_or_why(machine, lambda: compiled(*inputs), row.case)
        if not given.no_peer:
            begun = time.perf_counter()
            if inputs[0].dim() == 4:
                module = module.to(memory_format=torch.channels_last)
                inputs = tuple(
                    one.contiguous(memory_format=torch.channels_last) if one.dim() == 4 else one for one in inputs
                )
            peer = torch.compile(module)
            for _ in range(3):
                peer(*inputs)
            row.peer_seconds = time.perf_counter() - begun
            sides["eager"] = captured_or_why(machine, lambda: module(*inputs), row.case)
            sides["compile"] = captured_or_why(machine, lambda: peer(*inputs), row.case)
    engine = engines.made[0].engine if len(engines.made) == 1 else None
    return machine, (engine, feeds), {side: call for side, call in sides.items() if call is not None}, row


def _measure(case: str, given: argparse.Namespace, pipe: Connection) -> None:
    """A process of one case: says that it is ready, waits for its turn, sends its row."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    try:
        machine, (engine, feeds), sides, row = _prepared(case, given)
    except Exception as error:
        if given.verbose:
            traceback.print_exc()
        pipe.send(Row(case, wrong=f"{type(error).__name__}: {error}".split("\n")[0][:200]))
        return
    pipe.send(None)
    pipe.recv()
    import torch

    with torch.no_grad(), machine.on_stream():
        row.times = machine.in_turns(sides, given.rounds)
    if engine is not None:
        row.launches = len(engine.layers)
        if row.ratio < given.below or given.target == "cpu":
            row.layers = _slow_layers(engine, feeds)
    pipe.send(row)


def _slow_layers(engine: Any, feeds: dict[str, Any]) -> list[str]:
    """Those whose time is the furthest above their roof."""
    from roofline import PEAKS, layer_times

    profile = engine.profile({name: one.cpu().numpy() for name, one in feeds.items()}, runs=3)
    times = [1e3 * one[1] for one in profile]
    whole = sum(times)
    layers = layer_times(engine.layers, times, next(iter(PEAKS.values())))
    worst = sorted(layers, key=lambda one: one.roof - one.microseconds)[:_LAYERS]
    return [
        f"{one.microseconds:.1f} us, {100 * one.microseconds / whole:.0f} %, {100 * one.share:.0f} % of its roof, "
        f"{one.launches} launches: {one.name[:90]} ({one.kernel[:60]})"
        for one in worst
    ]


def _wave(cases: Sequence[str], given: argparse.Namespace, until: float) -> list[Row]:
    """Prepare cases side by side, then measure one after the other; what is not ready by then is ended."""
    context = multiprocessing.get_context("spawn")
    processes: dict[Any, tuple[str, Any]] = {}
    for case in cases:
        here, there = context.Pipe()
        process = context.Process(target=_measure, args=(case, given, there), daemon=True)
        process.start()
        there.close()
        processes[here] = case, process
    rows: list[Row] = []
    ready: list[Any] = []
    waiting = list(processes)
    while waiting and (left := until - time.perf_counter()) > 0:
        for pipe in wait(waiting, left):
            waiting.remove(pipe)
            found = _received(pipe, processes[pipe][0])
            rows.extend([found] if isinstance(found, Row) else [])
            ready.extend([pipe] if found is None else [])
    for pipe in waiting:
        processes[pipe][1].kill()
        rows.append(Row(processes[pipe][0], wrong="not ready in time"))
    for pipe in ready:
        pipe.send(True)
        rows.append(_received(pipe, processes[pipe][0]) or Row(processes[pipe][0], wrong="no row"))
    for _, process in processes.values():
        process.join(5)
        process.kill()
    return rows


def _received(pipe: Any, case: str) -> Row | None:
    try:
        return pipe.recv()
    except EOFError:
        return Row(case, wrong="its process has ended")


def table(rows: Sequence[Row]) -> str:
    """All rows, their geometric mean, and the slow layers of those that have them."""
    found = sorted(rows, key=lambda row: row.ratio)
    ratios = [row.ratio for row in found if math.isfinite(row.ratio)]
    lines = [_HEAD, "|" + "---|" * _HEAD.count("| "), *map(str, found)]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        below = sum(ratio < 1 for ratio in ratios)
        lines.append(f"{len(ratios)} cases, geometric mean {mean:.2f}, least {ratios[0]:.2f}, {below} below 1.0")
    for row in found:
        if row.layers:
            lines += [f"{row.case}, {row.ratio:.2f}:", *(f"  {layer}" for layer in row.layers)]
    return "\n".join(lines)


def main() -> int:
    """The command."""
    from zoo_networks import DEFAULT, NETWORKS

    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--target", default="cuda", choices=("cuda", "cpu"))
    flags.add_argument("--cases", default=",".join(DEFAULT))
    flags.add_argument("--precision", default="fp16", choices=list(_TYPES))
    flags.add_argument("--jobs", type=int, default=12, help="cases that are prepared side by side")
    flags.add_argument("--rounds", type=int, default=11)
    flags.add_argument("--budget", type=float, default=540.0, help="seconds after which no case is waited for")
    flags.add_argument("--below", type=float, default=1.3, help="ratio below which slow layers are listed")
    flags.add_argument("--no-peer", action="store_true")
    flags.add_argument("--verbose", action="store_true", help="where errors come from")
    flags.add_argument("--measured", action="store_true", help="kernels are chosen by their times on the device")
    flags.add_argument("--out", type=Path, help="a folder for zoo.json and the table")
    given = flags.parse_args()
    begun = time.perf_counter()
    cases = given.cases.split(",")
    for case in cases:
        name, _, batch = case.rpartition(".")
        if name not in NETWORKS or not batch.isdigit():
            flags.error(f"{case!r} is no case; expected a name of {', '.join(NETWORKS)}, a point and a batch")
    rows: list[Row] = []
    for first in range(0, len(cases), given.jobs):
        if time.perf_counter() - begun > given.budget:
            print("left out:", ", ".join(cases[first:]))
            break
        found = _wave(cases[first : first + given.jobs], given, begun + given.budget)
        print(*found, sep="\n", flush=True)
        rows += found
        if given.out:
            (given.out / "zoo.json").write_text(json.dumps([asdict(row) for row in rows], indent=1))
    text = table(rows)
    print(f"\n{text}\n{time.perf_counter() - begun:.0f} s")
    if given.out:
        (given.out / "zoo.txt").write_text(text)
    return 1 if any(row.wrong for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
