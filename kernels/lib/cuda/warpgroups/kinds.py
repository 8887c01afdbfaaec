"""Which elements warpgroups multiply, and in what they add up."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import BFloat16Type, Float8E4M3FNType, Float16Type, Float32Type, IntegerType, Signedness, i8
from xdsl.ir import Attribute

from mlirt.dialects.gpu_architectures import WARPGROUPS
from mlirt.dialects.kernel.matrix_unit import MmaKind
from mlirt.dialects.kernel.warpgroup import LINE, SHORT_LINE
from mlirt.dialects.target import TF32, Target
from mlirt.dialects.tensor_types import byte_width

_SAVED = 4 / 3

_UI8 = IntegerType(8, Signedness.UNSIGNED)
_KINDS: dict[tuple[Attribute, Attribute], MmaKind] = {
    (Float16Type(), Float16Type()): MmaKind.F16,
    (BFloat16Type(), BFloat16Type()): MmaKind.BF16,
    (Float32Type(), Float32Type()): MmaKind.TF32,
    (i8, i8): MmaKind.S8,
    (_UI8, i8): MmaKind.U8,
    (Float8E4M3FNType(), Float8E4M3FNType()): MmaKind.E4M3,
}


@dataclass(frozen=True)
class Kind:
    """Elements of the operands in shared memory, signless ones, and what the matrix units do with them."""

    element: Attribute
    mma: MmaKind
    line: int = LINE
    """Bytes of a tile along the depth."""

    @property
    def accumulator_type(self) -> Attribute:
        """The type of the accumulators."""
        return self.mma.accumulator_type

    @staticmethod
    def of(left: Attribute, right: Attribute, target: Target, instruction: str = WARPGROUPS) -> Kind | None:
        """The kind of a product of these elements by an instruction; None where the target has none."""
        mma = _KINDS.get((left, right))
        if not target.has(instruction) or mma is None or (mma == MmaKind.TF32 and TF32 not in target.features):
            return None
        return Kind(i8 if mma == MmaKind.E4M3 else right, mma)

    @property
    def depth(self) -> int:
        """Elements of a tile along the depth."""
        return self.line // byte_width(self.element)

    def fitting(self, bytes_: int) -> Kind:
        """The same with short lines, where these have a quarter less to fill up behind so many bytes."""
        long, short = (-(-bytes_ // line) * line for line in (LINE, SHORT_LINE))
        return replace(self, line=SHORT_LINE) if _SAVED * short <= long else self
