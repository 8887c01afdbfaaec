"""Writing elements or slices at given indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, prop_def

from mlirt.dialects.indexing import ScatterMode, ScatterReduction
from mlirt.dialects.length_requirements import LengthRequirement, at_least, equal
from mlirt.dialects.scatter_layer import ScatterLayer
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, is_bool, rank
from mlirt.dialects.trt.operand_checks import check_axis, same_elements, shape_text, tensor_type


@irdl_attr_definition
class ScatterModeAttr(EnumAttribute[ScatterMode], SpacedOpaqueSyntaxAttribute):
    name = "trt.scatter_mode"


@irdl_attr_definition
class ScatterReductionAttr(EnumAttribute[ScatterReduction], SpacedOpaqueSyntaxAttribute):
    name = "trt.scatter_reduction"


@irdl_op_definition
class ScatterOp(ScatterLayer, TensorOp):
    """A copy of `data` with `updates` written, or combined with what is there (tensorrt-features.md#1.34a, 1.34b).

    | mode | meaning |
    |---|---|
    | element | y[.., indices[.., j, ..], ..] = updates[.., j, ..] along `axis` |
    | nd | y[indices[i..], k..] = updates[i.., k..], the last axis of the indices holds coordinates |

    A negative index counts from the end; one that is out of range writes nothing. Without a reduction the result is
    undefined where two updates meet. `unique_indices` says that no two do, so that their order is free.

    C1: the indices are integers. C2: data and updates have one element type. C3: element: `axis` is an axis, and all
    ranks are equal. C4: element: indices and updates have the same dimensions. C5: nd: the last length of the indices
    is a number between 1 and the rank of the data. C6: nd: updates have the dimensions indices[:-1] + data[k:]. C7: a
    reduction needs numbers. C8: element: indices are no longer than data on the other axes.

    Example: `%y = trt.scatter %x, %i, %u {axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x1xi64>, tensor<2x1xf32>) ->
    tensor<2x5xf32>`
    """

    name = "trt.scatter"

    mode = prop_def(ScatterModeAttr, default_value=ScatterModeAttr(ScatterMode.ELEMENT))
    reduction = prop_def(ScatterReductionAttr, default_value=ScatterReductionAttr(ScatterReduction.NONE))

    def check(self) -> None:
        self.check_indices()
        same_elements(self, "C2", [self.data, self.updates])
        if self.mode.data is ScatterMode.ELEMENT:
            self._check_element()
        else:
            self._check_nd()
        plain = self.reduction.data is ScatterReduction.NONE
        require(plain or not is_bool(element_of(self.data.type)), f"C7: {self.name} cannot combine booleans")

    def _check_element(self) -> None:
        check_axis(self, "C3", self.axis.value.data, self.data.type)
        ranks = [rank(operand.type) for operand in self.operands]
        require(len(set(ranks)) == 1, f"C3: {self.name} needs equal ranks, but they are {', '.join(map(str, ranks))}")

    def _check_nd(self) -> None:
        data, indices = dims(self.data.type), dims(self.indices.type)
        depth = indices[-1] if indices else 0
        require(
            isinstance(depth, int) and 1 <= depth <= len(data),
            f"C5: the last length of the indices of {self.name} is {depth}, expected 1 to {len(data)}",
        )
        assert isinstance(depth, int)
        expected, found = [*indices[:-1], *data[depth:]], dims(self.updates.type)
        require(
            len(expected) == len(found),
            f"C6: dimensions not compatible for ScatterND: the updates of {self.name} have shape "
            f"{shape_text(self.updates.type)}, expected rank {len(expected)}",
        )

    def length_requirements(self) -> Iterator[LengthRequirement]:
        data, indices, updates = (dims(operand.type) for operand in self.operands)
        if self.mode.data is ScatterMode.ELEMENT:
            for axis, (length, count, found) in enumerate(zip(data, indices, updates, strict=True)):
                yield equal("C4", f"dimensions of indices and updates of {self.name}", count, found)
                if axis != self.axis.value.data:
                    fault = f"the indices of {self.name} are {{right}} long on axis {axis}, its data only {{left}}"
                    yield at_least("C8", fault, length, count)
            return
        depth = indices[-1]
        assert isinstance(depth, int)
        for left, right in zip([*indices[:-1], *data[depth:]], updates, strict=True):
            yield equal("C6", f"dimensions not compatible for ScatterND: updates of {self.name}", left, right)

    def infer(self) -> Sequence[Tensor]:
        return [tensor_type(self.data.type)]

    def way(self) -> tuple[ScatterMode, ScatterReduction]:
        return self.mode.data, self.reduction.data
