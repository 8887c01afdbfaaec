"""Ends a run whose lengths do not fit what a layer needs of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, prop_def, traits_def
from xdsl.traits import MemoryWriteEffect

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.length_requirements import LengthRequirement, Relation
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_RELATIONS = tuple(str(relation) for relation in Relation)


@irdl_op_definition
class RequireLengthsOp(TensorOp):
    """Go on where the first two lengths are in a relation, or the third is 0; else the run ends with an error.

    | relation | holds where |
    |---|---|
    | equal | both lengths are equal |
    | equal_or_one | they are equal, or the first one is 1 and is repeated |
    | at_least | the first is no less than the second |
    | multiple | the first is a whole multiple of the second |

    Formulas decide, so that nothing is computed for it: once the sizes of a run are known, so is the answer. The error
    names the layer and says `fault`, where `{left}` and `{right}` stand for the lengths.

    C1: there are three lengths. C2: the relation is one of these. C3: it holds, where the lengths are numbers.

    Example: `trt.require_lengths {layer = "join", relation = "equal", lengths = #trt.dims<["size0", "n", "1"]>,
    fault = "its inputs have the lengths {left} and {right}"}`
    """

    name = "trt.require_lengths"

    layer = prop_def(StringAttr)
    relation = prop_def(StringAttr)
    lengths = prop_def(DimsAttr)
    fault = prop_def(StringAttr)

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, requirement: LengthRequirement):
        super().__init__(
            properties={
                "layer": StringAttr(requirement.layer),
                "relation": StringAttr(str(requirement.relation)),
                "lengths": DimsAttr.of(requirement.lengths),
                "fault": StringAttr(requirement.fault),
            }
        )

    def check(self) -> None:
        require(len(self.lengths.dims()) == 3, f"C1: {self.name} has two lengths and a condition")
        require(
            self.relation.data in _RELATIONS,
            f"C2: {self.relation.data!r} of {self.name} is none of {', '.join(_RELATIONS)}",
        )

    def requirement(self) -> LengthRequirement:
        left, right, where = self.lengths.dims()
        relation = Relation(self.relation.data)
        return LengthRequirement(relation, left, right, self.fault.data, "C3", where, self.layer.data)

    def length_requirements(self) -> Iterator[LengthRequirement]:
        yield self.requirement()

    def infer(self) -> Sequence[Tensor]:
        return []

    def reference(self, *arrays: Array) -> Sequence[Array]:
        """Nothing: the interpreter knows the lengths."""
        return []
