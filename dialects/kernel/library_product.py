"""A kernel that is not made here: a product of matrices by a library that the machine has."""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BoolAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    i8,
    i64,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    prop_def,
    traits_def,
)
from xdsl.traits import SymbolOpInterface
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.tensor_op import require

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

LIBRARIES = ("cublas_lt",)
RESULT, WORKSPACE = 2, 3  # the places of arguments
SIZES = ("rows", "columns", "depth", "batch")
STEPS = tuple(f"{operand}_{step}" for operand in ("left", "right", "result") for step in ("line", "matrix"))
"""From a line in memory to the next, and from a matrix of the batch to the next, in elements."""


class LibraryActivation(StrEnum):
    NONE = auto()
    RELU = auto()
    GELU_TANH = auto()


@irdl_attr_definition
class LibraryActivationAttr(EnumAttribute[LibraryActivation], SpacedOpaqueSyntaxAttribute):
    name = "kernel.library_activation"


@irdl_op_definition
class LibraryProductOp(IRDLOperation):
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

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    library = prop_def(StringAttr)
    proposal = prop_def(IntegerAttr)
    workspace_bytes = prop_def(IntegerAttr)
    transpose_left = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    transpose_right = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    biased = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    rounded = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    activation = prop_def(LibraryActivationAttr, default_value=LibraryActivationAttr(LibraryActivation.NONE))

    traits = traits_def(SymbolOpInterface())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$sym_name attr-dict"

    def __init__(
        self,
        name: str,
        elements: Sequence[Attribute],
        library: str,
        proposal: int,
        workspace_bytes: int,
        *,
        transposed: tuple[bool, bool] = (False, False),
        biased: bool = False,
        rounded: bool = False,
        activation: LibraryActivation = LibraryActivation.NONE,
    ) -> None:
        """`elements` are those of the left and right operand, the result and, where there is one, the bias."""
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": _signature(elements),
                "library": StringAttr(library),
                "proposal": IntegerAttr(proposal, i64),
                "workspace_bytes": IntegerAttr(workspace_bytes, i64),
                "transpose_left": BoolAttr.from_bool(transposed[0]),
                "transpose_right": BoolAttr.from_bool(transposed[1]),
                "biased": BoolAttr.from_bool(biased),
                "rounded": BoolAttr.from_bool(rounded),
                "activation": LibraryActivationAttr(activation),
            }
        )

    def verify_(self) -> None:
        known, given = self.library.data in LIBRARIES, list(self.function_type.inputs)
        require(known, f"C1: {self.name}: the library {self.library.data!r} is none of {', '.join(LIBRARIES)}")
        count = 5 if self.is_biased else 4
        fits = len(self.elements) == count - 1 and list(_signature(self.elements).inputs) == given
        require(
            fits,
            f"C2: {self.name} takes {count} buffers, the fourth of i8, and {len(SIZES) + len(STEPS)} sizes, "
            f"not ({', '.join(map(str, given))})",
        )

    @property
    def is_biased(self) -> bool:
        return bool(self.biased.value.data)

    @property
    def elements(self) -> tuple[Attribute, ...]:
        """The element types of left, right, result and bias."""
        found = [
            cast("MemRefType[Attribute]", one).get_element_type()
            for one in self.function_type.inputs
            if one.name == MemRefType.name
        ]
        return (*found[:3], *found[4:])

    def reference(self, left: Array, right: Array, bias: Array | None) -> Array:
        """The result for batches of matrices `[b, m, k]` and `[b, k, n]`, in the type of the sums."""
        import numpy as np

        wide = np.int64 if self.elements[0] == i8 else np.float64
        total = left.astype(wide) @ right.astype(wide)
        total = total if bias is None else total + bias.astype(wide)
        if self.activation.data is LibraryActivation.RELU:
            return np.maximum(total, 0)
        if self.activation.data is LibraryActivation.GELU_TANH:
            return 0.5 * total * (1 + np.tanh(np.sqrt(2 / np.pi) * (total + 0.044715 * total**3)))
        return total


def _signature(elements: Sequence[Attribute]) -> FunctionType:
    pointers = [MemRefType(element, [DYNAMIC_INDEX]) for element in (*elements[:3], i8, *elements[3:])]
    return FunctionType.from_lists([*pointers, *[IndexType()] * (len(SIZES) + len(STEPS))], [])
