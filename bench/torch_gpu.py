"""`torch.compile(backend="mlirt")` on a GPU beside its own engine in a CUDA graph and PyTorch's default back end.

    python bench/torch_gpu.py
    python bench/torch_gpu.py --networks bert_base --batches 1 --timed
    python bench/torch_gpu.py --target cpu --batches 1,2 --image 64 --layers 2 --rounds 3

ResNet-50, MobileNetV2 and BERT base with random weights in half precision. In each case the same engine runs as one
CUDA graph that was captured around `run_on_stream` (engine), as the compiled module is called (call), and as a graph
that was captured around such a call (captured); the peer is PyTorch's default back end, channels last, called and
captured. All take turns on one stream; times are milliseconds, medians over the rounds. `kept` is engine over call, and
engine over captured: how much of the engine's ratio to the peer is left. Kernels are chosen by the cost model unless
`--timed`.

The exit status is 1 where a result is further from float32 than 5 times PyTorch's own in half precision, where the
trace of calls has a copy, where a case is more than one engine, or where another batch of a dynamic module makes
TorchDynamo or mlirt compile again. What `--budget` seconds do not suffice for is left out, and said so.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import torch  # noqa: E402
from torch_wrapped_modules import Named, with_operators  # noqa: E402

from mlirt.builder.from_torch import graph_engines  # noqa: E402
from mlirt.builder.from_torch.dynamo_backend import mlirt_backend  # noqa: E402
from mlirt.builder.from_torch.tensor_run import run_tensors  # noqa: E402

Call = Callable[[], Any]
MAX_ERROR = 5.0
MAX_BETWEEN_HALVES = 0.02
TRAIN_SECONDS = 0.004


class Machine:
    """Where modules run, one stream there, and the clock."""

    def __init__(self, target: str) -> None:
        self.target, self.is_gpu = target, target == "cuda"
        self.device = torch.device("cuda" if self.is_gpu else "cpu")
        self.stream: Any = torch.cuda.Stream() if self.is_gpu else None
        self.name = torch.cuda.get_device_name() if self.is_gpu else "CPU"

    def on_stream(self) -> Any:
        """Let what follows be queued on the stream."""
        return torch.cuda.stream(self.stream) if self.is_gpu else nullcontext()

    def captured(self, call: Call) -> Call:
        """A CUDA graph around a call; on a CPU the call."""
        if not self.is_gpu:
            return call
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            kept = call()
        return lambda: (graph.replay(), kept)[1]

    def milliseconds(self, call: Call, runs: int) -> float:
        """Of one run, of so many that follow one another."""
        if not self.is_gpu:
            start = time.perf_counter()
            for _ in range(runs):
                call()
            return 1e3 * (time.perf_counter() - start) / runs
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record(self.stream)
        for _ in range(runs):
            call()
        end.record(self.stream)
        end.synchronize()
        return start.elapsed_time(end) / runs

    def in_turns(self, sides: dict[str, Call], rounds: int) -> dict[str, float]:
        """The median of each side."""
        runs: dict[str, int] = {}
        for name, call in sides.items():
            self.milliseconds(call, 3)
            runs[name] = max(3, min(100, int(1e3 * TRAIN_SECONDS / max(self.milliseconds(call, 3), 1e-3))))
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, call in sides.items():
                times[name].append(self.milliseconds(call, runs[name]))
        return {name: statistics.median(found) for name, found in times.items()}


def copies_in(machine: Machine, call: Call) -> tuple[int, int]:
    """The copies and the kernels of five calls, as PyTorch's profiler traces them."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(5):
            call()
        torch.cuda.synchronize()
    names = [event.name for event in trace.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    copies = sum("memcpy" in name.lower() for name in names)
    return copies, len(names) - copies


class Engines:
    """The engines that the back end makes, in order, and the tensors that each was last called with."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.given: dict[Any, tuple[Any, ...]] = {}
        first = graph_engines.PartEngine.__init__

        def noted(engine: Any, *args: Any) -> None:
            first(engine, *args)
            self.made.append(engine)
            forward = engine.forward

            def noting(*inputs: Any) -> Any:
                self.given[engine] = inputs
                return forward(*inputs)

            engine.forward = noting

        setattr(graph_engines.PartEngine, "__init__", noted)

    def feeds(self, engine: Any) -> dict[str, Any]:
        """The inputs of its last call by name."""
        return dict(zip(engine.inputs, self.given[engine], strict=True))


def network(name: str, batch: int, given: argparse.Namespace) -> tuple[Any, tuple[Any, ...]]:
    """A module in float32, and inputs."""
    torch.manual_seed(0)
    with_operators()
    if name == "bert_base":
        import transformers as t

        config = t.BertConfig(num_hidden_layers=given.layers)
        module = Named(t.BertModel(config), "last_hidden_state")
        return module.eval(), (torch.randint(0, config.vocab_size, (batch, given.tokens)),)
    import torchvision

    module = getattr(torchvision.models, name)()
    x = torch.randn(batch, 3, given.image, given.image)
    with torch.no_grad():  # batch normalisation of random weights lets numbers grow until its statistics are known
        module(x[:8] if batch > 1 else torch.randn(4, *x.shape[1:]))
    return module.eval(), (x,)


def as_half(value: Any, device: Any) -> Any:
    """A tensor on the device, floating-point numbers in half precision."""
    return (value.half() if value.is_floating_point() else value).to(device)


def worst_error(found: Any, wanted: Any) -> float:
    """The largest difference over the largest number."""
    return float((found.double() - wanted.double()).abs().max() / wanted.double().abs().max())


def measured(name: str, batch: int, machine: Machine, engines: Engines, given: argparse.Namespace) -> list[str]:
    """Print the row of a case; what is wrong with it."""
    start = time.perf_counter()
    module, inputs = network(name, batch, given)
    module = module.to(machine.device)
    wanted = module(*(one.to(machine.device) for one in inputs))
    module, inputs = module.half(), tuple(as_half(one, machine.device) for one in inputs)
    torch._dynamo.reset()
    engines.made.clear()
    options = {"target": machine.target} | ({} if given.timed else {"heuristic": True})
    compiled = torch.compile(module, backend=mlirt_backend, options=options)

    def call() -> Any:
        return compiled(*inputs)

    error, own = worst_error(call(), wanted), worst_error(module(*inputs), wanted)
    wrong = [f"an error of {error:.1e}, PyTorch's is {own:.1e}"] if error > MAX_ERROR * own + 1e-6 else []
    if len(engines.made) != 1:
        return [*wrong, f"{len(engines.made)} engines"]
    built = time.perf_counter() - start
    for _ in range(4):  # the allocator comes to give the same addresses
        call()
    copies, kernels = copies_in(machine, call) if machine.is_gpu else (0, 0)
    if copies or (machine.is_gpu and not kernels):
        wrong.append(f"{copies} copies and {kernels} kernels in 5 calls")
    sides = {"engine": machine.captured(engine_call(engines.made[0], engines.feeds(engines.made[0]))), "call": call}
    sides["captured"] = machine.captured(call)
    if not given.no_peer:
        sides |= peer_calls(module, inputs, machine)
    times = machine.in_turns(sides, given.rounds)
    row = " | ".join(f"{times[side]:.3f}" if side in times else "-" for side in SIDES)
    ratios = [f"{times['peer captured'] / times[side]:.2f}" if "peer captured" in times else "-" for side in SIDES[:3]]
    kept = f"{times['engine'] / times['call']:.3f}, {times['engine'] / times['captured']:.3f}"
    print(f"| {name} | {batch} | {row} | {', '.join(ratios)} | {kept} | {copies} of {copies + kernels} |", flush=True)
    print(f"    built in {built:.0f} s, error {error:.1e}, PyTorch's {own:.1e}", flush=True)
    return wrong


SIDES = ("engine", "call", "captured", "peer", "peer captured")


def engine_call(part: Any, feeds: dict[str, Any]) -> Call:
    """What runs a part's engine alone."""
    if part.engine.target == "cpu":
        return lambda: part.engine.run(feeds)
    outputs = {name: torch.empty_like(one) for name, one in run_tensors(part.engine, feeds).items()}
    return lambda: part.engine.run_on_stream(feeds, outputs, torch.cuda.current_stream().cuda_stream)


def captured_or_why(machine: Machine, call: Call, name: str) -> Call | None:
    """A CUDA graph around a call that was made before; None where that cannot be captured, which is said."""
    try:
        return machine.captured(call)
    except RuntimeError as error:
        print(f"{name}: no CUDA graph: {str(error).splitlines()[0][:120]}", flush=True)
        return None


def peer_calls(module: Any, inputs: tuple[Any, ...], machine: Machine) -> dict[str, Call]:
    """PyTorch's default back end, called and captured."""
    if inputs[0].dim() == 4:
        module = module.to(memory_format=torch.channels_last)
        inputs = tuple(one.contiguous(memory_format=torch.channels_last) for one in inputs)
    peer = torch.compile(module)

    def call() -> Any:
        return peer(*inputs)

    for _ in range(3):
        call()
    return {"peer": call, "peer captured": machine.captured(call)}


def other_batches(machine: Machine, engines: Engines, given: argparse.Namespace) -> list[str]:
    """Call a BERT of two layers with a dynamic batch with other batches; what is wrong."""
    module, (tokens,) = network("bert_base", 7, argparse.Namespace(layers=2, tokens=given.tokens))
    module, tokens = module.half().to(machine.device), tokens.to(machine.device)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    engines.made.clear()
    options = {"target": machine.target, "heuristic": True}
    compiled = torch.compile(module, backend=mlirt_backend, options=options, dynamic=True)
    counts: list[tuple[int, int]] = []
    for batch in (4, 7, 3):
        error = worst_error(compiled(tokens[:batch]), module(tokens[:batch]))
        if error > MAX_BETWEEN_HALVES:
            return [f"batch {batch} differs by {error:.1e}"]
        counts.append((len(engines.made), torch._dynamo.utils.counters["stats"]["unique_graphs"]))
    print(f"batches 4, 7 and 3 of a BERT: (engines, graphs of TorchDynamo) are {counts}", flush=True)
    return [] if counts == [(1, 1)] * 3 else [f"compiled again: {counts}"]


def main() -> int:
    """The command."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--target", default="cuda", choices=("cuda", "cpu"))
    flags.add_argument("--networks", default="mobilenet_v2,bert_base,resnet50")
    flags.add_argument("--batches", default="1,32")
    flags.add_argument("--rounds", type=int, default=15)
    flags.add_argument("--image", type=int, default=224)
    flags.add_argument("--tokens", type=int, default=128)
    flags.add_argument("--layers", type=int, default=12, help="of BERT")
    flags.add_argument("--budget", type=float, default=170.0, help="seconds after which no case is begun")
    flags.add_argument("--no-peer", action="store_true")
    flags.add_argument("--timed", action="store_true", help="kernels are chosen by their times on the device")
    given = flags.parse_args()
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    machine, engines = Machine(given.target), Engines()
    print(f"{machine.name}, torch {torch.__version__}")
    cases = [(name, int(batch)) for name in given.networks.split(",") for batch in given.batches.split(",")]
    with torch.no_grad(), machine.on_stream():
        wrong = {"other batches": other_batches(machine, engines, given)}
        print(f"| network | batch | {' | '.join(SIDES)} | peer over engine, call, captured | kept | copies |")
        print("|" + "---|" * (len(SIDES) + 5))
        for name, batch in cases:
            if time.perf_counter() - start > given.budget:
                print(f"{name}, batch {batch}: left out, {given.budget:.0f} s are over", flush=True)
                continue
            wrong[f"{name}, batch {batch}"] = measured(name, batch, machine, engines, given)
    for name, found in wrong.items():
        for what in found:
            print(f"{name}: {what}")
    bad = sum(map(len, wrong.values()))
    print(f"{bad} wrong, {time.perf_counter() - start:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
