"""Dead code elimination of layers and scalar ops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.traits import Pure

from mlirt.passes.cleanup.rewriting import blocks

# xDSL does not mark every op of these as pure.
_PURE_DIALECTS = ("arith", "math")


@dataclass(frozen=True)
class DcePass(ModulePass):
    """Erase pure ops whose results nothing reads, inside scalar regions too.

    Before:

        %a = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
        %b = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
        func.return %b : tensor<4xf32>

    After:

        %b = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
        func.return %b : tensor<4xf32>
    """

    name = "dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in blocks(op):
            _sweep(block)


def _sweep(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if op.results and all(result.first_use is None for result in op.results) and _is_pure(op):
            block.erase_op(op)
        else:
            for region in op.regions:
                for inner in region.blocks:
                    _sweep(inner)


def _is_pure(op: Operation) -> bool:
    return op.has_trait(Pure) or op.dialect_name() in _PURE_DIALECTS
