"""Writing elements or slices by index into a copy of a tensor, in one go and in a fixed order."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, prop_def

from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.indexing import ScatterMode, ScatterReduction
from mlirt.dialects.scatter_layer import ScatterLayer
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, element_of, rank


@irdl_attr_definition
class ScatterModeAttr(EnumAttribute[ScatterMode], SpacedOpaqueSyntaxAttribute):
    name = "fused.scatter_mode"


@irdl_attr_definition
class ScatterReductionAttr(EnumAttribute[ScatterReduction], SpacedOpaqueSyntaxAttribute):
    name = "fused.scatter_reduction"


@irdl_op_definition
class ScatterOp(ScatterLayer, FusedOp):
    """A copy of `data` in which the elements at `indices` are replaced by `updates`, or combined with them by
    `reduction`.

    | mode | update |
    |---|---|
    | element | y[.., indices[.., j, ..], ..] = updates[.., j, ..] along `axis` |
    | nd | y[indices[i..], k..] = updates[i.., k..], the last dimension of the indices holds coordinates |

    Updates of one place happen in row-major order of the updates, so the last one wins; `unique_indices` says that no
    two have the same place. A negative index counts from the end; one that is still out of range updates nothing.
    C1: the indices are integers. C2: data, updates and result have one element type, the result the data's rank.
    C3: in mode element the indices have the data's rank, in mode nd their last length is a number.

    Example: `%y = fused.scatter %x, %i, %u {mode = #fused<scatter_mode element>, axis = 1 : i64} : (..) ->
    tensor<2x5xf32>`
    """

    name = "fused.scatter"
    FAMILY: ClassVar = "copy"

    mode = prop_def(ScatterModeAttr, default_value=ScatterModeAttr(ScatterMode.ELEMENT))
    reduction = prop_def(ScatterReductionAttr, default_value=ScatterReductionAttr(ScatterReduction.NONE))

    def __init__(
        self,
        data: SSAValue,
        indices: SSAValue,
        updates: SSAValue,
        mode: ScatterMode = ScatterMode.ELEMENT,
        axis: int = 0,
        reduction: ScatterReduction = ScatterReduction.NONE,
        unique_indices: bool = False,
    ):
        super().__init__(
            operands=[data, indices, updates],
            properties={
                "mode": ScatterModeAttr(mode),
                "axis": IntegerAttr(axis, i64),
                "reduction": ScatterReductionAttr(reduction),
                "unique_indices": BoolAttr.from_bool(unique_indices),
            },
            result_types=[data.type],
        )

    @property
    def depth(self) -> int:
        """Coordinates per index in mode nd, 1 otherwise."""
        last = dims(self.indices.type)[-1] if self.mode.data is ScatterMode.ND else 1
        return last if isinstance(last, int) else -1

    def verify_(self) -> None:
        self.check_indices()
        elements = {element_of(value.type) for value in (self.data, self.updates, self.output)}
        fits = len(elements) == 1 and rank(self.output.type) == rank(self.data.type)
        require(
            fits, f"C2: {self.name} cannot put {self.updates.type} into {self.data.type} and give {self.output.type}"
        )
        is_nd = self.mode.data is ScatterMode.ND
        fits = self.depth >= 0 if is_nd else rank(self.indices.type) == rank(self.data.type)
        require(
            fits,
            f"C3: {self.name} in mode {self.mode.data} cannot take indices {self.indices.type} for {self.data.type}",
        )

    def way(self) -> tuple[ScatterMode, ScatterReduction]:
        return self.mode.data, self.reduction.data
