"""Random graphs and ONNX's node tests with dynamic lengths: our CPU kernels against onnxruntime without optimisations.

`python bench/cpu_fuzz.py [--graphs N] [--nodes N] [--node-tests] [--contradict] [--static] [--first N] [--jobs N]
                          [--seconds S] [--guard end|start] [--cpu NAME] [--emulator FOLDER] [--networks]`

Each case is built for the CPU, or for the NumPy reference with `--target reference`, and run with several lengths. With
`--contradict` the lengths of the inputs are changed at random: where onnxruntime refuses them, ours has to refuse them,
too. With `--static` the peer is our own engine, built for the lengths of each run: the static and the dynamic form of
a network give the same, or both refuse the run; what only one of them refuses is wrong. Cases run in worker processes,
so that a crash is a result like another. With `--guard` each buffer lies beside a page that nobody may touch, at its
end or at its start, so that an access outside of it is a crash. `--cpu` names what code is made for: a lower level of
this machine's processors, such as x86-64, or with `--emulator` any that the emulators of a folder run (see
bench/emulated.py). `--networks` are those of bench/emulated_networks.py. Outcomes:

right        the same types, shapes and numbers, or both refuse the run
rounding     other numbers, but onnxruntime's own move as much when its inputs change by 1e-7 of themselves
refused      ours refuses what onnxruntime runs, with an error of its own classes
unsupported  ours cannot compile the graph
data         a result where onnxruntime refuses numbers (indices or labels out of range) or an input without elements,
             or the mean of no elements, which is NaN here and 0 there
peer         onnxruntime cannot load the model, or the process dies in it, or it does not give what the node test itself
             expects, which ours does
wrong        other numbers, shapes or types; or a result where onnxruntime refuses the lengths
error        an exception that is not an `MlirtError`
crash, hang  the process died, or took longer than `--case-seconds`

The exit code is 1 where a case is wrong, an error, a crash or a hang.
"""

# onnxruntime has no types: what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import numpy as np
import onnx
from cpu_peer import cpu_session
from emulated import EmulatedMachine, why_not
from emulated_networks import networks
from fuzz_cases import Case, node_cases, random_case
from fuzz_graphs import Array
from static_forms import static_results

_TOLERANCE = {"float16": 2e-3, "float32": 2e-4, "float64": 2e-4}
# Indices and labels out of range are data, not lengths: kernels stay inside their buffers whatever the data says.
_ABOUT_DATA = re.compile(
    r"[Oo]ut of (data )?bounds|[Oo]ut of range value|within the inclusive range|value=-?\d+ must be in range|"
    r"[Ii]nvalid (ind|sequence length)"
)
_BAD = ("wrong", "error", "crash", "hang")
_RANKS = ("error", "wrong", "refused", "peer", "data", "rounding")  # of several runs the first of these counts


def peer_results(case: Case, level: str) -> list[dict[str, Array] | str]:
    """What onnxruntime gives for each run, or why it refuses it. Raises what it raises at loading."""
    _tell_stage("peer")
    session = cpu_session(case.model, threads=1, level=level)
    names = [value.name for value in session.get_outputs()]
    results: list[dict[str, Array] | str] = []
    for feeds in case.runs:
        try:
            found = session.run(None, feeds)
            results.append({name: np.asarray(value) for name, value in zip(names, found, strict=True)})
        except Exception as error:
            results.append(str(error))
    _tell_stage("own")
    return results


def _tell_stage(stage: str) -> None:
    """Say to the parent of a worker whose code runs now, should the process die."""
    if "--serve" in sys.argv:
        print(f"STAGE {stage}", flush=True)


def largest_error(ours: Array, theirs: Array) -> float:
    """The largest difference of finite numbers, over the largest number or 1; infinite for other shapes."""
    if ours.shape != theirs.shape:
        return np.inf
    mine, other = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(mine) & np.isfinite(other)
    scale = max(1.0, float(np.abs(other[finite]).max(initial=0.0)))
    return float(np.abs(mine - other)[finite].max(initial=0.0)) / scale


def difference(ours: Array, theirs: Array) -> str:
    """What differs between two outputs; an empty text where nothing does."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype} {ours.shape} against {theirs.dtype} {theirs.shape}"
    if ours.dtype.kind != "f":
        count = int(np.count_nonzero(ours != theirs))
        return f"{count} of {ours.size} differ" if count else ""
    mine, other = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(mine) & np.isfinite(other)
    if not np.array_equal(mine[~finite], other[~finite], equal_nan=True):
        return "other numbers are infinite or NaN"
    error = largest_error(ours, theirs)
    return f"error {error:.2g}" if error > _TOLERANCE.get(str(ours.dtype), 2e-2) else ""


def moves_as_much(case: Case, number: int, found: dict[str, Array], wanted: dict[str, Array]) -> bool:
    """Whether onnxruntime's own outputs move a tenth as much when floats it is given change by 1e-7 of themselves.

    Recurrent layers with large weights multiply a last bit with each step: there no order of sums is better.
    """
    random = np.random.default_rng(0)

    def changed(value: Array) -> Array:
        if value.dtype.kind != "f":
            return value
        return (value * (1 + 1e-7 * random.choice([-1, 1], value.shape))).astype(value.dtype)

    feeds = {name: changed(value) for name, value in case.runs[number].items()}
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for weight in model.graph.initializer:
        weight.CopyFrom(onnx.numpy_helper.from_array(changed(onnx.numpy_helper.to_array(weight)), weight.name))
    (moved,) = peer_results(Case(case.name, model, (feeds,)), "ORT_DISABLE_ALL")
    if isinstance(moved, str):
        return False
    return all(
        largest_error(np.asarray(found[name]), theirs) <= 10 * largest_error(moved[name], theirs)
        for name, theirs in wanted.items()
        if difference(np.asarray(found[name]), theirs)
    )


def judge(
    case: Case,
    target: str,
    *,
    by_static_form: bool = False,
    cpu: str | None = None,
    machine: EmulatedMachine | None = None,
) -> tuple[str, str]:
    """The outcome of a case, and why; the engine runs on a machine where one is given."""
    import mlirt

    try:
        wanted = static_results(case, target) if by_static_form else peer_results(case, "ORT_DISABLE_ALL")
    except mlirt.UnsupportedError as error:
        return "unsupported", str(error)[:200]
    except Exception as error:
        return "error" if by_static_form else "peer", f"{type(error).__name__}: {error}"[:200]
    try:
        engine: Any = mlirt.compile(case.model, target=target, cpu=cpu)
    except mlirt.UnsupportedError as error:
        return "unsupported", str(error)[:200]
    except mlirt.InvalidModelError as error:
        refuses_all = all(isinstance(one, str) for one in wanted)
        return ("right" if refuses_all else "refused"), str(error)[:200]
    except mlirt.MlirtError as error:
        return "error", f"{type(error).__name__}: {error}"[:300]
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"[:300]
    if machine is not None:
        engine = machine.engine(engine.plan.to_bytes())
    outcomes = [one_run(engine, case, number, want, by_static_form) for number, want in enumerate(wanted)]
    if by_static_form:
        outcomes = [("wrong" if kind in ("refused", "data") else kind, why) for kind, why in outcomes]
    ranked = [one for kind in _RANKS for one in outcomes if one[0] == kind]
    return ranked[0] if ranked else ("right", "")


def one_run(
    engine: Any, case: Case, number: int, wanted: dict[str, Array] | str, by_static_form: bool
) -> tuple[str, str]:
    """The outcome of one run, and why."""
    import mlirt

    feeds = case.runs[number]
    shapes = ", ".join(f"{name}={value.shape}" for name, value in feeds.items())
    try:
        found = engine.run(feeds)
    except mlirt.MlirtError as error:
        return ("right" if isinstance(wanted, str) else "refused"), f"{error} [{shapes}]"
    except Exception as error:
        return "error", f"{type(error).__name__}: {error} [{shapes}]"
    outcome, why = compared(case, number, found, wanted, by_static_form)
    if outcome == "wrong" and not by_static_form and is_expected(case, number, found):
        outcome, why = "peer", f"ours is what the node test expects: {why}"
    return outcome, f"{why} [{shapes}]" if why else ""


def compared(
    case: Case, number: int, found: dict[str, Any], wanted: dict[str, Array] | str, by_static_form: bool
) -> tuple[str, str]:
    """The outcome of a run that has results, and why."""
    feeds = case.runs[number]
    if isinstance(wanted, str):
        is_empty = any(value.size == 0 for value in feeds.values())
        outcome = "data" if is_empty or _ABOUT_DATA.search(wanted) else "wrong"
        return outcome, f"a result where the peer refuses: {wanted[-160:]}"
    for name, theirs in wanted.items():
        if text := difference(np.asarray(found[name]), theirs):
            is_rounding = "error" in text and not by_static_form and moves_as_much(case, number, found, wanted)
            kind = "rounding" if is_rounding else "wrong"
            if not by_static_form and has_mean_of_nothing(case, feeds, np.asarray(found[name])):
                kind = "data"
            return kind, f"{name}: {text}"
    return "right", ""


def is_expected(case: Case, number: int, found: dict[str, Any]) -> bool:
    """Whether results are those that the case itself expects of a run, if it expects any."""
    if not case.expected:
        return False
    return not any(difference(np.asarray(found[name]), array) for name, array in case.expected[number].items())


def has_mean_of_nothing(case: Case, feeds: dict[str, Array], ours: Array) -> bool:
    """Whether there are NaNs where means of no elements may stand; onnxruntime has zeros for them."""
    means = any(node.op_type == "ReduceMean" for node in case.model.graph.node)
    is_empty = any(value.size == 0 for value in feeds.values())
    return means and is_empty and ours.dtype.kind == "f" and bool(np.isnan(ours).any())


def named_cases(options: argparse.Namespace) -> list[Case]:
    """The networks and node tests that are asked for."""
    tests = [*networks()] if options.networks else []
    if options.node_tests:
        tests += node_cases(contradicts=options.contradict)
    return [case for case in tests if options.only in case.name]


def chosen_cases(options: argparse.Namespace) -> Iterator[Case]:
    """The cases in their order."""
    yield from named_cases(options)
    for number in range(options.first, options.first + options.graphs):
        yield random_case(number, options.nodes, contradicts=options.contradict)


def serve(options: argparse.Namespace) -> None:
    """A worker: takes numbers of cases from standard input and answers each by a line of JSON."""
    if options.guard:
        os.environ["MLIRT_GUARD"] = options.guard
    tests = named_cases(options)
    machine = EmulatedMachine(options.emulator, options.cpu) if options.emulator else None
    for line in sys.stdin:
        number = int(line)
        case = (
            tests[number]
            if number < len(tests)
            else random_case(number - len(tests) + options.first, options.nodes, contradicts=options.contradict)
        )
        begun = time.perf_counter()
        outcome, why = judge(case, options.target, by_static_form=options.static, cpu=options.cpu, machine=machine)
        answer = {"case": case.name, "outcome": outcome, "why": why, "seconds": time.perf_counter() - begun}
        print("RESULT " + json.dumps(answer), flush=True)


class Worker:
    """A process that judges cases; another takes its place when it dies."""

    def __init__(self, arguments: Sequence[str], seconds: float) -> None:
        self._seconds = seconds
        self._command = [sys.executable, __file__, *arguments, "--serve"]
        self._process: subprocess.Popen[str] | None = None
        self._answers: Queue[str | None] = Queue()
        self._in_peer = False

    def ask(self, number: int) -> dict[str, Any]:
        process = self._process or self._start()
        self._in_peer = False
        assert process.stdin is not None
        process.stdin.write(f"{number}\n")
        process.stdin.flush()
        try:
            line = self._answers.get(timeout=self._seconds)
        except Empty:
            process.kill()
            self._process = None
            return {"case": f"number {number}", "outcome": "hang", "why": f"over {self._seconds:.0f} s"}
        if line is None:
            self._process = None
            outcome = "peer" if self._is_in_peer() else "crash"
            return {"case": f"number {number}", "outcome": outcome, "why": f"exit code {process.wait()}"}
        return json.loads(line)

    def _is_in_peer(self) -> bool:
        """Whether the process has died in the peer's code."""
        return self._in_peer

    def _start(self) -> subprocess.Popen[str]:
        answers: Queue[str | None] = Queue()
        self._answers = answers
        process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("RESULT "):
                    answers.put(line[7:])
                elif line.startswith("STAGE "):
                    self._in_peer = line == "STAGE peer\n"
            answers.put(None)

        threading.Thread(target=read, daemon=True).start()
        self._process = process
        return process

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()


def main() -> None:
    options = read_options()
    if options.serve:
        serve(options)
        return
    if options.emulator and (reason := why_not(options.emulator, options.cpu)):
        sys.exit(reason)
    count = options.graphs + len(named_cases(options))
    numbers: Queue[int] = Queue()
    for number in range(count):
        numbers.put(number)
    results: list[dict[str, Any]] = []
    end = time.monotonic() + options.seconds
    log = Path(options.log).open("w") if options.log else None

    def work() -> None:
        worker = Worker(sys.argv[1:], options.case_seconds)
        while time.monotonic() < end:
            try:
                number = numbers.get_nowait()
            except Empty:
                break
            result = worker.ask(number)
            results.append(result)
            if log:
                print(json.dumps(result), file=log, flush=True)
            if result["outcome"] in _BAD or (options.verbose and result["outcome"] != "right"):
                print(f"{result['outcome']:11s} {result['case']}: {result['why']}", flush=True)
        worker.close()

    threads = [threading.Thread(target=work) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outcomes = collections.Counter(result["outcome"] for result in results)
    print(f"{len(results)} of {count} cases: " + ", ".join(f"{n} {kind}" for kind, n in outcomes.most_common()))
    sys.exit(any(outcomes[kind] for kind in _BAD))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=0, help="random graphs")
    parser.add_argument("--first", type=int, default=0, help="the number of the first random graph")
    parser.add_argument("--nodes", type=int, default=8, help="nodes a random graph")
    parser.add_argument("--node-tests", action="store_true", help="ONNX's node tests with dynamic lengths")
    parser.add_argument("--only", default="", help="only node tests with this text in their names")
    parser.add_argument("--contradict", action="store_true", help="change lengths at random")
    parser.add_argument("--static", action="store_true", help="compare with engines of static lengths")
    parser.add_argument("--guard", default="", choices=("", "end", "start"), help="guard pages at buffers")
    parser.add_argument("--target", default="cpu", choices=("cpu", "reference"))
    parser.add_argument("--cpu", help="the processor that code is made for")
    parser.add_argument("--emulator", type=Path, help="a folder of emulators in which engines run")
    parser.add_argument("--networks", action="store_true", help="networks of many kinds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="worker processes")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no case after so many seconds")
    parser.add_argument("--case-seconds", type=float, default=120, help="what a case may take")
    parser.add_argument("--log", default="", help="a file that gets one line of JSON a case")
    parser.add_argument("--verbose", action="store_true", help="print whatever is not right")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
