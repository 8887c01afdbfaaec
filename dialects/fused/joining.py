"""What ops that join tensors in one buffer share: which producers write straight into it, and where."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import result_def, var_operand_def

from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.symbolic import Dim

IN_PLACE = "fused.in_place"


class JoiningOp(FusedOp):
    """An op whose inputs are disjoint parts of its result.

    The attribute `fused.in_place` has a boolean per input: true where the op that computes the input may write it
    straight into its part of the result, where other readers find it too; the others are copied.
    """

    inputs = var_operand_def(TensorType)
    output = result_def(TensorType)

    @abstractmethod
    def parts(self, steps: Sequence[Dim]) -> list[tuple[Dim, tuple[Dim, ...]]]:
        """The first element and the strides of each input in the result, whose strides are `steps`."""

    @property
    def in_place(self) -> tuple[bool, ...]:
        """For each input whether its producer may write into the result."""
        flags = self.attributes.get(IN_PLACE)
        if not isinstance(flags, ArrayAttr):
            return (False,) * len(self.inputs)
        return tuple(flag == BoolAttr.from_bool(True) for flag in cast("ArrayAttr[Attribute]", flags))

    @in_place.setter
    def in_place(self, flags: Sequence[bool]) -> None:
        self.attributes[IN_PLACE] = ArrayAttr(BoolAttr.from_bool(flag) for flag in flags)
