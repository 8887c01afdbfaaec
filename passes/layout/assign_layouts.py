"""Layout assignment: NCHWc, blocks of channels for vector units, on CPUs; NHWC, channels innermost, on GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from mlirt.dialects.context import weights_of
from mlirt.dialects.gpu_architectures import TENSOR_MEMORY, WARPGROUPS, has_instruction
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.target import HOPPER, TF32
from mlirt.errors import InvalidInputError
from mlirt.passes.layout.layouts.assignment import Assignment
from mlirt.passes.layout.layouts.order_assignment import OrderAssignment
from mlirt.passes.options import option


@dataclass(frozen=True)
class AssignLayoutsPass(ModulePass):
    """Give convolutions, poolings and the elementwise work between them the layout that suits the target, and convert
    at the borders.

    Target `cuda`: images may lie with their channels innermost. Every op has an estimate of its time in either order,
    and a copy from one order to the other has one; the cheapest choice for the whole network is a minimum cut. Inputs
    and outputs of the network stay plain. Copies that convolutions read have rows that are filled up to whole vectors
    of 16 bytes; with a handful of channels a convolution reads plain images. On architectures other than `sm_90a`,
    which have no warpgroups, convolutions of halves prefer plain images; those of floats prefer channels last only
    where `features` say that matrix units may read them (`tf32`). Parts of concatenations are computed in place also
    where they have other readers, and slices are read where they lie.

    Target `cpu`: blocked tensors. `lanes` is the number of channels in a block, of floats, halves and int8: the
    float32 lanes of the target's vectors. A tensor that convolutions with padding read gets a halo of cells that
    hold the padding value, so that no window leaves its memory. Bytes with fewer channels have blocks of the four
    that are multiplied at once.

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

    target: str = option("cpu", one_of=("cpu", "cuda"))
    lanes: int = option(16, at_least=1)
    arch: str = HOPPER
    features: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [one for one in op.body.block.ops if isinstance(one, FuncOp) and not one.is_declaration]
        if self.target == "cuda":
            for function in functions:
                OrderAssignment(
                    function.body.block,
                    has_warpgroups=has_instruction(self.arch, WARPGROUPS),
                    has_tf32=TF32 in self.features,
                    has_tensor_memory=has_instruction(self.arch, TENSOR_MEMORY),
                ).run()
        if self.target != "cpu":
            return
        if self.lanes not in (4, 8, 16):
            raise InvalidInputError(f"assign-layouts: lanes is 4, 8 or 16, not {self.lanes}")
        for block in list(tensor_blocks(op)):
            Assignment(weights_of(ctx), self.lanes).run(block)
