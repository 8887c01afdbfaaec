"""The part `counts` of bench/growth.py: how often a build calls each function, by the number of nodes.

Counts are the same on every machine, however busy it is, so that a small network shows what will hurt in a large one: a
function that is called more often than the nodes grow does work that it has done before. No kernel is compiled.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import onnx
from growth_fit import exponent, numbers
from growth_networks import KINDS

Calls = Mapping[str, int]
_MIN_CALLS = 2000
_SHOWN = 1.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kinds", default=",".join(KINDS), help="default: %(default)s")
    parser.add_argument("--nodes", type=numbers, default=[60, 240], help="two sizes; default: 60,240")
    parser.add_argument("--target", choices=["cpu", "cuda"], default="cpu")


def run(arguments: argparse.Namespace) -> None:
    for kind in arguments.kinds.split(","):
        small, large = min(arguments.nodes), max(arguments.nodes)
        found = {nodes: calls_of_build(KINDS[kind](nodes), arguments.target) for nodes in (small, large)}
        total = exponent([small, large], [sum(calls.values()) for calls in found.values()])
        print(f"{kind}, {arguments.target}, {small} / {large} nodes: all calls k {total:.2f}")
        for name, k in sorted(growing(found, _SHOWN).items(), key=lambda one: -one[1]):
            print(f"  {name:90s} {found[small][name]:8d} / {found[large][name]:8d}  k {k:.2f}")
        sys.stdout.flush()


def growing(found: Mapping[int, Calls], least: float, few: int = _MIN_CALLS) -> dict[str, float]:
    """The exponent of each function that is called more than a few times, and grows with at least this exponent."""
    small, large = min(found), max(found)
    fits = {
        name: exponent([small, large], [found[small][name], count])
        for name, count in found[large].items()
        if count > few and name in found[small]
    }
    return {name: k for name, k in fits.items() if k >= least}


def calls_of_build(model: onnx.ModelProto, target: str) -> Calls:
    """How often importing and building a model calls each function, by its file and name."""
    from mlirt.builder.build import build_plan
    from mlirt.builder.model_network import imported
    from mlirt.dialects.context import RtContext

    profile = cProfile.Profile()
    with _without_compilers(), mock.patch.dict("os.environ", MLIRT_CACHE="off"):
        profile.enable()
        ctx = RtContext()
        build_plan(imported(model, ctx, {}, {}, None), ctx, target)
        profile.disable()
    found: dict[str, int] = {}
    stats: Mapping[tuple[str, int, str], tuple[int, ...]] = getattr(pstats.Stats(profile), "stats")
    for (file, _, name), (_, count, *_) in stats.items():
        if file == "<string>":  # the methods of all dataclasses, which cannot be told apart
            continue
        label = f"{'/'.join(file.split('/')[-3:])} {name}"
        found[label] = found.get(label, 0) + count
    return found


@contextmanager
def _without_compilers() -> Generator[None]:
    """Builds have no machine code in their plans, which nobody will run."""
    from mlirt.builder.cubin import Cubin

    def objects(sources: Mapping[str, str], *_: Any) -> dict[str, bytes]:
        return dict.fromkeys(sources, b"none")

    def cubins(sources: Mapping[str, Any], *_: Any) -> dict[str, dict[str, Cubin]]:
        return {name: {"sm_90a": Cubin(b"none", 1, 0)} for name in sources}

    cpu = mock.patch("mlirt.builder.numba_cpu.compile_kernels", objects)
    cuda = mock.patch("mlirt.builder.numba_cuda.compile_kernels", cubins)
    with cpu, cuda:
        yield
