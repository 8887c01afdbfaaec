"""Plans with changed fields and right digests: the loader refuses them, or they run inside of their buffers.

`python bench/fuzz_plans.py [--cases N] [--seed TEXT] [--only NAME] [--seconds S] [--gib N] [--guard end|start]`

Six small networks are built for the CPU. Each case changes a field of the manifest, of the weights' header or of the
index of one of their plans, makes the digests right again, and loads and runs it in a forked process with bounded
memory and time. Outcomes:

refused   a PlanError (or another MlirtError) at loading or at running
same      the same results
memory    a MemoryError: the plan asks for more memory than there is
changed   other results, without leaving a buffer (a plan may compute what it likes)
raw       an exception that is not of mlirt's classes
crash     the process ended by a signal
hang      it took longer than `--seconds`

With `--guard` all buffers lie against pages that nothing may touch (MLIRT_GUARD), so that every read and write outside
of them on that side is a crash. The exit code is 1 where there is a crash, a hang or a raw exception.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_plan_mutations import mutated
from fuzz_plan_networks import NETWORKS, Array, Network

_CODES = {"same": 0, "refused at load": 11, "refused at run": 12, "changed": 13, "raw": 14, "memory": 15}
_BAD = ("raw", "crash", "hang")


def in_child(action: Callable[[], int], seconds: int, gib: float) -> int:
    """The status of a forked process that does `action`, as os.waitpid has it; no threads may run here."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            faulthandler.disable()
            # The alarm ends native code too, which no Python handler would interrupt.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            limit = int(gib * 2**30)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            code = action()
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def tried(plan: bytes, feeds: dict[str, Array], want: dict[str, Array], notes: Path) -> int:
    """The code of the outcome of one plan; an exception that is not mlirt's goes to `notes`."""
    import mlirt

    stage = "refused at load"
    try:
        engine = mlirt.load(plan)
        stage = "refused at run"
        found = engine.run(feeds)
    except mlirt.MlirtError:
        return _CODES[stage]
    except MemoryError:
        return _CODES["memory"]
    except BaseException as error:
        notes.write_text(f"{type(error).__name__}: {error}")
        return _CODES["raw"]
    same = found.keys() == want.keys() and all(
        found[name].dtype == value.dtype and np.array_equal(found[name], value, equal_nan=value.dtype.kind == "f")
        for name, value in want.items()
    )
    return _CODES["same" if same else "changed"]


def outcome_of(status: int) -> str:
    """The outcome that the status of a process stands for."""
    if os.WIFSIGNALED(status):
        return "hang" if os.WTERMSIG(status) == signal.SIGALRM else "crash"
    return next((name for name, code in _CODES.items() if code == os.WEXITSTATUS(status)), "raw")


def built(
    folder: Path, networks: Sequence[Callable[[], Network]]
) -> list[tuple[str, bytes, dict[str, Array], dict[str, Array]]]:
    """Name, plan, inputs and outputs of each network; built and run in processes of their own, which have threads."""
    found: list[tuple[str, bytes, dict[str, Array], dict[str, Array]]] = []
    for make in networks:
        path = folder / make.__name__
        model, feeds = make()

        def build(model: Any = model, feeds: dict[str, Array] = feeds, path: Path = path) -> int:
            import mlirt

            engine = mlirt.compile(model, target="cpu")
            engine.save(path)
            path.with_suffix(".results").write_bytes(pickle.dumps(engine.run(feeds)))
            return 0

        if in_child(build, 600, 16):
            raise SystemExit(f"{make.__name__} cannot be built")
        found.append((make.__name__, path.read_bytes(), feeds, pickle.loads(path.with_suffix(".results").read_bytes())))
    return found


def run_cases(options: argparse.Namespace) -> collections.Counter[str]:
    """How many cases had each outcome; prints those that are bad."""
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        plans = built(Path(folder), [make for make in NETWORKS if options.only in make.__name__])
        notes = Path(folder) / "notes"
        for number in range(options.cases):
            rng = random.Random(f"{options.seed} {number}")
            name, plan, feeds, want = plans[number % len(plans)]
            what, changed = mutated(plan, rng)
            status = in_child(lambda: tried(changed, feeds, want, notes), options.seconds, options.gib)
            outcome = outcome_of(status)
            counts[outcome] += 1
            if outcome in _BAD or options.verbose:
                why = notes.read_text() if outcome == "raw" and notes.exists() else f"status {status}"
                print(f"case {number} of {name}: {outcome}: {what[:200]} ({why[:300]})", flush=True)
    return counts


def main(given: list[str] | None = None) -> int:
    """Print the counts; 1 where a case was bad."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10000, help="how many plans (default: 10000)")
    parser.add_argument("--only", default="", help="only networks with this text in their names")
    parser.add_argument("--seed", default="0", help="other cases for another text (default: 0)")
    parser.add_argument("--seconds", type=int, default=20, help="a case that takes longer hangs (default: 20)")
    parser.add_argument("--gib", type=float, default=4, help="address space of a case (default: 4 GiB)")
    parser.add_argument("--guard", choices=("end", "start"), help="lay buffers against pages that nothing may touch")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    options = parser.parse_args(given)
    os.environ.setdefault("MLIRT_NUM_THREADS", "1")
    os.environ["MLIRT_GUARD"] = options.guard or ""
    from mlirt.runtime.llvm_binding import llvm

    import_module("mlirt.runtime.engine")  # once, and not in every child
    llvm()
    counts = run_cases(options)
    total = sum(counts.values())
    print(", ".join(f"{name} {count}" for name, count in counts.most_common()), f"of {total}")
    return int(any(counts[name] for name in _BAD))


if __name__ == "__main__":
    sys.exit(main())
