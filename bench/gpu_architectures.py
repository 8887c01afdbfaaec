"""Models x architectures of GPUs: do all kernels assemble and wait for what they start, and what does each add?

    python bench/gpu_architectures.py MODEL.onnx|FOLDER .. [--gpu NAMES] [--precision fp16]

For each model its kernels are lowered for one architecture after the other and compiled, as a build of a plan for
several does, with a cache of compiled kernels that is empty at first; the machine code is disassembled and followed as
by `python -m mlirt.tools.check_machine_code`. A row has the seconds of processor time of the first architecture (and of
its lowering), and for each: `ok`, kernels, and how much of the first one's time it adds to the build; or what is wrong.
Needs no GPU. The exit code is 1 where something does not assemble, or does not wait.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src")]

from mlirt.builder.device_choice import asking  # noqa: E402
from mlirt.builder.gpu_code import check_architecture, kept_codes  # noqa: E402
from mlirt.builder.host import cuda_target  # noqa: E402
from mlirt.builder.machine_code.check import faults_of_all  # noqa: E402
from mlirt.builder.model_network import imported  # noqa: E402
from mlirt.builder.numba_cuda import compile_kernels  # noqa: E402
from mlirt.codegen.numba_cuda.kernel_source import sources_of  # noqa: E402
from mlirt.dialects.context import RtContext  # noqa: E402
from mlirt.dialects.gpu_architectures import architecture_names  # noqa: E402
from mlirt.errors import CompileError, MlirtError  # noqa: E402
from mlirt.passes.phases import TargetMachine  # noqa: E402
from mlirt.passes.pipeline import PipelineOptions, run_phases  # noqa: E402
from mlirt.runtime.garbage_collection import rare_collections  # noqa: E402


@dataclass
class Cell:
    """A model for an architecture: its kernels, what is wrong, and the seconds of processor time."""

    kernels: int = 0
    wrong: list[str] = field(default_factory=list[str])
    seconds: float = 0.0
    lowering: float = 0.0

    def text(self, first: float) -> str:
        """In words, beside what the first architecture took."""
        if self.wrong:
            return f"WRONG {len(self.wrong)}"
        return f"ok {self.kernels} {self.seconds / first:.2f}"


def spent() -> float:
    """Seconds of processor time of this process and of those that it started: of the compilers that wait, too."""
    times, ticks = os.times(), 0
    for children in Path("/proc/self/task").glob("*/children"):
        for child in children.read_text("ascii").split():
            fields = Path(f"/proc/{child}/stat").read_text("utf-8").rpartition(")")[2].split()
            ticks += sum(int(one) for one in fields[11:15])  # of itself and of those that it waited for
    return sum(times[:4]) + ticks / os.sysconf("SC_CLK_TCK")


def cell(path: Path, gpu: str, precision: str) -> Cell:
    """Lower and compile a model for an architecture, and check the code."""
    found, start = Cell(), spent()
    with asking(None, gpu=gpu):
        target, context = cuda_target(precision), RtContext()
        try:
            module = imported(str(path), context, None, {}, None)
            run_phases(module, context, options=PipelineOptions("cuda", precision, TargetMachine.of(target)))
        except MlirtError as error:
            return Cell(wrong=[f"{type(error).__name__}: {error}"])
        sources, failures = sources_of(module), dict[str, CompileError]()
        found.lowering = spent() - start
        made = compile_kernels(sources, None, kept_codes(gpu), failures)
        most = target.gpu.shared_bytes
    found.seconds, found.kernels = spent() - start, len(made)
    found.wrong = [str(error) for error in failures.values()]
    found.wrong += [f"{one.name} needs {one.shared_bytes} bytes" for one in sources.values() if one.shared_bytes > most]
    codes = [cubin.code for by_name in made.values() for name, cubin in by_name.items() if name.startswith("sm_")]
    found.wrong += [fault for faults in faults_of_all(codes) for fault in faults]
    return found


def models_in(paths: Sequence[Path]) -> list[Path]:
    """The models of folders, the smallest first."""
    found = [one for path in paths for one in (sorted(path.rglob("*.onnx")) if path.is_dir() else [path])]
    return sorted(found, key=lambda path: path.stat().st_size)


def main(given: Sequence[str] | None = None) -> int:
    """Print a row for each model, and what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--gpu", default=",".join(architecture_names()), help="architectures (default: %(default)s)")
    parser.add_argument("--precision", default="fp16")
    options = parser.parse_args(given)
    gpus = [one.strip() for one in options.gpu.split(",")]
    for one in gpus:
        check_architecture(one)
    warnings.simplefilter("ignore")
    print("model", "seconds", "lowering", *gpus, sep="\t")
    bad = 0
    for path in models_in(options.models):
        with tempfile.TemporaryDirectory() as folder, rare_collections():  # as builds have them
            os.environ["MLIRT_CACHE"] = folder
            row = [cell(path, gpu, options.precision) for gpu in gpus]
        first = row[0].seconds or 1.0
        name = path.parent.name if path.stem == "model" else path.stem
        print(name, f"{first:.1f}", f"{row[0].lowering:.1f}", *(one.text(first) for one in row), sep="\t", flush=True)
        for gpu, one in zip(gpus, row, strict=True):
            bad += len(one.wrong)
            for line in one.wrong[:3]:
                print(f"  {gpu}: {' '.join(line.split())[:300]}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
