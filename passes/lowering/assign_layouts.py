"""Blocked channels for vector units: convolutions and what lies between them work on `[n, c / b, h, w, b]` tensors."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from mlirt.dialects.context import weights_of
from mlirt.errors import InvalidInputError
from mlirt.passes.lowering.layouts.assignment import Assignment


@dataclass(frozen=True)
class AssignLayoutsPass(ModulePass):
    """Give convolutions, poolings and the elementwise work between them blocked tensors, and convert at the borders.

    `lanes` is the number of channels in a block: the float32 lanes of the target's vectors. A tensor that convolutions
    with padding read gets a halo of zero cells, so that no window leaves its memory. Only the target `cpu` has blocks.

    Before:

        %y = fused.convolution %x, %k {pre_padding = array<i64: 1, 1>, ..}
             : (tensor<1x32x8x8xf32>, ..) -> tensor<1x32x8x8xf32>

    After:

        %0 = fused.reformat %x : (tensor<1x32x8x8xf32>)
             -> tensor<1x2x8x8x16xf32, #trt.dims<[..], channels = "32", halo = [1, 1]>>
        %1 = fused.convolution %0, %k {..} : (..) -> tensor<1x2x8x8x16xf32, #trt.dims<[..], channels = "32">>
        %y = fused.reformat %1 : (..) -> tensor<1x32x8x8xf32>
    """

    name = "assign-layouts"

    target: str = "cpu"
    lanes: int = 16

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.target != "cpu":
            return
        if self.lanes not in (4, 8, 16):
            raise InvalidInputError(f"assign-layouts: lanes is 4, 8 or 16, not {self.lanes}")
        for function in op.body.block.ops:
            if isinstance(function, FuncOp) and not function.is_declaration:
                Assignment(weights_of(ctx), self.lanes).run(function.body.block)
