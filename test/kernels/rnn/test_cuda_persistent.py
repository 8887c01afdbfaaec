"""Recurrent layers whose blocks exchange the hidden state, in the SIMT interpreter, and their way to machine code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recurrent_models import lower_recurrent, quantized_recurrent_model, recurrent_model, with_any_batch

from mlirt.builder.numba_cuda import compile_kernels
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.dialects.context import RtContext
from mlirt.dialects.device_files import gpu_device
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.frontend.onnx.importer import import_model
from mlirt.kernels.rnn.cuda import persistent as cuda_persistent
from mlirt.kernels.rnn.cuda.persistent_shape import shapes_for

H200 = gpu_device("h200")

ERRORS = {"float32": 1e-5, "float16": 2e-3}


def check(model: Any, feeds: dict[str, Any], element: str, choice: str = "") -> None:
    context = RtContext()
    expected = interpret(import_model(model, context), context, feeds)
    module, context = lower_recurrent(model, f"cuda_persistent:{choice}" if choice else "cuda_persistent")
    kernels = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("rnn")]
    assert kernels
    assert all("cooperative" in op.attributes for op in kernels)
    for name, found in run_plan(module, context, feeds).items():
        np.testing.assert_allclose(
            found.astype(np.float64), expected[name].astype(np.float64), rtol=0, atol=ERRORS[element]
        )


LAYERS: list[tuple[str, str, dict[str, Any]]] = [
    ("LSTM", "forward", {"hidden": 64, "batch": 1}),
    ("LSTM", "bidirectional", {"hidden": 20, "lengths": True, "peepholes": True, "clip": 0.7}),
    ("LSTM", "reverse", {"hidden": 24, "batch": 9, "lengths": True}),
    ("GRU", "forward", {"hidden": 72, "linear_before_reset": 1}),
    ("GRU", "bidirectional", {"hidden": 36, "lengths": True}),
    ("RNN", "reverse", {"hidden": 16, "batch": 17}),
]


@pytest.mark.parametrize("element", ["float16", "float32"])
@pytest.mark.parametrize(("op_type", "direction", "options"), LAYERS)
def test_in_the_simt_interpreter(op_type: str, direction: str, options: dict[str, Any], element: str) -> None:
    check(*recurrent_model(op_type, direction, element=element, **options), element)


@pytest.mark.parametrize("element", ["float16", "float32"])
@pytest.mark.parametrize(
    ("op_type", "direction", "options"),
    [
        ("LSTM", "bidirectional", {"hidden": 20, "lengths": True, "batch": 3}),
        ("GRU", "forward", {"hidden": 24, "batch": 5}),
        ("GRU", "reverse", {"hidden": 16, "batch": 1, "linear_before_reset": 1}),
    ],
)
@pytest.mark.parametrize("at_once", [1, 2, 8])
def test_sequences_in_turns(
    at_once: int, op_type: str, direction: str, options: dict[str, Any], element: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows how many there are: some are computed after the others, the last ones perhaps fewer."""
    monkeypatch.setattr(cuda_persistent, "_MAX_SEQUENCES", at_once)
    model, feeds = recurrent_model(op_type, direction, element=element, **options)
    check(with_any_batch(model), feeds, element)


def test_more_sequences_than_fit_are_computed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_persistent, "_MAX_SEQUENCES", 4)
    check(*recurrent_model("LSTM", hidden=16, batch=9, lengths=True), "float32")


@pytest.mark.parametrize("element", ["int8", "uint8"])
@pytest.mark.parametrize("options", [{"hidden": 20}, {"hidden": 72, "each": True, "direction": "forward", "batch": 3}])
def test_weights_of_integers(element: str, options: dict[str, Any]) -> None:
    """Hidden states are in steps that are made anew in each step of the layer."""
    check(*quantized_recurrent_model(element, **options), "float32")


def test_functions_are_exact_where_states_are_rounded_to_steps() -> None:
    """The last bit of a quotient can be a step."""
    for model, is_close in ((recurrent_model("LSTM", hidden=72)[0], True), (quantized_recurrent_model()[0], False)):
        sources = sources_of(lower_recurrent(model, "cuda_persistent")[0])
        texts = [source.text for name, source in sources.items() if name.startswith("rnn")]
        assert [("divide_closely(" in text, "divide(" in text) for text in texts] == [(is_close, not is_close)] * len(
            texts
        )
        assert texts


@pytest.mark.parametrize("choice", [shape.name for shape in shapes_for(4, 136, 2, half=True, device=H200)])
def test_every_shape(choice: str) -> None:
    check(*recurrent_model("LSTM", hidden=136, batch=2, element="float16"), "float16", choice)


@pytest.mark.parametrize("element", ["float16", "float32"])
def test_becomes_cubins(element: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    model, _ = recurrent_model("LSTM", hidden=512, batch=1, element=element)
    sources = {name: text for name, text in sources_of(lower_recurrent(model)[0]).items() if name.startswith("rnn")}
    for by_architecture in compile_kernels(sources).values():
        assert all(made.spilled_bytes == 0 for made in by_architecture.values())


def test_registers_hold_the_weights() -> None:
    for hidden in (64, 100, 512, 1000, 1024):
        for batch in (1, 8):
            for half in (True, False):
                assert shapes_for(4, hidden, batch, half, H200), (hidden, batch, half)


def test_more_sequences_get_more_warps() -> None:
    def best(batch: int) -> int:
        return min(
            shapes_for(4, 512, batch, half=True, device=H200), key=lambda shape: shape.microseconds(512, H200.recurrent)
        ).warps

    assert best(1) == 8
    assert best(32) == 16
