"""The part `nodes` of bench/growth.py: what a build costs by the number of nodes, phase by phase.

Seconds of the CPU, without those of the processes that compile kernels, which have a column of their own. Each build is
in a process of its own: "cold" with an empty cache, "warm" with the kernels and the plan that the cold one has left
there, "kernels" with its kernels alone. Behind each row stands the exponent of its growth. The peak is the largest
resident memory in MiB, less that of the imports.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from growth_fit import exponent, numbers
from growth_networks import KINDS

Costs = dict[str, float]
_MODES = ("cold", "warm", "onnxruntime")
_MIN_SECONDS = 0.02  # seconds of a phase that is worth a row


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kinds", default=",".join(KINDS), help="default: %(default)s")
    parser.add_argument("--nodes", type=numbers, default=[100, 300, 1000, 3000, 10000], help="default: 100 to 10000")
    parser.add_argument("--target", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--modes", default=",".join(_MODES), help="default: %(default)s")
    parser.add_argument("--json", type=Path, help="a file for all numbers, which bench/plot_growth.py draws")


def run(arguments: argparse.Namespace) -> None:
    found: dict[str, dict[str, dict[int, Costs]]] = {}
    for kind in arguments.kinds.split(","):
        tables: dict[str, dict[int, Costs]] = {}
        for nodes in arguments.nodes:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "network.onnx")
                path.write_bytes(KINDS[kind](nodes).SerializeToString())
                for mode in arguments.modes.split(","):
                    costs = _in_a_child(mode, path, arguments.target, Path(folder, "cache"))
                    tables.setdefault(mode, {})[nodes] = costs
        for mode, table in tables.items():
            _show(f"{kind}, {mode}", table)
        found[kind] = tables
        if arguments.json is not None:
            arguments.json.write_text(json.dumps({"target": arguments.target, "kinds": found}, indent=1) + "\n")


def _in_a_child(mode: str, path: Path, target: str, cache: Path) -> Costs:
    command = [sys.executable, __file__, mode, str(path), target]
    environment = {**os.environ, "MLIRT_CACHE": str(cache)}
    if mode == "kernels":
        environment["MLIRT_PLAN_CACHE_MB"] = "0"
    before = _seconds_of_children()
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    costs: Costs = json.loads(done.stdout.splitlines()[-1])
    own = costs.pop("all")
    return costs | ({} if mode == "onnxruntime" else {"compiler processes": _seconds_of_children() - before - own})


def _seconds_of_children() -> float:
    """The seconds of all processes that have ended, and of those that they waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def _show(title: str, table: Mapping[int, Costs]) -> None:
    sizes = list(table)
    print(f"{title}: " + " / ".join(map(str, sizes)) + " nodes")
    rows = list(dict.fromkeys(row for costs in table.values() for row in costs))
    for row in rows:
        values = [table[size].get(row, 0.0) for size in sizes]
        if max(values) >= _MIN_SECONDS:
            print(f"  {row:40s} {_listed(values):50s} k {exponent(sizes, values):.2f}")
    sys.stdout.flush()


def _listed(values: Sequence[float]) -> str:
    return " / ".join(f"{value:.3g}" for value in values)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _ignore(*_: object) -> None:
    """A watcher of progress that says nothing."""


def _costs_of_build(path: Path, target: str) -> Costs:
    import mlirt
    from mlirt.tools.phase_times import PhaseTimes

    build, load = mlirt.compile, mlirt.load  # imported when they are asked for
    before, start = _peak(), time.process_time()
    phases = PhaseTimes(_ignore, time.process_time)
    engine = build(path, target=target, progress=phases)
    phases.close()
    built = time.process_time()
    plan = path.with_suffix(".plan")
    engine.save(plan)
    saved = time.process_time()
    found = {"build": built - start, "save": saved - built}
    if target == "cpu":
        load(plan)
        found["load"] = time.process_time() - saved
    found["peak, MiB"] = _peak() - before
    return found | {f"  {phase}": seconds for phase, seconds in phases.seconds.items()}


def _costs_of_session(path: Path) -> Costs:
    from cpu_peer import cpu_session

    before, start = _peak(), time.process_time()
    session = cpu_session(path)
    seconds = time.process_time() - start
    del session
    return {"session": seconds, "peak, MiB": _peak() - before}


def _main() -> None:
    mode, path, target = sys.argv[1:]
    costs = _costs_of_session(Path(path)) if mode == "onnxruntime" else _costs_of_build(Path(path), target)
    print(json.dumps(costs | {"all": time.process_time()}))


if __name__ == "__main__":
    _main()
