"""What the GPU benchmark measures: a network at one batch size and precision, its model, inputs and right answers."""

# onnxruntime has no types: what comes from it is unknown to the checker.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from cpu_peer import cpu_session
from networks import NETWORKS, inputs

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = dict[str, Array]


@dataclass(frozen=True)
class Case:
    """One line of the table; `model` is the file of a network of the corpus, None for those of networks.py."""

    network: str
    batch: int
    precision: str
    model: Path | None = None

    @property
    def name(self) -> str:
        return f"{self.network}.b{self.batch}.{self.precision}"

    @property
    def data_name(self) -> str:
        """Of what does not depend on the precision."""
        return f"{self.network}.b{self.batch}.npz"

    def proto(self) -> onnx.ModelProto:
        """The model, for this batch size."""
        return onnx.load(self.model) if self.model is not None else NETWORKS[self.network](self.batch)

    def feeds(self) -> Arrays:
        """The inputs by name: those of the benchmark, what lies beside the model in inputs.npz, or random ones."""
        if self.model is None:
            return inputs(self.network, self.batch)
        beside = self.model.with_name("inputs.npz")
        if beside.exists():
            with np.load(beside) as data:
                return {name: data[name] for name in data.files}
        graph = self.proto().graph
        known = {one.name for one in graph.initializer}
        return {one.name: _random(one) for one in graph.input if one.name not in known}


def _random(value: onnx.ValueInfoProto) -> Array:
    """An array of the type of an input; open dimensions are 1."""
    kind = value.type.tensor_type
    shape = [dim.dim_value or 1 for dim in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    random = np.random.default_rng(0)
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)


def expected(case: Case, feeds: Arrays) -> Arrays:
    """What onnxruntime makes of the inputs on the CPU in float32."""
    session = cpu_session(case.model if case.model is not None else case.proto())
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, cast("list[Array]", session.run(None, feeds)), strict=True))


def data_of(case: Case, folder: Path) -> tuple[Arrays, Arrays]:
    """Inputs and expected outputs, computed once and kept in the folder."""
    path = folder / case.data_name
    if not path.exists():
        feeds = case.feeds()
        arrays = {f"in {name}": array for name, array in feeds.items()}
        arrays |= {f"out {name}": array for name, array in expected(case, feeds).items()}
        np.savez(path, **arrays)  # pyright: ignore[reportArgumentType]
    with np.load(path) as data:
        stored = {name: data[name] for name in data.files}
    found = {name.removeprefix("in "): array for name, array in stored.items() if name.startswith("in ")}
    return found, {name.removeprefix("out "): array for name, array in stored.items() if name.startswith("out ")}


def error_of(found: Array, want: Array) -> float:
    """The largest difference over the largest value; for integers the part that differs."""
    if found.shape != want.shape:
        raise ValueError(f"shape {found.shape} instead of {want.shape}")
    if want.dtype.kind != "f":
        return float((found != want).mean())
    wide = want.astype(np.float64)
    return float(np.abs(found.astype(np.float64) - wide).max() / max(1e-6, np.abs(wide).max()))


def worst_error(found: Arrays, want: Arrays) -> float:
    """Of all outputs; not a number where one is not."""
    errors = [error_of(found[name], array) for name, array in want.items()]
    return float("nan") if any(error != error for error in errors) else max(errors)
