"""MLPerf Inference's load generator over this project's engines, and over those of its peers.

    python bench/mlperf run NETWORK [--system mlirt] [--scenario SingleStream] [--precision fp32] [--device cpu]
                                    [--accuracy] [--seconds 10] [--logs DIR]
    python bench/mlperf ratios [--networks resnet50,..] [--precisions fp32,int8] [--scenarios SingleStream,Offline]
                                    [--peers onnxruntime,openvino] [--seconds 5] [--rounds 3]
    python bench/mlperf endure NETWORK --rate R [--seconds 600]       Server load: memory, lost and wrong answers
    python bench/mlperf simulate --rate R [--batch-ms 0.2] [--sample-us 12]   Server load on an engine that only sleeps
    python bench/mlperf build NETWORK ..                              the plan alone, for a machine with few minutes

`run` makes one test and prints the load generator's own summary; its logs stay in --logs as they are. With --accuracy
every sample is asked for once, and each answer compared with what is right (answers.py). `ratios` measures
several systems in turns, each test in a process of its own. Weights and samples are random (workloads.py). These are
no results of MLPerf: durations are short, and nothing was submitted.

Needs `pip install 'mlirt[mlperf]'`, onnxruntime for files in int8 and for --accuracy, and the peer's package.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from mlirt.errors import MlirtError
from mlirt.runtime.host_cpu import thread_count
from mlperf import endurance, ratios
from mlperf.answers import BOUNDS
from mlperf.load import SCENARIOS, LoadSettings, Summary
from mlperf.models import PRECISIONS
from mlperf.session import Session, Setup, expected_of
from mlperf.simulate import SleepingSystem, Times, simulated, sleeping_samples
from mlperf.systems import SYSTEMS
from mlperf.workloads import WORKLOADS


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command; exits with 1 where an answer is lost or wrong."""
    options = _parser().parse_args(argv)
    try:
        options.act(options)
    except (ModuleNotFoundError, MlirtError, ValueError) as error:
        raise SystemExit(f"bench/mlperf: {error}") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench/mlperf", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, act in (("run", _run), ("build", _build), ("endure", _endure)):
        command = commands.add_parser(name)
        command.set_defaults(act=act)
        command.add_argument("network", choices=list(WORKLOADS))
        command.add_argument("--system", choices=SYSTEMS, default="mlirt")
        default = "Server" if name == "endure" else "SingleStream"
        command.add_argument("--scenario", choices=SCENARIOS, default=default)
        command.add_argument("--precision", choices=PRECISIONS, default="fp32")
        command.add_argument("--accuracy", action="store_true", help="each sample once, answers compared")
        command.add_argument("--bound", type=float, help=f"how far an answer may be off (default: {BOUNDS})")
        command.add_argument("--rate", type=float, help="Server: queries a second; else what is expected")
        command.add_argument("--latency", type=float, help="Server: seconds that 99 %% of the queries may take")
        _add_sizes(command)
        command.add_argument("--seconds", type=float, default=600.0 if name == "endure" else 10.0)
    command = commands.add_parser("simulate")
    command.add_argument("--rate", type=float, required=True, help="queries a second")
    command.add_argument("--latency", type=float, default=0.015, help="seconds that 99 %% of the queries may take")
    command.add_argument("--batch-ms", type=float, default=0.2, help="that any batch takes")
    command.add_argument("--sample-us", type=float, default=12.0, help="that each of its samples adds")
    command.add_argument("--sample-bytes", type=int, default=150_528)
    command.add_argument("--answer-bytes", type=int, default=4000)
    command.add_argument("--seconds", type=float, default=3.0)
    _add_sizes(command)
    # Set behind the options: an option's own default would win otherwise.
    command.set_defaults(act=_simulate, device="cuda", network="resnet50", system="mlirt", precision="int8")
    command = commands.add_parser("ratios")
    command.set_defaults(act=_ratios)
    command.add_argument("--networks", type=_some_of(WORKLOADS), default="resnet50,mobilenet_v2,bert_base,retinanet")
    command.add_argument("--precisions", type=_some_of(PRECISIONS), default="fp32,int8")
    command.add_argument("--scenarios", type=_some_of(SCENARIOS), default="SingleStream,Offline")
    command.add_argument("--peers", type=_some_of(SYSTEMS), default="onnxruntime,openvino")
    command.add_argument("--rounds", type=int, default=3)
    command.add_argument("--seconds", type=float, default=5.0)
    _add_sizes(command)
    return parser


def _some_of(known: Collection[str]) -> Callable[[str], list[str]]:
    """Reads names with commas between them, all of them known."""

    def names(text: str) -> list[str]:
        found = text.split(",")
        if unknown := [name for name in found if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return found

    return names


def _add_sizes(command: argparse.ArgumentParser) -> None:
    command.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    command.add_argument("--threads", type=int, default=thread_count(), help="that compute on the CPU, in all")
    command.add_argument("--batch", type=int, default=8, help="most samples of a batch of Offline and Server")
    command.add_argument("--streams", type=int, default=8, help="samples of a query of MultiStream")
    command.add_argument("--runs-at-once", type=int, default=1, help="batches that run at the same time")
    command.add_argument("--samples", type=int, default=16, help="of the library")
    command.add_argument("--delay-ms", type=float, default=0.0, help="how long a batch waits for more queries")
    command.add_argument("--heuristic", action="store_true", help="kernels by estimates, which builds sooner")
    command.add_argument("--folder", type=Path, default=Path("build/mlperf"), help="models, plans, right answers")
    command.add_argument("--logs", type=Path, default=Path("build/mlperf/logs"), help="of the load generator")


def _setup(options: argparse.Namespace, network: str, system: str, scenario: str, precision: str) -> Setup:
    return Setup(
        WORKLOADS[network],
        system,
        scenario,
        options.folder,
        precision,
        options.device,
        options.threads,
        options.batch,
        options.streams,
        options.runs_at_once,
        options.samples,
        options.delay_ms / 1e3,
        options.heuristic,
    )


def _one_setup(options: argparse.Namespace) -> Setup:
    return _setup(options, options.network, options.system, options.scenario, options.precision)


def _run(options: argparse.Namespace) -> None:
    setup = _one_setup(options)
    session = Session(setup)
    logs = setup.logs(options.logs, "accuracy" if options.accuracy else "performance")
    if options.accuracy:
        check = session.check(logs, expected_of(setup, options.bound), rate=options.rate)
        session.close()
        print(f"{check}\nlogs: {logs}")
        if check.lost or check.wrong:
            raise SystemExit(1)
        return
    latency = options.latency or setup.workload.server_seconds
    summary = session.measure(logs, options.seconds, rate=options.rate, latency=latency)
    print(f"{setup.workload.name} {setup.precision}, {setup.system}, {setup.scenario}, {_place(setup)}")
    print(headline(setup.scenario, summary))
    print(f"logs: {logs}")
    session.close()


def _simulate(options: argparse.Namespace) -> None:
    setup = _setup(options, options.network, options.system, "Server", options.precision)
    times = Times(options.batch_ms / 1e3, options.sample_us / 1e6)
    system = SleepingSystem(times, setup.runs_at_once, options.answer_bytes)
    load = LoadSettings("Server", seconds=options.seconds, rate=options.rate, latency=options.latency)
    logs = options.logs / "simulated"
    samples = sleeping_samples(system, setup.samples, options.sample_bytes)
    summary = simulated(system, samples, setup.sizes, setup.delay, load, logs)
    print(f"{headline('Server', summary)}; {len(system.sizes)} batches\nlogs: {logs}")


def _place(setup: Setup) -> str:
    where = f"{setup.threads} threads" if setup.device == "cpu" else "one GPU"
    return f"{where}, {setup.batches_at_once} batches at once of at most {setup.rows}"


def headline(scenario: str, summary: Summary) -> str:
    """What a scenario is about, and whether the load generator's own conditions are met."""
    verdict = "VALID" if summary.is_valid else "INVALID by the load generator's conditions"
    if scenario == "Offline":
        return f"{summary.samples_per_second:.2f} samples/s ({verdict})"
    if scenario == "Server":
        percentile = 1e3 * summary.percentile(99)
        return f"{summary.samples_per_second:.2f} samples/s, p99 {percentile:.2f} ms ({verdict})"
    percent = 90 if scenario == "SingleStream" else 99
    return (
        f"p{percent} {1e3 * summary.percentile(percent):.3f} ms, p50 {1e3 * summary.percentile(50):.3f} ms ({verdict})"
    )


def _build(options: argparse.Namespace) -> None:
    from mlperf.mlirt_system import build

    print(build(_one_setup(options).request()))


def _endure(options: argparse.Namespace) -> None:
    setup = _one_setup(options)
    if options.rate is None:
        raise SystemExit("--rate is missing: the queries a second that are sent")
    latency = options.latency or setup.workload.server_seconds
    found = endurance.endure(setup, options.logs, options.seconds, options.rate, latency, options.bound)
    print(found)
    if not found.is_fine:
        raise SystemExit(1)


def _ratios(options: argparse.Namespace) -> None:
    ratios.table(
        [
            _setup(options, network, "mlirt", scenario, precision)
            for network in options.networks
            for precision in options.precisions
            for scenario in options.scenarios
        ],
        options.peers,
        options.logs,
        options.seconds,
        options.rounds,
    )
