"""What kernels have in common that are not made here: a library that the machine has computes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import auto
from typing import cast

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
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, irdl_attr_definition, prop_def, traits_def
from xdsl.traits import SymbolOpInterface
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.tensor_op import require

RESULT, WORKSPACE = 2, 3  # the places of arguments


class LibraryActivation(StrEnum):
    NONE = auto()
    RELU = auto()
    GELU_TANH = auto()


@irdl_attr_definition
class LibraryActivationAttr(EnumAttribute[LibraryActivation], SpacedOpaqueSyntaxAttribute):
    name = "kernel.library_activation"


class LibraryOp(IRDLOperation, ABC):
    """A kernel that takes pointers to two operands, the result, workspace and, with `biased`, a bias; then sizes.

    With `rounded`, the library may read float32 with 10 bits of mantissa. `proposal` counts the ways to do it that the
    library proposes.
    """

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    library = prop_def(StringAttr)
    proposal = prop_def(IntegerAttr)
    workspace_bytes = prop_def(IntegerAttr)
    biased = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    rounded = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    activation = prop_def(LibraryActivationAttr, default_value=LibraryActivationAttr(LibraryActivation.NONE))

    traits = traits_def(SymbolOpInterface())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$sym_name attr-dict"

    @property
    @abstractmethod
    def numbers(self) -> tuple[str, ...]:
        """What the sizes are called."""

    @property
    @abstractmethod
    def libraries(self) -> tuple[str, ...]:
        """The libraries that have such kernels."""

    def verify_(self) -> None:
        known, given = self.library.data in self.libraries, list(self.function_type.inputs)
        require(known, f"C1: {self.name}: the library {self.library.data!r} is none of {', '.join(self.libraries)}")
        count = 5 if self.is_biased else 4
        fits = len(self.elements) == count - 1 and list(signature(self.elements, len(self.numbers)).inputs) == given
        require(
            fits,
            f"C2: {self.name} takes {count} buffers, the fourth of i8, and {len(self.numbers)} sizes, "
            f"not ({', '.join(map(str, given))})",
        )

    @property
    def is_biased(self) -> bool:
        return bool(self.biased.value.data)

    @property
    def elements(self) -> tuple[Attribute, ...]:
        """The element types of both operands, the result and the bias."""
        found = [
            cast("MemRefType[Attribute]", one).get_element_type()
            for one in self.function_type.inputs
            if one.name == MemRefType.name
        ]
        return (*found[:3], *found[4:])


def common_properties(
    name: str,
    elements: Sequence[Attribute],
    numbers: int,
    library: str,
    proposal: int,
    workspace_bytes: int,
    rounded: bool,
    activation: LibraryActivation,
) -> dict[str, Attribute]:
    """The properties that all have; with four `elements` the last is that of a bias."""
    return {
        "sym_name": StringAttr(name),
        "function_type": signature(elements, numbers),
        "library": StringAttr(library),
        "proposal": IntegerAttr(proposal, i64),
        "workspace_bytes": IntegerAttr(workspace_bytes, i64),
        "biased": BoolAttr.from_bool(len(elements) > 3),
        "rounded": BoolAttr.from_bool(rounded),
        "activation": LibraryActivationAttr(activation),
    }


def signature(elements: Sequence[Attribute], numbers: int) -> FunctionType:
    """Pointers to both operands, the result, workspace and perhaps a bias; then so many numbers."""
    pointers = [MemRefType(element, [DYNAMIC_INDEX]) for element in (*elements[:3], i8, *elements[3:])]
    return FunctionType.from_lists([*pointers, *[IndexType()] * numbers], [])
