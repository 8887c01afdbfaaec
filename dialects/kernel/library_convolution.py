"""A convolution of images by a library that the machine has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, prop_def

from mlirt.dialects.integer_list import integer_list
from mlirt.dialects.kernel.library_op import LibraryActivation, LibraryOp, common_properties

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

SIZES = ("images", "channels", "height", "width", "kernels", "taps_down", "taps_across", "rows", "columns")


@irdl_op_definition
class LibraryConvolutionOp(LibraryOp):
    """`result = activation(convolution(input, kernel) + bias)`, by a library.

    It takes pointers to `input` [images, channels, height, width], `kernel` [kernels, channels / groups, taps_down,
    taps_across], `result` [images, kernels, rows, columns], all without gaps, to workspace for the library and, with
    `biased`, to `bias`; then these sizes: images, channels, height, width, kernels, taps down and across, rows,
    columns. With `channels_last` the second dimension of all three is innermost in memory. Images are padded with as
    many zeros on both sides. C1: the library is known. C2: the arguments are as above.

    Example: `kernel.library_convolution @f {library = "cudnn", proposal = 0 : i64, workspace_bytes = 0 : i64, stride =
    array<i64: 1, 1>, dilation = array<i64: 1, 1>, padding = array<i64: 1, 1>, function_type = (memref<?xf16>,
    memref<?xf16>, memref<?xf16>, memref<?xi8>, index, .., index) -> ()}`
    """

    name = "kernel.library_convolution"

    stride = prop_def(DenseArrayBase.constr(i64))
    dilation = prop_def(DenseArrayBase.constr(i64))
    padding = prop_def(DenseArrayBase.constr(i64))
    channels_last = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    groups = prop_def(IntegerAttr, default_value=IntegerAttr(1, i64))

    def __init__(
        self,
        name: str,
        elements: Sequence[Attribute],
        library: str,
        proposal: int,
        workspace_bytes: int,
        *,
        stride: Sequence[int],
        dilation: Sequence[int],
        padding: Sequence[int],
        channels_last: bool,
        groups: int = 1,
        rounded: bool = False,
        activation: LibraryActivation = LibraryActivation.NONE,
    ) -> None:
        """`elements` are those of the input, the kernel, the result and, where there is one, the bias."""
        common = common_properties(name, elements, len(SIZES), library, proposal, workspace_bytes, rounded, activation)
        lists = {"stride": stride, "dilation": dilation, "padding": padding}
        own: dict[str, Attribute] = {key: integer_list(values) for key, values in lists.items()}
        own |= {"channels_last": BoolAttr.from_bool(channels_last), "groups": IntegerAttr(groups, i64)}
        super().__init__(properties={**common, **own})

    @property
    def numbers(self) -> tuple[str, ...]:
        return SIZES

    @property
    def libraries(self) -> tuple[str, ...]:
        return ("cudnn",)

    def window(self) -> list[tuple[int, int, int]]:
        """Stride, dilation and padding down and across."""
        columns = (self.stride, self.dilation, self.padding)
        return list(zip(*([int(one) for one in column.iter_values()] for column in columns), strict=True))

    def reference(self, images: Array, kernel: Array, bias: Array | None) -> Array:
        """The result [n, k, rows, columns] for images [n, c, h, w] and kernels [k, c / groups, r, s], in float64."""
        import numpy as np

        from mlirt.dialects.fused.convolution_reference import convolve

        spatial = [(stride, dilation, pad, pad) for stride, dilation, pad in self.window()]
        total = convolve(images, kernel, spatial, self.groups.value.data)
        total = total if bias is None else total + bias.astype(np.float64).reshape(-1, 1, 1)
        return np.maximum(total, 0) if self.activation.data is LibraryActivation.RELU else total
