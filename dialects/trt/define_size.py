"""Gives a symbol its value while the network runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerType, StringAttr, TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, opt_operand_def, opt_prop_def, prop_def, traits_def
from xdsl.traits import MemoryWriteEffect

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.symbolic_text import parse
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, element_of, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class DefineSizeOp(TensorOp):
    """From here on `symbol` stands for the number that `count` holds, or for what `value` says.

    Tensors whose length only the run tells, such as the results of a loop that ends when its data say so, have a symbol
    in their types. The op stands before the first op that needs to know its value.

    C1: there is either a count or a value. C2: the count is a 0-D int64 tensor. C3: the value is a formula.

    Example: `trt.define_size %n {symbol = "n1"} : tensor<i64>`
    """

    name = "trt.define_size"

    count = opt_operand_def(TensorType)
    symbol = prop_def(StringAttr)
    value = opt_prop_def(StringAttr)

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "($count^)? attr-dict (`:` type($count)^)?"

    def __init__(self, symbol: str, count: SSAValue | None, value: Dim | None = None):
        given = None if value is None else StringAttr(str(value))
        super().__init__(operands=[count], properties={"symbol": StringAttr(symbol), "value": given})

    def check(self) -> None:
        require(
            (self.count is None) == (self.value is not None), f"C1: {self.name} has both or none of count and value"
        )
        self.dimension()
        if self.count is not None:
            of = self.count.type
            require(rank(of) == 0 and element_of(of) == IntegerType(64), f"C2: {self.name} cannot count by {of}")

    def dimension(self) -> Dim | None:
        """The formula, where there is no count."""
        return None if self.value is None else parse(self.value.data)

    def infer(self) -> Sequence[Tensor]:
        return []

    def reference(self, *arrays: Array) -> Sequence[Array]:
        """Nothing: the interpreter gives the symbol its value."""
        return []
