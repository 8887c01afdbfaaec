"""Words of the kernel language for loop nests: an operand of a nest is memory that the nest's indices reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from mlirt.kernels.lib.language.context import builder
from mlirt.kernels.lib.language.operators import as_type
from mlirt.kernels.lib.language.values import Value, value_of
from mlirt.kernels.lib.loops.loop_nest import NestCode


@dataclass(frozen=True, eq=False)
class NestOperand:
    """Operand number `operand` of a nest, whose elements are converted to and from the type `wide` of the kernel.

    `[i, j, ..]` has an index for each loop of the nest; loops beyond the given ones do not move it.
    """

    code: NestCode
    operand: int
    wide: Attribute

    def __getitem__(self, indices: Sequence[SSAValue | int]) -> Value:
        return value_of(self.code.read(self.operand, self.wide, [builder().index(index) for index in indices]))

    def __setitem__(self, indices: Sequence[SSAValue | int], value: SSAValue | float) -> None:
        (stored,) = as_type(self.wide, value)
        self.code.write(stored, self.wide, self.operand, [builder().index(index) for index in indices])
