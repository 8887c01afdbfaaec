"""What `trt.cumulative` and `fused.cumulative` share, as nothing is fused into it: all but how the types are known."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, BoolAttr, IntegerAttr, TensorType
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.running_totals import CumulativeKind, running_totals

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class CumulativeLayer(IRDLOperation):
    """Running totals along an axis."""

    input = operand_def(TensorType)
    axis = prop_def(IntegerAttr[I64])
    exclusive = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    reverse = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $input attr-dict `:` functional-type(operands, results)"

    @abstractmethod
    def totals(self) -> CumulativeKind:
        """Sums or products."""

    def reference(self, *arrays: Array) -> Sequence[Array]:
        exclusive, backwards = bool(self.exclusive.value.data), bool(self.reverse.value.data)
        axis = self.axis.value.data
        return [running_totals(arrays[0], self.totals(), axis, exclusive=exclusive, backwards=backwards)]
