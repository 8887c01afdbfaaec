"""On random networks rules leave the same IR as passes that were written by hand, down to names and places."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hand_written_passes import move_scale_before_bias, one_relu
from hypothesis import given, settings
from hypothesis import strategies as st
from rules_at_work import RulesUnderTestPass
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.xdsl_compat import module_text
from mlirt.passes.fusion.move_scale_before_bias import MoveScaleBeforeBiasPass
from mlirt.passes.rules import Rule, apply_rules, layer, op, value
from mlirt.tools.input_files import InputFile, load_text, new_context

x = value("x")
ONE_RELU = Rule(op(ActivationOp, op(ActivationOp, x, kind="relu"), kind="relu"), layer(ActivationOp, x, kind="relu"))
T = "tensor<2x2xf32>"
HEAD = f"""
func.func @main(%x: {T}) -> ({T}, {T}, {T}) {{
  %w = trt.constant {{value = dense<[[1.0, 2.0], [3.0, 4.0]]> : {T}}} : {T}
  %b = trt.constant {{value = dense<[[0.5, 1.5]]> : tensor<1x2xf32>}} : tensor<1x2xf32>
  %s = trt.constant {{value = dense<3.0> : tensor<1x1xf32>}} : tensor<1x1xf32>
"""
OPERANDS = (("%w", T), ("%b", "tensor<1x2xf32>"), ("%s", "tensor<1x1xf32>"))


@st.composite
def networks(draw: st.DrawFn) -> str:
    """Chains of matrix products, sums, products and activations; now and then one reads something else."""
    values, lines = [("%x", T)], [HEAD]
    kinds = ["relu", "relu", "tanh", "matmul", "matmul sum prod", "matmul sum prod", "sum", "prod"]
    for kind in " ".join(draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=8))).split():
        last = values[-1] if draw(st.integers(0, 7)) else draw(st.sampled_from(values))
        if kind == "matmul":
            text = f"trt.matrix_multiply {last[0]}, %w : ({T}, {T}) -> {T}"
        elif kind in ("sum", "prod"):
            usual = OPERANDS[1] if kind == "sum" else OPERANDS[2]
            other = usual if draw(st.integers(0, 4)) else draw(st.sampled_from((*values, *OPERANDS)))
            pair = (last, other) if draw(st.booleans()) else (other, last)
            text = f"trt.elementwise {kind} {pair[0][0]}, {pair[1][0]} : ({pair[0][1]}, {pair[1][1]}) -> {T}"
        else:
            text = f"trt.activation {kind} {last[0]} : ({T}) -> {T}"
        name = f"v{len(values)}"
        lines.append(f'  %{name} = {text} loc("{name}")\n')
        values.append((f"%{name}", T))
    outputs = [values[-1], draw(st.sampled_from(values[-3:])), values[0]]
    lines.append(f"  func.return {', '.join(name for name, _ in outputs)} : {T}, {T}, {T}\n}}\n")
    return "".join(lines)


def after(text: str, change: Callable[[Context, ModuleOp], object]) -> str:
    ctx = new_context()
    module, _ = load_text(ctx, text, InputFile("a.mlir"))
    change(ctx, module)
    module.verify()
    return module_text(module, debuginfo=True)


def one_relu_by_rule(ctx: Context, module: ModuleOp) -> None:
    apply_rules([ONE_RELU], RulesUnderTestPass(), ctx, module)


@pytest.mark.parametrize(
    ("by_rule", "by_hand"),
    [(one_relu_by_rule, one_relu), (MoveScaleBeforeBiasPass().apply, move_scale_before_bias)],
    ids=["one-relu", "move-scale-before-bias"],
)
@settings(max_examples=60, deadline=None)
@given(text=networks())
def test_the_same_ir(
    by_rule: Callable[[Context, ModuleOp], None], by_hand: Callable[[Context, ModuleOp], None], text: str
) -> None:
    def until_stable(ctx: Context, module: ModuleOp) -> None:
        for _ in range(8):  # by hand one sweep is made; rules look again at what has changed
            by_hand(ctx, module)

    assert after(text, by_rule) == after(text, until_stable)


def test_the_networks_have_what_rules_look_for() -> None:
    """Without it the test above compares nothing."""
    found = {"relu": 0, "scale": 0}

    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(text=networks())
    def count(text: str) -> None:
        unchanged = after(text, lambda ctx, module: None)
        found["relu"] += after(text, one_relu_by_rule) != unchanged
        found["scale"] += after(text, MoveScaleBeforeBiasPass().apply) != unchanged

    count()
    assert found["relu"] > 6
    assert found["scale"] > 6
