"""The machine code of random products and convolutions, and of models: does it wait for what it starts? Needs no GPU.

`python bench/gpu_machine_code.py [--count N] [--seed N] [--elements LIST] [--every-tactic PART]
                                  [--models FOLDER|FILE ..] [--precision LIST]
                                  [--jobs N] [--seconds S] [--keep FOLDER]`

Layers and models are lowered for a GPU by the estimates of their tactics' times. Their kernels that start anything
asynchronous by their source (wgmma, cp.async, copies by the device) are compiled for every architecture that they are
for, and the cubins are disassembled and followed as by `python -m mlirt.tools.check_machine_code`. For a PART of the
random layers that is done with every tactic that is offered for them, not only with the one that is chosen. For INT8
all tensors have a range that is made up: ranges change constants, and nothing is calibrated.

Prints a line for each model and a table of the kernels by family. With `--keep` the cubins are written to a folder.
The exit code is 1 where there is a violation, where a kernel cannot be compiled, and where nothing was checked.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import os
import re
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

from random_contractions import ELEMENTS, random_contraction  # noqa: E402
from worker_processes import Done, Workers  # noqa: E402

from mlirt.builder.host import cuda_target  # noqa: E402
from mlirt.builder.machine_code.check import faults_of_all  # noqa: E402
from mlirt.builder.machine_code.cubins_in_files import is_asynchronous  # noqa: E402
from mlirt.builder.model_network import imported  # noqa: E402
from mlirt.builder.numba_cuda import compile_kernels  # noqa: E402
from mlirt.builder.tactics.sites import find_sites  # noqa: E402
from mlirt.builder.tactics.trial import trials  # noqa: E402
from mlirt.codegen.numba_cuda.kernel_source import sources_of  # noqa: E402
from mlirt.codegen.numba_cuda.kernel_text import KernelSource  # noqa: E402
from mlirt.codegen.numba_cuda.vocabulary import ASYNCHRONOUS  # noqa: E402
from mlirt.dialects.context import RtContext  # noqa: E402
from mlirt.dialects.interpreter import entry_function  # noqa: E402
from mlirt.dialects.typical_sizes import typical_values  # noqa: E402
from mlirt.errors import CompileError, MlirtError  # noqa: E402
from mlirt.passes.pipeline import PipelineOptions, run_phases  # noqa: E402

_AT_ONCE = 48  # kernels that are compiled together
_WORD = re.compile(r"\w+")
_RANGE = 4.0  # of every tensor


@dataclass(frozen=True)
class Lowered:
    """The kernels of a network that start something asynchronous, how many it has in all, and why it has none."""

    sources: tuple[KernelSource, ...]
    kernels: int
    refused: str = ""


def starts(source: KernelSource) -> frozenset[str]:
    """What a kernel starts that goes on behind it, by the words of its source."""
    return ASYNCHRONOUS.intersection(_WORD.findall(source.text))


def random_sources(seed: int, elements: Sequence[str], every: bool) -> Lowered:
    """The kernels of a random layer: those that are chosen, or those of every tactic."""
    layer = random_contraction(seed, elements)
    return _lowered(layer.model, layer.precision, every)


def model_sources(path: str, precision: str) -> Lowered:
    """The kernels of a model."""
    return _lowered(path, precision, every=False)


def _lowered(model: Any, precision: str, every: bool) -> Lowered:
    warnings.simplefilter("ignore")
    context = RtContext()
    try:
        module = imported(model, context, None, {}, None)
        if "int8" in precision:
            _give_ranges(module, model)
        options = PipelineOptions("cuda", precision)
        if every:
            run_phases(module, context, last="layout", options=options)
            found = _of_every_tactic(module, context, precision)
        else:
            run_phases(module, context, options=options)
            found = list(sources_of(module).values())
    except CompileError:
        raise
    except MlirtError as error:
        return Lowered((), 0, f"{type(error).__name__}: {error}")
    return Lowered(tuple(one for one in dict.fromkeys(found) if starts(one)), len(found))


def _give_ranges(module: Any, model: Any) -> None:
    from mlirt.builder.calibration.ranges_for_build import Int8Choice, give_ranges
    from mlirt.frontend.onnx.model_reader import read_model

    proto = read_model(model).proto
    names = [value.name for value in proto.graph.input]
    names += [name for node in proto.graph.node for name in node.output if name]
    give_ranges(module, Int8Choice(None, dict.fromkeys(names, _RANGE)), _never)


def _never(_: object) -> Any:
    raise AssertionError("there is no calibrator")


def _of_every_tactic(module: Any, context: RtContext, precision: str) -> list[KernelSource]:
    target, known = cuda_target(precision), typical_values(entry_function(module).body.block)
    made: list[KernelSource] = []
    for site in find_sites(module, context, target, fewest=1):
        names = [one.name for one in site.candidates]
        made += [one for trial in trials(site.ops[0], names, context, target, known) for one in trial.sources.values()]
    return made


@dataclass
class Checked:
    """Kernels by family and what they start, their cubins, and what is wrong with them."""

    keep: Path | None
    seen: set[KernelSource] = field(default_factory=set[KernelSource])
    waiting: dict[str, KernelSource] = field(default_factory=dict[str, KernelSource])
    kernels: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter[tuple[str, str]])
    cubins: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter[tuple[str, str]])
    wrong: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter[tuple[str, str]])
    failures: list[str] = field(default_factory=list[str])

    def take(self, sources: Iterable[KernelSource]) -> None:
        """Check the kernels that are new, some time."""
        for source in sources:
            if source in self.seen:
                continue
            self.seen.add(source)
            if source.name in self.waiting:  # of another layer, with another text
                self.work_off()
            self.waiting[source.name] = source
        if len(self.waiting) >= _AT_ONCE:
            self.work_off()
            print(f"{self.kernels.total()} kernels, {self.wrong.total()} cubins with violations", flush=True)

    def work_off(self) -> None:
        """Compile and check what was taken."""
        failures: dict[str, CompileError] = {}
        made = compile_kernels(self.waiting, failures=failures)
        self.failures += [f"{name}: {error}" for name, error in failures.items()]
        codes = {(name, arch): cubin.code for name, cubins in made.items() for arch, cubin in cubins.items()}
        for (name, arch), faults in zip(codes, faults_of_all(list(codes.values())), strict=True):
            row = _family(self.waiting[name])
            self.cubins[row] += is_asynchronous(codes[name, arch])
            self.wrong[row] += bool(faults)
            for fault in faults[:4]:
                print(f"VIOLATION {arch} {fault}", flush=True)
            if self.keep is not None:
                digest = hashlib.blake2b(codes[name, arch], digest_size=4).hexdigest()
                (self.keep / f"{name}.{arch}.{digest}.cubin").write_bytes(codes[name, arch])
        self.kernels.update(_family(self.waiting[name]) for name in made)
        self.waiting.clear()

    def table(self) -> str:
        """A row for each family."""
        rows = [("family", "starts", "kernels", "cubins", "violations")]
        rows += [
            (*row, str(self.kernels[row]), str(self.cubins[row]), str(self.wrong[row])) for row in sorted(self.kernels)
        ]
        rows.append(("all", "", str(self.kernels.total()), str(self.cubins.total()), str(self.wrong.total())))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)) for row in rows)


_KINDS = {"wgmma": "warpgroup_mma", "cp.async": "copy_async", "bulk copies": "load_", "mbarriers": "mbarrier"}


def _family(source: KernelSource) -> tuple[str, str]:
    words = starts(source)
    kinds = [kind for kind, start in _KINDS.items() if any(word.startswith(start) for word in words)]
    return source.name.rpartition("_")[0], "+".join(kinds)


def _models(paths: Sequence[Path]) -> list[Path]:
    """Models of folders, the smallest files first."""
    found = [one for path in paths for one in (path.rglob("*.onnx") if path.is_dir() else [path])]
    return sorted(found, key=lambda path: (path.stat().st_size, path))


def _options(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, help="random layers (default: 200, and none with --models)")
    parser.add_argument("--seed", type=int, default=0, help="the first one's (default: %(default)s)")
    parser.add_argument("--elements", default=",".join(ELEMENTS), help="of random layers (default: %(default)s)")
    parser.add_argument("--every-tactic", type=float, default=0.1, help="part of them (default: %(default)s)")
    parser.add_argument("--models", nargs="+", type=Path, default=[], help="ONNX files, or folders of them")
    parser.add_argument("--precision", default="fp16,int8,fp32", help="of the models (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing new when so many have passed")
    parser.add_argument("--keep", type=Path, help="write the cubins to this folder")
    options = parser.parse_args(given)
    options.count = options.count if options.count is not None else 0 if options.models else 200
    return options


def _say(done: Done, checked: Checked) -> int:
    """Take the kernels of one layer or model, and say so for a model; 1 where it has none."""
    kind, name = done.key
    lowered: Lowered = done.result or Lowered((), 0, done.why)
    if lowered.refused:
        print(f"{name}: not lowered: {lowered.refused[:200]}", flush=True)
        checked.failures += [f"{name}: {done.why}"] if done.why else []
        return 1
    before, start = checked.wrong.total(), time.monotonic()
    checked.take(lowered.sources)
    if kind == "model":
        checked.work_off()
        wrong = checked.wrong.total() - before
        about = f"{lowered.kernels} kernels, {len(lowered.sources)} asynchronous, {wrong} cubins with violations"
        print(f"{name}: {about} ({time.monotonic() - start:.0f} s)", flush=True)
    return 0


def main(given: Sequence[str] | None = None) -> int:
    """Print what was checked; the exit code."""
    options, start = _options(given), time.monotonic()
    os.environ["MLIRT_JOBS"] = str(options.jobs)
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    checked, refused, ended = Checked(options.keep), 0, 0
    with Workers(max(1, options.jobs // 2)) as workers:
        for number in range(options.count):
            seed = options.seed + number
            every = int(number * options.every_tactic) != int((number + 1) * options.every_tactic)
            key = "layer", f"layer {seed}{' with every tactic' * every}"
            workers.submit(key, random_sources, seed, tuple(options.elements.split(",")), every)
        for precision in options.precision.split(",") if options.models else ():
            for path in _models(options.models):
                name = path.parent.name if path.stem == "model" else path.stem
                workers.submit(("model", f"{name} {precision}"), model_sources, str(path), precision)
        for done in workers.results(lambda: time.monotonic() - start > options.seconds):
            ended += 1
            refused += _say(done, checked)
        left = workers.left()
    checked.work_off()
    print(checked.table())
    for failure in checked.failures:
        print(f"FAILED {failure[:400]}")
    print(f"{ended - refused} networks, {refused} not lowered, {len(left)} left out, {time.monotonic() - start:.0f} s")
    return 1 if checked.wrong.total() or checked.failures or not checked.cubins.total() else 0


if __name__ == "__main__":
    sys.exit(main())
