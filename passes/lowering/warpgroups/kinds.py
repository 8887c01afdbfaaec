"""Which elements warpgroups multiply, and in what they add up."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntegerType, f32, i32
from xdsl.ir import Attribute

from mlirt.dialects.kernel.matrix_unit import MmaKind
from mlirt.dialects.kernel.warpgroup import LINE
from mlirt.dialects.target import Target
from mlirt.dialects.tensor_types import byte_width

ARCHITECTURE = "sm_90a"
TF32 = "tf32"
"""The feature of a target whose matrix units may read float32 with 10 bits of mantissa."""

_KINDS: dict[Attribute, tuple[MmaKind, Attribute]] = {
    Float16Type(): (MmaKind.F16, f32),
    BFloat16Type(): (MmaKind.BF16, f32),
    Float32Type(): (MmaKind.TF32, f32),
    IntegerType(8): (MmaKind.S8, i32),
}


@dataclass(frozen=True)
class Kind:
    """Elements of the operands, what the matrix units do with them, and the type of the sums."""

    element: Attribute
    mma: MmaKind
    sums: Attribute

    @staticmethod
    def of(left: Attribute, right: Attribute, target: Target) -> Kind | None:
        """The kind of a product of these elements; None where the target's matrix units have none."""
        if target.arch != ARCHITECTURE or left != right or left not in _KINDS:
            return None
        kind = Kind(left, *_KINDS[left])
        return None if kind.mma == MmaKind.TF32 and TF32 not in target.features else kind

    @property
    def depth(self) -> int:
        """Elements of a tile along the depth."""
        return LINE // byte_width(self.element)
