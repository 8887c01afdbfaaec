"""Where the host's time goes in a call of `torch.compile(backend="mlirt")`: TorchDynamo, weights, the engine.

    python bench/torch_call_parts.py --network mobilenet_v2
    python bench/torch_call_parts.py --network mobilenet_v2 --target cuda --half

Microseconds of the processor that this thread has used, the least of `--rounds` rounds of `--calls` calls. On a GPU
that is the time until a call has been queued. Rows:

call        the compiled module
guards      what TorchDynamo does before it calls the back end: the call less the graph
graph       all that mlirt does
weights     whether weights are still those that were built in
run         the engine with PyTorch's tensors
own         the graph with the engine's result at hand
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch_wrapped_modules import with_operators

from mlirt.builder.from_torch import dynamo_backend, graph_engines


def noted_instances(kind: Any) -> list[Any]:
    """The instances of a class that are made from now on."""
    found: list[Any] = []
    first = kind.__init__

    def noted(self: Any, *args: Any) -> None:
        first(self, *args)
        found.append(self)

    kind.__init__ = noted
    return found


def last_arguments(kind: Any) -> list[tuple[Any, ...]]:
    """The arguments of the last call of a class's instances, in a list of one."""
    found: list[tuple[Any, ...]] = []
    first = kind.__call__

    def noted(self: Any, *args: Any) -> Any:
        found[:] = [args]
        return first(self, *args)

    kind.__call__ = noted
    return found


def microseconds(call: Callable[[], Any], calls: int, rounds: int) -> float:
    """The least of the rounds."""
    found: list[float] = []
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(calls):
            call()
        found.append((time.thread_time() - start) / calls * 1e6)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    return min(found)


def main() -> None:
    """The command."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--network", default="mobilenet_v2", help="of torchvision")
    flags.add_argument("--target", default="cpu", choices=("cpu", "cuda"))
    flags.add_argument("--half", action="store_true")
    flags.add_argument("--image", type=int, default=32)
    flags.add_argument("--calls", type=int, default=20)
    flags.add_argument("--rounds", type=int, default=15)
    given = flags.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with_operators()
    import torchvision

    module: Any = getattr(torchvision.models, given.network)().eval().to(given.target)
    x = torch.randn(1, 3, given.image, given.image, device=given.target)
    module, x = (module.half(), x.half()) if given.half else (module, x)
    parts, graphs = noted_instances(graph_engines.PartEngine), noted_instances(dynamo_backend.CompiledGraph)
    first = dynamo_backend.CompiledGraph.__call__
    arguments = last_arguments(dynamo_backend.CompiledGraph)
    options = {"target": given.target, "heuristic": True}
    compiled = torch.compile(module, backend=dynamo_backend.mlirt_backend, options=options)
    with torch.no_grad():
        for _ in range(4):  # on a GPU a CUDA graph is captured for addresses that come again
            compiled(x)
        setattr(dynamo_backend.CompiledGraph, "__call__", first)
        (graph,), (part,), args = graphs, parts, arguments[0]
        sides: dict[str, Callable[[], Any]] = {
            "call": lambda: compiled(x),
            "graph": lambda: graph(*args),
            "weights": lambda: graph._captured.weights_have_changed(args),
            "run": lambda: part.forward(x),
        }
        times = {name: microseconds(call, given.calls, given.rounds) for name, call in sides.items()}
        times["guards"] = times["call"] - times["graph"]
        result, names = part.forward(x), graph._run.__self__.__dict__
        names |= {name: lambda *_: result for name in names if name.startswith("fused_")}
        times["own"] = microseconds(sides["graph"], 10 * given.calls, given.rounds)
    print(f"{given.network}, {len(args)} arguments of the graph")
    for name, found in times.items():
        print(f"{name:8} {found:9.1f} us")


if __name__ == "__main__":
    main()
