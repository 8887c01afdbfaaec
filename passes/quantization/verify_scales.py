"""Checks that integers are read with the scale with which they were made."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.diagnostics import OperationError
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_types import element_of, is_float
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.passes.quantization.commuting_layers import movement_of, sources_of
from mlirt.passes.quantization.scalings import Scaling, scaling_of


@dataclass(frozen=True)
class VerifyScalesPass(ModulePass):
    """Follow each quantised tensor to where it is joined, compared or dequantised; raise where scales differ there.

    A type says nothing about scales: layers of integers are exact integer arithmetic, whatever the integers stand for,
    and what they stand for may be known to the run alone. So the scale lives at the two ends, in `trt.quantize` and
    `trt.dequantize`, and this pass compares the ends. A scale of 1 says nothing: it also stands behind products, whose
    factor has taken the scale of the result. A network may misread integers on purpose, so no phase has this check.

    Before:

        %q = trt.quantize %x, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
        %y = trt.dequantize %q, %quarter : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>

    After: `error: 'trt.dequantize' op integers made with scale 0.5 .. meet those with scale 0.25 ..`
    """

    name = "verify-scales"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            _check(block, ctx)


def _check(block: Block, ctx: Context) -> None:
    known: dict[SSAValue, Scaling] = {}
    for op in block.ops:
        if isinstance(op, QuantizeOp):
            made = scaling_of(op, ctx)
            if isinstance(made, Scaling) and made.axis is None and made.scale != 1:
                known[op.output] = made
        elif isinstance(op, DequantizeOp):
            read = scaling_of(op, ctx)
            if isinstance(read, Scaling) and op.input in known:
                _require_equal(op, known[op.input], read)
        else:
            _follow(op, known)


def _follow(op: Operation, known: dict[SSAValue, Scaling]) -> None:
    """The result of a layer that moves or compares integers has the scale of all that it is made of."""
    movement = movement_of(op)
    if movement is None or is_float(element_of(op.results[0].type)):
        return
    sources = sources_of(op, movement)
    found = [known[source] for source in sources if source in known]
    for other in found[1:]:
        _require_equal(op, found[0], other)
    if len(found) == len(sources):
        known[op.results[0]] = found[0]


def _require_equal(op: Operation, one: Scaling, other: Scaling) -> None:
    if not one.equals(other):
        raise OperationError(op, f"integers made with {_text(one)} meet those with {_text(other)}")


def _text(scaling: Scaling) -> str:
    if scaling.axis is not None:
        return f"a scale per slice of axis {scaling.axis}"
    return f"scale {float(scaling.scale):.6g} and zero point {int(scaling.zero)}"
