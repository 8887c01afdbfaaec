"""Prepares networks of the zoo in processes without a device: models, inputs, modules, plans in a folder each."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import io
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gpu_zoo_networks import Network, find_network
from tactic_rotation import Rotation

Array = np.ndarray[Any, np.dtype[Any]]

OFFERED = ("fp16", "bf16", "tf32", "fp32", "int8")
"""Precisions that may be asked for; those that the compiler lacks are said to be missing."""

EVERY = "every"


@dataclass(frozen=True)
class Case:
    """A network at a precision for a target; tactics by `estimates`, `measured`, or each layer's N-th: `every.N`."""

    network: str
    precision: str
    tactics: str = "estimates"
    target: str = "cuda"

    @property
    def name(self) -> str:
        return f"{self.network} {self.precision} {self.tactics}"

    @property
    def variant(self) -> int | None:
        """Which of the offered tactics each layer takes; None where that is left to the compiler."""
        kind, _, number = self.tactics.partition(".")
        return int(number) if kind == EVERY else None

    def plan(self, folder: Path) -> Path:
        return folder / self.network / f"{self.precision}.{self.tactics}.{self.target}.plan"

    def rotation(self, folder: Path) -> Path:
        """Where the tactics stand that are offered for the layers."""
        return folder / self.network / f"{self.precision}.offered.json"


def prepare(network: Network, folder: Path) -> None:
    """Write model.onnx, inputs.npz and, for a module, module.pt, unless they are there."""
    own = folder / network.name
    if (own / "inputs.npz").exists():
        return
    own.mkdir(parents=True, exist_ok=True)
    made = network.made()
    if made.model is not None:
        (own / "model.onnx").write_bytes(made.model.SerializeToString())
    else:
        import torch

        torch.save(made.module, own / "module.pt")
        _export(made.module, made.inputs, own / "model.onnx")
    np.savez(own / "new.npz", allow_pickle=False, **made.inputs)
    (own / "new.npz").rename(own / "inputs.npz")  # last: it says that all is there


def _export(module: Any, inputs: dict[str, Array], path: Path) -> None:
    import torch

    arguments = tuple(torch.from_numpy(array) for array in inputs.values())
    with contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
        program: Any = torch.onnx.export(module, arguments, input_names=list(inputs), dynamo=True, verbose=False)
    program.save(str(path))


def feeds_of(network: str, folder: Path) -> dict[str, Array]:
    """The inputs of a prepared network."""
    with np.load(folder / network / "inputs.npz") as data:
        return {name: data[name] for name in data.files}


def build(case: Case, folder: Path) -> str:
    """Build the plan of a prepared network unless it is there; what the compiler warned of."""
    path = case.plan(folder)
    if path.exists():
        return ""
    model, feeds = folder / case.network / "model.onnx", feeds_of(case.network, folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if case.precision == "int8":
            _build_int8(case, model, feeds, path, folder)
        else:
            _save(model, case, path, folder)
    return "; ".join(str(one.message) for one in caught if "mlirt" in str(one.filename))


def _save(model: Path, case: Case, path: Path, folder: Path, calibration: Any = None) -> None:
    """Build as `mlirt.compile` does, for one architecture alone, and write the plan; needs no device."""
    from mlirt.builder.build import BuildOptions, build_plan
    from mlirt.builder.calibration.ranges_for_build import Int8Choice, prepare_int8
    from mlirt.builder.host import cuda_target
    from mlirt.builder.tactics.tuning import tuning
    from mlirt.builder.usual_sizes import name_usual_sizes
    from mlirt.dialects.context import RtContext
    from mlirt.frontend.onnx.importer import import_model

    context = RtContext()
    module = import_model(model, context, {}, None)
    if case.precision == "int8":
        prepare_int8(module, context, case.target, Int8Choice(calibration, {}), {}, None)
    name_usual_sizes(module, {})
    with tuning(heuristic=case.tactics != "measured") as choice:
        if case.variant is not None:
            choice.replay = _rotation(module, context, case, folder).tactics(case.variant)
        options = BuildOptions(case.precision, name=case.network, tuning=choice, architectures=[cuda_target().arch])
        plan = build_plan(module, context, case.target, options)
    plan.save(path.with_suffix(".new"))
    path.with_suffix(".new").rename(path)


def _rotation(module: Any, context: Any, case: Case, folder: Path) -> Rotation:
    """The tactics of a network's layers: build 0 looks for them, the others read what it found."""
    from mlirt.builder.host import cuda_target

    path = case.rotation(folder)
    if case.variant == 0:
        Rotation.of(module, context, cuda_target(case.precision), case.precision).save(path)
    return Rotation.load(path)


def _build_int8(case: Case, model: Path, feeds: dict[str, Array], path: Path, folder: Path) -> None:
    """An int8 plan from a calibration on the inputs; what the reference makes of the same network beside it."""
    import mlirt

    calibration = mlirt.calibrate(model, [feeds])
    expected = path.with_name("int8.expected.npz")
    if not expected.exists():
        outputs = mlirt.compile(model, "reference", "int8", calibration=calibration).run(feeds)
        np.savez(expected, allow_pickle=False, **dict(outputs))
    _save(model, case, path, folder, calibration)


def job(case: Case, folder: Path) -> dict[str, Any]:
    """Prepare and build; seconds of both, and warnings."""
    network = find_network(case.network)
    if network.family != "random":
        import torch

        torch.set_num_threads(1)
        warnings.simplefilter("ignore")
    start = time.perf_counter()
    prepare(network, folder)
    between = time.perf_counter()
    warned = build(case, folder)
    sys.stdout.flush()
    seconds = {"export s": round(between - start, 1), "build s": round(time.perf_counter() - between, 1)}
    tactics = {} if case.variant is None else Rotation.load(case.rotation(folder)).record(case.variant)
    return seconds | tactics | {"warned": warned}
