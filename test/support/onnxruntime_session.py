"""The sessions in which tests run models by onnxruntime on the CPU."""

from __future__ import annotations

from typing import Any

import onnx
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]


def cpu_session(model: onnx.ModelProto, *, optimized: bool = True) -> Any:
    """A silent session whose int8 products are exact on each processor.

    On x86 processors without VNNI, products of unsigned activations and signed weights are added in pairs that
    saturate at 16 bits. The option makes constant weights unsigned instead; this is an optimization of the extended
    level, so that it is without effect where `optimized` is false.
    """
    runtime: Any = onnxruntime
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1")
    if not optimized:
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
