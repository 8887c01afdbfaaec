"""What `trt.scatter` and `fused.scatter` share, as nothing is fused into it: all but how the types are known."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, BoolAttr, IntegerAttr, TensorType, i64
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.indexing import ScatterMode, ScatterReduction, scatter
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import element_of, is_bool, is_float

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class ScatterLayer(IRDLOperation):
    """A copy of `data` in which updates are written by index."""

    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    updates = operand_def(TensorType)
    axis = prop_def(IntegerAttr[I64], default_value=IntegerAttr(0, i64))
    unique_indices = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$data `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)"

    @abstractmethod
    def way(self) -> tuple[ScatterMode, ScatterReduction]:
        """What an index says, and what becomes of the element that is there."""

    def check_indices(self) -> None:
        """C1 of both: the indices are integers."""
        element = element_of(self.indices.type)
        require(not is_float(element) and not is_bool(element), f"C1: {self.name} needs integer indices, not {element}")

    def reference(self, *arrays: Array) -> Sequence[Array]:
        data, indices, updates = arrays
        mode, reduction = self.way()
        return [scatter(data, indices, updates, mode, self.axis.value.data, reduction)]
