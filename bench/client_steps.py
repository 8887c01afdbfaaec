"""The steps of bench/clients.py: commands that run in a process of their own under `python -m mlirt.as_tensorrt`."""

# The fields of protobuf messages have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

HERE = Path(__file__).resolve().parent
AS_TENSORRT = [sys.executable, "-m", "mlirt.as_tensorrt", "--version", "8.6.1"]
LOADER = """
import numpy

TYPES = {types!r}

def load_data():
    arrays = numpy.load({path!r}).items()
    yield {{name: array.astype(TYPES.get(array.dtype.name, array.dtype)) for name, array in arrays}}
"""
OUT_OF_TIME = "no time was left"
NARROW = {"int64": "int32", "float64": "float32"}
"""The types that a network of version 8 has for those of a model, which Polygraphy's calibrator wants of its data."""


@dataclass
class Step:
    """One command; it passes where it exits with 0 and has written all `files`, which are not empty."""

    kind: str
    name: str
    command: list[str]
    out: Path
    files: tuple[Path, ...] = ()
    outcome: str = "not run"

    @property
    def log(self) -> Path:
        return self.out / f"{self.name}.{self.kind.replace(' ', '_')}.log"

    def run(self, seconds: float) -> None:
        """Run the command for at most `seconds`; what it prints is in the log."""
        for path in self.files:
            path.unlink(missing_ok=True)
        with self.log.open("w") as log:
            process = subprocess.Popen(
                self.command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, cwd=self.out
            )
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                status = process.wait()
                log.write(f"{OUT_OF_TIME}\n")
        written = all(path.exists() and path.stat().st_size for path in self.files)
        self.outcome = "passed" if status == 0 and written else "failed"
        (self.log.with_suffix(".outcome")).write_text(self.outcome)

    def read_again(self) -> Step:
        """The outcome that is in the folder, for a step that was made anew."""
        path = self.log.with_suffix(".outcome")
        if self.outcome == "not run" and self.kind == "calls" and path.exists():
            self.outcome = path.read_text()
        return self

    def line(self) -> str:
        return f"{self.outcome:<8} {self.kind:<28} {self.name}"

    def _result(self) -> dict[str, dict[str, int]]:
        lines = self.log.read_text(errors="replace").splitlines() if self.outcome != "not run" else []
        found = [json.loads(line) for line in lines if line.startswith('{"counts"')]
        return found[-1] if found else {}

    def counts(self) -> dict[str, int]:
        """How many cases passed and failed: one, or what the program counted itself."""
        return self._result().get("counts", {self.outcome: 1})

    def notes(self) -> list[str]:
        """What the program has to say in the table."""
        return [f"{key} {value}" for key, value in self._result().get("notes", {}).items()]

    def reason(self) -> str:
        """The line of the log that says why."""
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if "[!]" in line or "Error:" in line or "[E]" in line]
        errors += [line for line in lines[-1:] if line == OUT_OF_TIME]
        return (errors or lines or ["nothing was printed"])[-1].strip()[:300]


def model_steps(folder: Path, out: Path, parts: set[str], level: int | None) -> list[Step]:
    """The commands for one model, in the order in which they need one another's files; builds have an optimization
    level where one is given.
    """
    name, model = folder.name, str(folder / "model.onnx")
    plan, converted = out / f"{name}.plan", out / f"{name}.converted.plan"
    cache, tactics, ranges = out / f"{name}.timing", out / f"{name}.tactics.json", out / f"{name}.ranges"
    (data, narrow), profile = _data(folder, out)
    polygraphy = [*AS_TENSORRT, os.environ["POLYGRAPHY_COMMAND"]]

    def step(kind: str, *arguments: str, files: tuple[Path, ...] = ()) -> Step:
        return Step(kind, name, [*polygraphy, *arguments], out, files)

    is_quantized = _quantizes(onnx.load(str(folder / "model.onnx"), load_external_data=False).graph)
    profile = [*profile, *(["--int8"] if is_quantized else [])]  # whose scales count, so that nothing is calibrated
    profile += [] if level is None else ["--builder-optimization-level", str(level)]
    compared = ["--trt", "--onnxrt", "--atol", "1e-3", "--rtol", "1e-3", *data, *profile]
    kept = ["--save-engine", str(plan), "--save-timing-cache", str(cache), "--save-tactics", str(tactics)]
    replayed = ["--load-timing-cache", str(cache), "--load-tactics", str(tactics)]
    calibrated = ["--trt", "--int8", "--calibration-cache", str(ranges), *narrow, *profile]
    steps = [step("run", "run", model, *compared, *kept, files=(plan, cache, tactics))]
    if "polygraphy" in parts:
        again = [
            "debug",
            "build",
            model,
            "--until",
            "2",
            *data[:0],
            *profile,
            "--artifacts-dir",
            str(out / f"{name}.debug"),
        ]
        steps += [
            step("inspect model", "inspect", "model", str(plan), "--model-type", "engine", "--show", "layers"),
            step("run, tactics replayed", "run", model, *compared, *replayed),
            step("run --int8", "run", model, *calibrated, files=() if is_quantized else (ranges,)),
            step("convert", "convert", model, *profile, "-o", str(converted), files=(converted,)),
            step("debug build", *again, "--check", "true"),
        ]
    if "trex" in parts:
        steps.insert(1, Step("trex", name, [*AS_TENSORRT, str(HERE / "client_trex.py"), str(plan)], out))
    return steps


def _quantizes(graph: onnx.GraphProto) -> bool:
    """Whether a model has quantize layers, with which a network is built for INT8 alone."""
    return any(node.op_type in ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear") for node in graph.node)


def _data(folder: Path, out: Path) -> tuple[tuple[list[str], list[str]], list[str]]:
    """Polygraphy's flags for the inputs of a model and for those of its network, and for the profile of those inputs
    whose shapes are dynamic.
    """
    inputs = folder / "inputs.npz"
    if not inputs.exists():
        return ([], []), []
    loaders = [
        _loader(out / f"{folder.name}{word}_loader.py", inputs, types)
        for word, types in (("", {}), ("_narrow", NARROW))
    ]
    with np.load(inputs) as arrays:
        shapes = {name: array.shape for name, array in arrays.items()}
    graph = onnx.load(str(folder / "model.onnx"), load_external_data=False).graph
    dynamic = [
        value.name
        for value in graph.input
        if value.name in shapes and not all(d.HasField("dim_value") for d in value.type.tensor_type.shape.dim)
    ]
    words = [f"{name}:[{','.join(map(str, shapes[name]))}]" for name in dynamic]
    profile = [w for which in ("min", "opt", "max") for w in (f"--trt-{which}-shapes", *words)] if words else []
    return (loaders[0], loaders[1]), profile


def _loader(script: Path, inputs: Path, types: dict[str, str]) -> list[str]:
    script.write_text(LOADER.format(path=str(inputs), types=types))
    return ["--data-loader-script", str(script)]


def onnx_steps(out: Path, parts: int, data: Path | None) -> list[list[Step]]:
    """The test cases of `onnx`, of the installed package or in a folder, divided among processes."""
    program = [*AS_TENSORRT, str(HERE / "client_onnx_cases.py")]
    folder = [str(data.resolve())] if data else []
    return [[Step("onnx cases", f"part{k}", [*program, str(k), str(parts), *folder], out)] for k in range(parts)]


def calls_steps(out: Path) -> list[Step]:
    """The start of a program and the time of a call."""
    return [Step("calls", "calls", [*AS_TENSORRT, str(HERE / "client_calls.py")], out)]
