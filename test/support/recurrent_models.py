"""ONNX models of one recurrent layer with every option that one test can reach, and their way to CUDA kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx_models import Array, numbers, one_node
from xdsl.dialects.builtin import ModuleOp, StringAttr

from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.rnn import RnnOp
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, WIDTH, HIDDEN = 5, 3, 2, 4


def recurrent_model(
    op_type: str,
    direction: str = "forward",
    *,
    lengths: bool = False,
    peepholes: bool = False,
    hidden: int = HIDDEN,
    batch: int = BATCH,
    element: str = "float32",
    stored: bool = True,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A layer with biases and initial states, and its feeds; the weights are `stored` in the model, or inputs."""
    directions = 2 if direction == "bidirectional" else 1
    rows, is_lstm = GATES[op_type] * hidden, op_type == "LSTM"
    arrays: list[Array | None] = [
        numbers(STEPS, batch, WIDTH),
        numbers(directions, rows, WIDTH, seed=1),
        numbers(directions, rows, hidden, seed=2) * np.sqrt(HIDDEN / hidden),
        numbers(directions, 2 * rows, seed=3),
        np.resize(np.array([5, 2, 4], np.int32), batch) if lengths else None,
        numbers(directions, batch, hidden, seed=4),
    ]
    if is_lstm:
        arrays += [numbers(directions, batch, hidden, seed=5)]
        arrays += [numbers(directions, 3 * hidden, seed=6)] if peepholes else []
    typed = [array if array is None or array.dtype == np.int32 else array.astype(element) for array in arrays]
    attributes |= {"hidden_size": hidden, "direction": direction}
    kept = [k for k in (1, 2, 3, 7) if k < len(arrays) and stored]
    return one_node(op_type, typed, 14, kept, outputs=3 if is_lstm else 2, **attributes)


def with_any_batch(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same layer for a number of sequences that the run tells."""
    axes = {"in0": 1, "in4": 0, "in5": 1, "in6": 1}
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[axes[value.name]].dim_param = "n"
    return model


def quantized_recurrent_model(
    element: str = "int8",
    direction: str = "bidirectional",
    *,
    hidden: int = 20,
    batch: int = 1,
    each: bool = False,
    **options: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A DynamicQuantizeLSTM whose weights have one scale for all, or one for `each` of their columns."""
    rng = np.random.default_rng(7)
    directions, values = 2 if direction == "bidirectional" else 1, np.iinfo(element)
    columns = (4 * hidden,) if each else ()

    def weights(depth: int) -> list[Array]:
        stored = rng.integers(values.min, values.max + 1, (directions, depth, 4 * hidden)).astype(element)
        zero = np.full((directions, *columns), 0 if element == "int8" else 120, element)
        return [stored, np.asarray(rng.uniform(0.001, 0.002, (directions, *columns)), np.float32), zero]

    (w, w_scale, w_zero), (r, r_scale, r_zero) = weights(WIDTH), weights(hidden)
    bias, x = numbers(directions, 8 * hidden, seed=3), numbers(4 * STEPS, batch, WIDTH)
    arrays = [x, w, r, bias, None, None, None, None, w_scale, w_zero, r_scale, r_zero]
    kept = [1, 2, 3, 8, 9, 10, 11]
    attributes = {"hidden_size": hidden, "direction": direction, **options}
    return one_node("DynamicQuantizeLSTM", arrays, 17, kept, outputs=3, domain="com.microsoft", **attributes)


def fused_recurrent(model: onnx.ModelProto) -> tuple[ModuleOp, RtContext]:
    """The fused ops of a network for a GPU; one in half precision stays so."""
    context = RtContext()
    module = import_model(model, context)
    is_half = any(one.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16 for one in model.graph.input)
    run_phases(module, context, last="layout", options=PipelineOptions("cuda", "fp16" if is_half else "fp32"))
    return module, context


def lower_recurrent(model: onnx.ModelProto, tactic: str = "") -> tuple[ModuleOp, RtContext]:
    """The kernels of a network for a GPU, its recurrent layers by a given tactic."""
    module, context = fused_recurrent(model)
    for op in module.walk():
        if isinstance(op, RnnOp) and tactic:
            op.attributes["fused.tactic"] = StringAttr(tactic)
    run_phases(module, context, first="lowering", options=PipelineOptions("cuda"))
    return module, context
