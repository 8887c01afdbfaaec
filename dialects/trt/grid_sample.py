"""Sampling of an image at computed positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BoolAttr, TensorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirt.dialects.grid_sampling import SampleMode
from mlirt.dialects.length_requirements import LengthRequirement, at_least, equal
from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, is_float, rank, with_dims
from mlirt.dialects.trt.operand_checks import numbers, same_length
from mlirt.dialects.trt.resize import ResizeKindAttr

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_attr_definition
class SampleModeAttr(EnumAttribute[SampleMode], SpacedOpaqueSyntaxAttribute):
    name = "trt.sample_mode"


@irdl_op_definition
class GridSampleOp(TensorOp):
    """Interpolate `input` (N x C x spatial) at the positions in `grid` (N x output spatial x d)
    (tensorrt-features.md#1.43).

    -1 and 1 are the outer edges of the image, or with `align_corners` the centres of its outer cells; the first
    coordinate belongs to the innermost axis. `nearest` rounds half to even. Outside lie zeros (`fill`), the edge
    (`clamp`), or the mirror image (`reflect`).

    C1: the input is not boolean, the grid floating-point. C2: both have the same rank, 3 or more. C3: the last length
    of the grid is the number of spatial axes. C4: the batch sizes agree. C5: the image has cells where there are
    positions.

    Example: `%y = trt.grid_sample linear %x, %g : (tensor<1x3x4x4xf32>, tensor<1x6x6x2xf32>) -> tensor<1x3x6x6xf32>`
    """

    name = "trt.grid_sample"

    kind = prop_def(ResizeKindAttr)
    input = operand_def(TensorType)
    grid = operand_def(TensorType)
    align_corners = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    mode = prop_def(SampleModeAttr, default_value=SampleModeAttr(SampleMode.FILL))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $input `,` $grid attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        numbers(self, "C1", self.input.type)
        element = element_of(self.grid.type)
        require(is_float(element), f"C1: the grid of {self.name} needs floating-point numbers, not {element}")
        ranks = rank(self.input.type), rank(self.grid.type)
        require(
            ranks[0] == ranks[1] >= 3,
            f"C2: {self.name} needs input and grid of one rank, 3 or more, but they are {ranks[0]} and {ranks[1]}",
        )

    def length_requirements(self) -> Iterator[LengthRequirement]:
        image, grid = dims(self.input.type), dims(self.grid.type)
        yield equal("C3", f"last length of the grid of {self.name}", len(image) - 2, grid[-1])
        yield equal("C4", f"batch of input and grid of {self.name}", image[0], grid[0])
        for axis, length in enumerate(image[2:]):
            fault = f"the input of {self.name} has no cells along spatial axis {axis}"
            yield at_least("C5", fault, length, 1, where=product(grid[:-1]))

    def infer(self) -> Sequence[Tensor]:
        image, grid = dims(self.input.type), dims(self.grid.type)
        return [with_dims(self.input.type, [same_length(image[0], grid[0]), image[1], *grid[1:-1]])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from mlirt.dialects.grid_sampling import grid_sample
        from mlirt.dialects.wide_arithmetic import narrow, widen

        x, grid = arrays
        y = grid_sample(widen(x), widen(grid), self.kind.data, self.mode.data, bool(self.align_corners.value.data))
        return [narrow(y, x.dtype)]
