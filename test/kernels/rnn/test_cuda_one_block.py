"""Small recurrent layers in one block, in the SIMT interpreter, and their way to machine code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recurrent_models import fused_recurrent, lower_recurrent, recurrent_model
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from mlirt.builder.numba_cuda import compile_kernels
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.dialects.target import Target
from mlirt.frontend.onnx.importer import import_model
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tactics.registry import candidates

ERRORS = {"float32": 1e-5, "float16": 2e-3}
LAYERS: list[tuple[str, str, dict[str, Any]]] = [
    ("LSTM", "forward", {"hidden": 64, "batch": 1}),
    ("LSTM", "bidirectional", {"hidden": 20, "lengths": True, "peepholes": True, "clip": 0.7}),
    ("LSTM", "reverse", {"hidden": 24, "batch": 4, "lengths": True}),
    ("GRU", "forward", {"hidden": 40, "linear_before_reset": 1}),
    ("GRU", "bidirectional", {"hidden": 36, "batch": 2, "lengths": True}),
    ("RNN", "reverse", {"hidden": 16, "batch": 1}),
]


def rnn_kernels(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("rnn")]


@pytest.mark.parametrize("element", ["float16", "float32"])
@pytest.mark.parametrize(("op_type", "direction", "options"), LAYERS)
def test_in_the_simt_interpreter(op_type: str, direction: str, options: dict[str, Any], element: str) -> None:
    model, feeds = recurrent_model(op_type, direction, element=element, **options)
    context = RtContext()
    expected = interpret(import_model(model, context), context, feeds)
    module, context = lower_recurrent(model, "cuda_one_block")
    assert rnn_kernels(module)
    assert not any("cooperative" in op.attributes for op in rnn_kernels(module))
    for name, found in run_plan(module, context, feeds).items():
        np.testing.assert_allclose(
            found.astype(np.float64), expected[name].astype(np.float64), rtol=0, atol=ERRORS[element]
        )


@pytest.mark.parametrize("batch", [7, 8])
def test_a_tile_full_of_sequences(batch: int) -> None:
    model, feeds = recurrent_model("LSTM", hidden=12, batch=batch, element="float16", lengths=True)
    context = RtContext()
    expected = interpret(import_model(model, context), context, feeds)
    module, context = lower_recurrent(model, "cuda_one_block")
    for name, found in run_plan(module, context, feeds).items():
        np.testing.assert_allclose(
            found.astype(np.float64), expected[name].astype(np.float64), rtol=0, atol=ERRORS["float16"]
        )


@pytest.mark.parametrize(("hidden", "element"), [(64, "float16"), (128, "float16"), (64, "float32"), (96, "float32")])
def test_becomes_cubins(hidden: int, element: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    model, _ = recurrent_model("LSTM", hidden=hidden, batch=1, element=element)
    module, _ = lower_recurrent(model, "cuda_one_block")
    sources = {name: text for name, text in sources_of(module).items() if name.startswith("rnn")}
    assert sources
    for by_architecture in compile_kernels(sources).values():
        assert all(made.spilled_bytes == 0 for made in by_architecture.values())


@pytest.mark.parametrize(
    ("hidden", "batch", "element", "is_small"),
    [
        (64, 1, "float16", True),
        (128, 1, "float16", True),
        (192, 1, "float16", False),
        (96, 1, "float32", True),
        (128, 1, "float32", False),
        (64, 4, "float32", False),
    ],
)
def test_small_layers_are_in_one_block(hidden: int, batch: int, element: str, is_small: bool) -> None:
    """Where the registers of one multiprocessor hold the weights, nothing goes through memory."""
    module, context = fused_recurrent(recurrent_model("LSTM", hidden=hidden, batch=batch, element=element)[0])
    op = next(op for op in module.walk() if isinstance(op, RnnOp))
    assert isinstance(op.parent, Block)
    found = candidates(op, Lowering(Target("cuda"), context, module, op.parent))
    assert (found[0].file == "cuda_one_block") == is_small
