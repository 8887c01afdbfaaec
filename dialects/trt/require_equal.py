"""Ends a run in which two lengths differ that a layer needs to be equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, prop_def, traits_def
from xdsl.traits import MemoryWriteEffect

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.length_agreements import Agreement
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class RequireEqualOp(TensorOp):
    """Go on where both lengths are equal; else the run ends with an error that names the layer.

    Formulas decide, so that nothing is computed for it: once the sizes of a run are known, so is the answer.

    C1: there are two lengths.

    Example: `trt.require_equal {layer = "join", lengths = #trt.dims<["size0", "n"]>}`
    """

    name = "trt.require_equal"

    layer = prop_def(StringAttr)
    lengths = prop_def(DimsAttr)

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, agreement: Agreement):
        lengths = DimsAttr.of([agreement.left, agreement.right])
        super().__init__(properties={"layer": StringAttr(agreement.layer), "lengths": lengths})

    def check(self) -> None:
        require(len(self.lengths.dims()) == 2, f"C1: {self.name} compares two lengths")

    def agreement(self) -> Agreement:
        return Agreement(self.layer.data, *self.lengths.dims())

    def infer(self) -> Sequence[Tensor]:
        return []

    def reference(self, *arrays: Array) -> Sequence[Array]:
        """Nothing: arrays know their lengths."""
        return []
