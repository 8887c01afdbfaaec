"""One op as a network of its own, and the text by which equal ops are known."""

from __future__ import annotations

from lowered_network import parse_module
from recurrent_models import recurrent_model

from mlirt.builder.tactics.network_of_one_op import identity, input_shapes, network_of
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.rnn import RnnOp
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases


def layers(direction: str) -> list[str]:
    model, _ = recurrent_model("LSTM", direction)
    context = RtContext()
    module = import_model(model, context)
    run_phases(module, context, last="layout", options=PipelineOptions("cuda"))
    return [identity(op, {}) for op in module.walk() if isinstance(op, RnnOp)]


def test_an_op_with_an_empty_region_has_an_identity() -> None:
    """`fused.rnn` without a reset gate."""
    (forward,), (backward,) = layers("forward"), layers("reverse")
    assert "fused.rnn" in forward
    assert layers("forward") == [forward] != [backward]


def test_symbols_that_only_the_body_mentions_are_inputs_too() -> None:
    module, _ = parse_module("""
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %y = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<8xf32>) -> tensor<8xf32> {
      ^bb0(%v: f32):
        %s = fused.size {value = "n"} : index
        fused.yield %v : f32
      }
      func.return %y : tensor<8xf32>
    }""")
    (op,) = [op for op in module.walk() if isinstance(op, PointwiseOp)]
    assert input_shapes(network_of(op, {"n": 5, "other": 7})) == [(8,), (5,)]
