"""The sessions in which onnxruntime runs models on the CPU, as the peer of benchmarks and fuzzers."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import onnx


def cpu_session(
    model: onnx.ModelProto | bytes | str | Path,
    *,
    threads: int = 0,
    level: str = "ORT_ENABLE_ALL",
    optimized_path: Path | None = None,
) -> Any:
    """A silent session whose int8 products are exact on each processor.

    On x86 processors without VNNI, products of unsigned activations and signed weights are added in pairs that
    saturate at 16 bits. The option `session.x64quantprecision` makes constant weights unsigned instead; this is an
    optimization of the extended level, so that lower levels still saturate there.

    `model` is a network, its bytes or its path; `threads` run an operator, as many as onnxruntime likes if 0; `level`
    is the name of a GraphOptimizationLevel. The optimized model is written to `optimized_path`. Raises what
    onnxruntime raises for a model that it refuses.
    """
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
    if threads:
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    if optimized_path is not None:
        options.optimized_model_filepath = str(optimized_path)
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    content = str(source) if isinstance(source, Path) else source
    return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
