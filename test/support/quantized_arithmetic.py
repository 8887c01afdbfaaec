"""Compares a quantised network after the phase `quantization` with onnxruntime, number by number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx_models import run_onnxruntime

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import run_phases

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def differences(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[tuple[int, int]]:
    """For each output how many numbers differ, and the largest difference."""
    ctx = RtContext()
    module = import_model(model, ctx)
    run_phases(module, ctx, last="quantization")
    found = interpret(module, ctx, feeds).values()
    return [difference(got, want) for got, want in zip(found, run_onnxruntime(model, feeds), strict=True)]


def difference(got: Array, want: Array) -> tuple[int, int]:
    """How many integers differ, and the largest difference; both tensors have one type and shape."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    distance = np.abs(got.astype(np.int64) - want.astype(np.int64))
    return int(np.count_nonzero(distance)), int(distance.max(initial=0))
