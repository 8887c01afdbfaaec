"""Says what became of each quantisation of a network."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.dialects.quantization_notes import set_notes
from mlirt.dialects.regions import tensor_blocks
from mlirt.passes.quantization.outcomes import outcomes


@dataclass(frozen=True)
class ExplainQuantizationPass(ModulePass):
    """Note for each layer around which the network quantises whether it computes with integers, and if not, why.

    The notes are the module's attribute `trt.quantization`, from which `rt-opt --print-quantization-report`, the
    engine's layers and the inspector take them. Nothing else changes.

    Before:

        builtin.module {
          %a = trt.dequantize %q, %s : ...
          %y = trt.convolution %a, %w : ...

    After:

        builtin.module attributes {trt.quantization = [["conv1", "stays f32: its weights are not dequantised .."]]} {
          %a = trt.dequantize %q, %s : ...
          %y = trt.convolution %a, %w : ...
    """

    name = "explain-quantization"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        notes: dict[str, str] = {}
        for block in tensor_blocks(op):
            for name, outcome in outcomes(block, ctx):
                notes[name] = f"{notes[name]}; {outcome}" if name in notes and outcome not in notes[name] else outcome
        set_notes(op, notes)
