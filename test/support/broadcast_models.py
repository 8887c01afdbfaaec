"""Networks whose inputs broadcast in some runs: each is built once and run for many shapes, in three ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import Array, run_onnxruntime

import mlirt
from mlirt.dialects.context import RtContext
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.errors import InvalidInputError
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import pipeline_for
from mlirt.passes.pipeline import run_passes

Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True)
class Built:
    """A model and its engines: kernels of the CPU, the interpreter, and kernels of a GPU in the SIMT interpreter."""

    model: onnx.ModelProto
    runs: Mapping[str, Run]

    def check(self, feeds: Mapping[str, Array], tolerance: float = 1e-4) -> None:
        """Every engine gives what onnxruntime gives."""
        (want,) = run_onnxruntime(self.model, feeds)
        for label, run in self.runs.items():
            (got,) = run(feeds).values()
            shapes = [array.shape for array in feeds.values()]
            assert (got.dtype, got.shape) == (want.dtype, want.shape), f"{label} {shapes}"
            np.testing.assert_allclose(got, want, tolerance, tolerance, err_msg=f"{label} {shapes}")

    def refuse(self, feeds: Mapping[str, Array], layer: str) -> None:
        """No engine gives a result, and each names the layer."""
        for run in self.runs.values():
            with pytest.raises(InvalidInputError, match=layer):
                run(feeds)


def build(model: onnx.ModelProto) -> Built:
    """The engines of a model."""
    ctx = RtContext()
    module = import_model(model, ctx)
    for _, specs in pipeline_for("cuda"):
        run_passes(module, ctx, ",".join(specs))
    runs: dict[str, Run] = {
        "cpu": mlirt.compile(model, "cpu").run,
        "reference": mlirt.compile(model, "reference").run,
        "simt": lambda feeds: run_plan(module, ctx, feeds),
    }
    return Built(model, runs)


def feeds_of(model: onnx.ModelProto, shapes: Sequence[Sequence[int]], seed: int = 0) -> dict[str, Array]:
    """Numbers of the types of the inputs: positive, and integers small enough for shifts."""
    random, feeds = np.random.default_rng(seed), dict[str, Array]()
    for value, shape in zip(model.graph.input, shapes, strict=True):
        kind: np.dtype[Any] = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if kind == np.bool_:
            feeds[value.name] = random.integers(0, 2, shape).astype(np.bool_)
        elif kind.kind in "iu":
            feeds[value.name] = random.integers(1, 5, shape).astype(kind)
        else:
            feeds[value.name] = random.uniform(0.5, 2, shape).astype(kind)
    return feeds
