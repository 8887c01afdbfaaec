"""Whether networks that nobody tuned for are right and repeatable on a GPU, against PyTorch in the same precision.

    python bench/gpu_zoo.py [--only resnet,random] [--precision fp16,tf32,fp32,int8] [--tactics estimates,measured]
                            [--jobs N] [--time-limit SECONDS] [--shard i/n] [--out DIR] [--runs 10]
    python bench/gpu_zoo.py --target cpu --precision fp32 --only random      # the same on a processor
    python bench/gpu_zoo.py --build-only --only random                       # needs no device
    python bench/gpu_zoo.py --every-tactic --only random,layer               # each offered tactic of each layer

Networks are torchvision's, transformers', written ones (gpu_zoo_networks.py) and random ones (random_networks.py),
with seeded random weights. The right answer is PyTorch's in float64. A case is right if our error is no more than 3
times PyTorch's in the same precision, and if all runs give the same bits, the second-level cache swept before each,
other work on the device beside every second one. The peer of int8 is the reference interpreter on the same quantised
network; that of tf32 the worse of PyTorch with `allow_tf32` and PyTorch in float32 on operands that are rounded to
TF32, as libraries choose float32 for some layers. Where runs differ, each launch is repeated alone and those that
differ are named.

With --every-tactic a network is built as often as its layer with the most tactics has some: build N takes the N-th
tactic of each layer, counted round, so that each tactic that is offered for a layer is in one of the builds. Each build
is judged as any other, and the last lines count the tactics by kernel family.

Processes prepare and build networks while others run. Every result is a line of DIR/results.jsonl at once; the table
comes last, the worst first. Exit code 1 where anything is wrong, 3 where the time limit left something out.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

from gpu_zoo_networks import Network, networks  # noqa: E402
from gpu_zoo_prepare import EVERY, OFFERED, Case, feeds_of, job  # noqa: E402
from gpu_zoo_verdict import Row, error_of, is_bad, judge, lines  # noqa: E402
from tactic_rotation import coverage  # noqa: E402
from worker_processes import Done, Workers  # noqa: E402

_REPETITIONS = 6  # of a launch alone


def main() -> int:
    """Build, run, judge, print."""
    options = _arguments()
    end = time.monotonic() + options.time_limit
    found = _chosen(options)
    if options.list:
        print("\n".join(f"{network.name} ({network.family})" for network in found))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    # A build keeps one core busy: many side by side use a machine better than few with several processes each.
    os.environ.setdefault("MLIRT_JOBS", str(max(1, (os.cpu_count() or 1) // options.jobs)))
    check = _Check(options)
    with Workers(options.jobs, options.job_limit) as workers:
        for case, network in _cases(found, options, rows):
            workers.submit((case, network), job, case, options.work)
        for done in workers.results(lambda: time.monotonic() > end):
            for case in _further(done, options):
                workers.submit((case, done.key[1]), job, case, options.work)
            _keep(check.row(done), rows, options.out)
        left = [case.name for case, _ in workers.left()]
    print("\n".join([*lines(rows), *(coverage(rows) if options.every_tactic else [])]))
    if left:
        print(f"the time limit left out {len(left)} cases: {', '.join(left)}"[:3000])
    return 1 if any(map(is_bad, rows)) else 3 if left else 0


class _Check:
    """Runs what was built; answers of PyTorch are kept while a network is at work."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._open: Any = None
        self._pressure: Any = None

    def row(self, done: Done) -> Row:
        """What became of a case."""
        case, network = done.key
        row = _row(case, network)
        row |= done.result or {}
        if done.why:
            return judge(row | {"why": done.why})
        if self._options.build_only:
            return {**row, "verdict": "right", "error": 0.0, "peer": 0.0, "differing": 0, "runs": 0}
        start = time.perf_counter()
        try:
            row |= self._checked(case)
        except Exception as error:
            row["why"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]
        return judge(row | {"check s": round(time.perf_counter() - start, 1)})

    def _checked(self, case: Case) -> Row:
        import numpy as np
        from gpu_zoo_runs import opener, repeat

        if self._open is None:
            self._context = opener(self._options.target)
            self._open, self._pressure = self._context.__enter__()
        feeds = feeds_of(case.network, self._options.work)
        want, peer, exact = self._answers(case, feeds)
        plan = self._open(case.plan(self._options.work), feeds)
        if not any(np.any(one) for one in want):
            raise ValueError("the right outputs are all zero: the network tells nothing")
        runs = repeat(plan, self._pressure, self._options.runs)
        row: Row = {"error": error_of(runs.outputs, want), "peer": peer, "differing": runs.differing}
        notes = [f"against {exact}"] if exact != "float64" else []
        if runs.differing:
            notes += plan.differing_launches(_REPETITIONS)
        return row | {"runs": self._options.runs, "notes": notes}

    def _answers(self, case: Case, feeds: dict[str, Any]) -> tuple[list[Any], float, str]:
        """The right outputs and the error of the peer; both are kept beside the model."""
        import numpy as np
        from gpu_zoo_peers import Peer

        device = "cuda" if self._options.target == "cuda" else "cpu"
        folder = self._options.work / case.network
        peer, kept = Peer(folder, feeds, device), folder / "expected.npz"
        if not kept.exists():
            want = peer.reference()
            np.savez(kept, allow_pickle=False, **{peer.exact: np.zeros(0)}, **{f"{k}": a for k, a in enumerate(want)})
        with np.load(kept) as data:
            want = [data[str(k)] for k in range(len(data.files) - 1)]
            exact = "float32" if "float32" in data.files else "float64"
        if case.precision == "int8":
            with np.load(folder / "int8.expected.npz") as data:
                return want, error_of([data[name] for name in data.files], want), exact
        error = error_of(peer.outputs("fp32" if device == "cpu" else case.precision), want)
        if case.precision == "tf32":
            error = max(error, error_of(peer.outputs_of_rounded_operands(), want))
        return want, error, exact


def _further(done: Done, options: argparse.Namespace) -> list[Case]:
    """The other builds of a network whose first one has told how many tactics its layers have at most."""
    case: Case = done.key[0]
    if case.variant != 0 or not done.result:
        return []
    count = min(done.result["builds"], options.most_tactics or done.result["builds"])
    return [replace(case, tactics=f"{EVERY}.{number}") for number in range(1, count)]


def _row(case: Case, network: Network) -> Row:
    what = {"name": case.name, "network": case.network, "family": network.family}
    return {**what, "precision": case.precision, "tactics": case.tactics}


def _keep(row: Row, rows: list[Row], folder: Path) -> None:
    rows.append(row)
    with (folder / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(f"[{len(rows)}] {row['verdict']} {row['name']} {row.get('why', '')}"[:200], flush=True)


def _cases(found: Sequence[Network], options: argparse.Namespace, rows: list[Row]) -> list[tuple[Case, Network]]:
    """All networks at the first precision, then at the next one; a precision that is not offered is one row."""
    from mlirt.builder.config.build_config import PRECISIONS

    made: list[tuple[Case, Network]] = []
    for precision in options.precision:
        for tactics in [f"{EVERY}.0"] if options.every_tactic else options.tactics:
            cases = [(Case(network.name, precision, tactics, options.target), network) for network in found]
            if precision in PRECISIONS:
                made += cases
            elif cases:
                why = f"mlirt.compile has no precision {precision!r}"
                row = _row(*cases[0]) | {"name": f"(all) {precision} {tactics}", "network": "", "notes": [why]}
                _keep({**row, "verdict": "not offered"}, rows, options.out)
    return made


def _chosen(options: argparse.Namespace) -> list[Network]:
    found = [
        network
        for network in networks(options.random)
        if not options.only or any(part in (network.family,) or part in network.name for part in options.only)
    ]
    return found[options.shard[0] :: options.shard[1]]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=_listed, default=[], help="parts of names, or families")
    parser.add_argument("--precision", type=_precisions, default=["fp16"], help=f"of {','.join(OFFERED)}, or all")
    parser.add_argument("--tactics", type=_listed, default=["estimates"], help="estimates, measured, or both")
    parser.add_argument("--every-tactic", action="store_true", help="each tactic of each layer, in several builds")
    parser.add_argument("--most-tactics", type=int, default=0, metavar="N", help="at most the first N; 0 is all")
    parser.add_argument("--target", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--jobs", type=int, default=max(1, os.cpu_count() or 1), help="networks built at a time")
    parser.add_argument("--time-limit", type=float, default=1e9, metavar="S", help="nothing new is begun after so long")
    parser.add_argument(
        "--job-limit", type=float, default=1e9, metavar="S", help="a build that takes longer is given up"
    )
    parser.add_argument("--shard", type=_shard, default=(0, 1), metavar="I/N", help="every N-th network, from the I-th")
    parser.add_argument("--random", type=int, default=40, help="random networks (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=10)
    work = Path(tempfile.gettempdir(), "gpu_zoo")
    parser.add_argument("--work", type=Path, default=work, help="models and plans, kept for later runs")
    parser.add_argument("--out", type=Path, default=Path("gpu_zoo_results"), help="where results.jsonl grows")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.every_tactic and options.target != "cuda":
        parser.error("--every-tactic: layers have several tactics on --target cuda alone")
    return options


def _listed(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _precisions(text: str) -> list[str]:
    found: list[str] = [*OFFERED] if text == "all" else _listed(text)
    for one in found:
        if one not in OFFERED:
            raise argparse.ArgumentTypeError(f"{one!r} is none of {', '.join(OFFERED)}")
    return found


def _shard(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is no I/N with I of 1 to N")
    return int(number) - 1, int(count)


if __name__ == "__main__":
    sys.exit(main())
