"""Layers that move more than they compute, on a GPU: which part of the speed of a copy each family reaches.

    python bench/gpu_bandwidth.py [--only pool,sum] [--json FILE]

Each layer alone through the compiler, with its fastest tactic, on tensors that no cache holds. What it must move is
what it reads and writes, each byte once; the peer is PyTorch's copy of as many bytes in the same run. Prints the ratio:
1 is as fast as a copy. Layers marked `last` stand between convolutions, so that their channels are innermost.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

from gpu_bandwidth_cases import CASES, LAYER, Case  # noqa: E402
from gpu_timing import Stopwatch  # noqa: E402
from xdsl.dialects.builtin import ModuleOp  # noqa: E402
from xdsl.ir import Operation, SSAValue  # noqa: E402

from mlirt.builder.host import cuda_target  # noqa: E402
from mlirt.builder.tactics.measurement import times_of  # noqa: E402
from mlirt.builder.tactics.selection import CALLS  # noqa: E402
from mlirt.builder.tactics.sites import Site, find_sites  # noqa: E402
from mlirt.builder.tactics.timing_cache import TimingCache, times_of_those_right  # noqa: E402
from mlirt.builder.tactics.tuning import device_timer  # noqa: E402
from mlirt.dialects.context import RtContext  # noqa: E402
from mlirt.dialects.fused.pointwise import PointwiseOp  # noqa: E402
from mlirt.dialects.interpreter import entry_function  # noqa: E402
from mlirt.dialects.locations import names  # noqa: E402
from mlirt.dialects.tensor_types import byte_width, element_count, element_of, stored_bytes  # noqa: E402
from mlirt.dialects.trt.constant import ConstantOp  # noqa: E402
from mlirt.frontend.onnx.importer import import_model  # noqa: E402
from mlirt.passes.pipeline import PipelineOptions, run_phases  # noqa: E402

_ROUNDS = 7


@dataclass(frozen=True)
class Work:
    """A layer: its launches, and the bytes that it reads and writes."""

    sites: Sequence[Site]
    bytes: int


def work_of(case: Case, context: RtContext) -> Work:
    """The launches of the layer in its network."""
    target = cuda_target()
    module = import_model(case.model(), context, {}, None)
    run_phases(module, context, last="layout", options=PipelineOptions("cuda", case.precision))
    own = _layer(module)
    sites = [site for site in find_sites(module, context, target, fewest=1) if site.ops[0] in own]
    return Work(sites, _moved(own))


def _layer(module: ModuleOp) -> list[Operation]:
    return [
        op
        for op in entry_function(module).body.block.ops
        if LAYER in names(op.location) and not isinstance(op, ConstantOp)
    ]


def _moved(own: Sequence[Operation]) -> int:
    """Bytes of what comes from elsewhere and of what goes there."""
    read = {(value, _read_by(op, value)) for op in own for value in op.operands if value.owner not in own}
    written = {value for op in own for value in op.results if any(use.operation not in own for use in value.uses)}
    return sum(size for _, size in read) + sum(_bytes(value) for value in written)


def _read_by(op: Operation, value: SSAValue) -> int:
    """Bytes of an operand that an op reads: of a slice no more than the result has elements."""
    size = _bytes(value)
    if not isinstance(op, PointwiseOp):
        return size
    elements = element_count(op.results[0].type)
    assert isinstance(elements, int)
    return min(size, elements * byte_width(element_of(value.type)))


def _bytes(value: SSAValue) -> int:
    size = stored_bytes(value.type)
    assert isinstance(size, int)
    return size


@cache
def copy_time(bytes_: int) -> float:
    """Microseconds of PyTorch's copy that reads and writes so many bytes together."""
    import torch

    stream = torch.cuda.Stream()
    watch = Stopwatch(stream.cuda_stream)
    with torch.cuda.stream(stream):
        one = torch.randn(bytes_ // 8, device="cuda")
        other = torch.empty_like(one)
        return 1e3 * watch.in_turns({"copy": lambda: other.copy_(one)}, _ROUNDS)["copy"]


def measured(cases: Sequence[Case], show: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row for each layer."""
    timer = device_timer(_ROUNDS)
    if timer is None:
        raise SystemExit("this machine has no CUDA device")
    context = RtContext()
    works = [work_of(case, context) for case in cases]
    sites = [site for work in works for site in work.sites]
    times = iter(times_of(sites, context, cuda_target(), {}, timer, TimingCache(), _silent, CALLS, cold=False))
    rows: list[dict[str, Any]] = []
    show("| layer | launches | us | GB/s | of a copy |\n|---|---|---|---|---|")
    for case, work in zip(cases, works, strict=True):
        own = [times_of_those_right(next(times)) for _ in work.sites]
        best = [min(one.values()) * len(site.ops) for one, site in zip(own, work.sites, strict=True)]
        ratio, launches = copy_time(work.bytes) / sum(best), sum(len(site.ops) for site in work.sites)
        rate = work.bytes / sum(best) / 1e3
        show(f"| {case.name} | {launches} | {sum(best):.1f} | {rate:.0f} | {ratio:.2f} |")
        rows.append({"layer": case.name, "times": own, "bytes": work.bytes, "copy": copy_time(work.bytes)})
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="what the names of the layers contain")
    parser.add_argument("--json", default="", metavar="FILE")
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name]
    cases = [case for case in CASES if not wanted or any(name in case.name for name in wanted)]
    rows = measured(cases, lambda text: print(text, flush=True))
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _silent(text: str, done: int, total: int) -> None:
    """Nobody watches."""


if __name__ == "__main__":
    main()
