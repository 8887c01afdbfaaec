"""Ends a run in which two lengths do not fit together as a layer needs them to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, opt_prop_def, prop_def, traits_def
from xdsl.traits import MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.length_agreements import Agreement, kind_named
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class RequireEqualOp(TensorOp):
    """Go on where both lengths are equal; else the run ends with an error that names the layer.

    With the kind `equal_or_one` the first length may also be 1, as it is repeated then. Formulas decide, so that
    nothing is computed for it: once the sizes of a run are known, so is the answer.

    C1: there are two lengths. C2: the kind is one of those that `length_agreements` has.

    Example: `trt.require_equal {layer = "join", lengths = #trt.dims<["size0", "n"]>}`
    """

    name = "trt.require_equal"

    layer = prop_def(StringAttr)
    lengths = prop_def(DimsAttr)
    kind = opt_prop_def(StringAttr)

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, agreement: Agreement):
        lengths = DimsAttr.of([agreement.left, agreement.right])
        kind = None if agreement.kind == "equal" else StringAttr(agreement.kind)
        super().__init__(properties={"layer": StringAttr(agreement.layer), "lengths": lengths, "kind": kind})

    def check(self) -> None:
        require(len(self.lengths.dims()) == 2, f"C1: {self.name} compares two lengths")
        try:
            self.agreement()
        except ValueError as error:
            raise VerifyException(f"C2: {self.name}: {error}") from error

    def agreement(self) -> Agreement:
        left, right = self.lengths.dims()
        return Agreement(self.layer.data, left, right, "equal" if self.kind is None else kind_named(self.kind.data))

    def infer(self) -> Sequence[Tensor]:
        return []

    def reference(self, *arrays: Array) -> Sequence[Array]:
        """Nothing, where the lengths fit together."""
        from mlirt.dialects.symbol_values import known

        self.agreement().check(known(self, arrays))
        return []
