"""A kernel that is no code here: a plugin that the process has registered computes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    I64,
    DenseArrayBase,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, irdl_op_definition, opt_prop_def, prop_def, traits_def
from xdsl.traits import SymbolOpInterface

from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_op import require
from mlirt.dialects.weights import WeightsAttr


@irdl_op_definition
class PluginOp(IRDLOperation):
    """A kernel that takes pointers to the `inputs` tensors that it reads and to those that it writes, then their
    lengths.

    `ranks` has the number of lengths of each tensor, `state` the bytes that the plugin is made from. C1: there is a
    rank for every tensor, and an argument for every tensor and every length.

    Example: `kernel.plugin @f {plugin = "Twice", version = "1", namespace = "", inputs = 1 : i64,
    ranks = array<i64: 1, 1>, function_type = (memref<?xf32>, memref<?xf32>, index, index) -> ()}`
    """

    name = "kernel.plugin"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    plugin = prop_def(StringAttr)
    version = prop_def(StringAttr)
    plugin_namespace = prop_def(StringAttr, prop_name="namespace")
    state = opt_prop_def(WeightsAttr)
    inputs = prop_def(IntegerAttr)
    ranks = prop_def(DenseArrayBase[I64])

    traits = traits_def(SymbolOpInterface())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$sym_name attr-dict"

    def __init__(
        self,
        names: tuple[StringAttr, StringAttr, StringAttr],
        state: WeightsAttr | None,
        elements: Sequence[Attribute],
        ranks: Sequence[int],
        inputs: int,
    ):
        """`names` are the plugin's name, version and namespace; the first `inputs` tensors are read."""
        pointers = [MemRefType(element, [DYNAMIC_INDEX]) for element in elements]
        super().__init__(
            properties={
                "sym_name": StringAttr("plugin"),
                "function_type": FunctionType.from_lists([*pointers, *[IndexType()] * sum(ranks)], []),
                **dict(zip(("plugin", "version", "namespace"), names, strict=True)),
                "state": state,
                "inputs": IntegerAttr(inputs, i64),
                "ranks": DenseArrayBase.from_list(i64, list(ranks)),
            }
        )

    def verify_(self) -> None:
        given, ranks = list(self.function_type.inputs), self.rank_list()
        fits = given == [*given[: len(ranks)], *[IndexType()] * sum(ranks)]
        fits = fits and all(isinstance(one, MemRefType) for one in given[: len(ranks)])
        require(fits, f"C1: {self.name}: ranks {ranks} do not fit the arguments ({', '.join(map(str, given))})")

    def rank_list(self) -> list[int]:
        return list(integers(self.ranks))

    @property
    def elements(self) -> list[Attribute]:
        """The element types of the tensors."""
        pointers = list(self.function_type.inputs)[: len(self.rank_list())]
        return [cast("MemRefType[Attribute]", one).get_element_type() for one in pointers]

    @property
    def written(self) -> list[int]:
        """The places of the arguments that are written through."""
        return list(range(self.inputs.value.data, len(self.rank_list())))
