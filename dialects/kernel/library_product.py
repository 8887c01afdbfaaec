"""A product of matrices by a library that the machine has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BoolAttr, i8
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, prop_def

from mlirt.dialects.kernel.library_op import LibraryActivation, LibraryOp, common_properties

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

SIZES = ("rows", "columns", "depth", "batch")
STEPS = tuple(f"{operand}_{step}" for operand in ("left", "right", "result") for step in ("line", "matrix"))
"""From a line in memory to the next, and from a matrix of the batch to the next, in elements."""


@irdl_op_definition
class LibraryProductOp(LibraryOp):
    """`result[b, m, n] = activation(sum over k of left[b, m, k] * right[b, k, n] + bias[n])`, by a library.

    It takes pointers to `left`, `right`, `result`, to workspace for the library and, with `biased`, to `bias`; then the
    sizes `rows`, `columns`, `depth`, `batch` and the steps in elements from line to line and from matrix to matrix of
    `left`, `right` and `result`. The lines of a transposed operand lie along its own dimension, not along the depth.
    Sums are in float32, of bytes in int32; with `rounded`, the library may read float32 with 10 bits of mantissa.
    `proposal` counts the ways to do it that the library proposes. C1: the library is known. C2: the arguments are as
    above.

    Example: `kernel.library_product @f {library = "cublas_lt", proposal = 0 : i64, workspace_bytes = 0 : i64,
    function_type = (memref<?xf16>, memref<?xf16>, memref<?xf32>, memref<?xi8>, index, .., index) -> ()}`
    """

    name = "kernel.library_product"

    transpose_left = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    transpose_right = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))

    def __init__(
        self,
        name: str,
        elements: Sequence[Attribute],
        library: str,
        proposal: int,
        workspace_bytes: int,
        *,
        transposed: tuple[bool, bool] = (False, False),
        rounded: bool = False,
        activation: LibraryActivation = LibraryActivation.NONE,
    ) -> None:
        """`elements` are those of the left and right operand, the result and, where there is one, the bias."""
        sizes = len(SIZES) + len(STEPS)
        common = common_properties(name, elements, sizes, library, proposal, workspace_bytes, rounded, activation)
        flags = dict(zip(("transpose_left", "transpose_right"), map(BoolAttr.from_bool, transposed), strict=True))
        super().__init__(properties={**common, **flags})

    @property
    def numbers(self) -> tuple[str, ...]:
        return (*SIZES, *STEPS)

    @property
    def libraries(self) -> tuple[str, ...]:
        return ("cublas_lt",)

    def reference(self, left: Array, right: Array, bias: Array | None) -> Array:
        """The result for batches of matrices `[b, m, k]` and `[b, k, n]`, in the type of the accumulators."""
        import numpy as np

        wide = np.int64 if self.elements[0] == i8 else np.float64
        total = left.astype(wide) @ right.astype(wide)
        total = total if bias is None else total + bias.astype(wide)
        if self.activation.data is LibraryActivation.RELU:
            return np.maximum(total, 0)
        if self.activation.data is LibraryActivation.GELU_TANH:
            return 0.5 * total * (1 + np.tanh(np.sqrt(2 / np.pi) * (total + 0.044715 * total**3)))
        return total
