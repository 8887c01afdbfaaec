"""The greedy part of non-maximum suppression, in one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType, f32, i1, i64
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import element_of, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class SuppressOp(FusedOp):
    """Which boxes of each group stay: allowed ones that overlap no earlier one that stays by more than `threshold`.

    C1: boxes are G x N x 4 of float32, `allowed` and the result G x N of booleans. C2: limit and threshold are 0-D, of
    int64 and float32.

    Example: `%k = fused.suppress %boxes, %allowed, %limit, %threshold :
    (tensor<2x9x4xf32>, tensor<2x9xi1>, tensor<i64>, tensor<f32>) -> tensor<2x9xi1>`
    """

    name = "fused.suppress"

    boxes = operand_def(TensorType)
    allowed = operand_def(TensorType)
    limit = operand_def(TensorType)
    threshold = operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$boxes `,` $allowed `,` $limit `,` $threshold attr-dict `:` functional-type(operands, results)"

    def __init__(self, boxes: SSAValue, allowed: SSAValue, limit: SSAValue, threshold: SSAValue):
        super().__init__(operands=[boxes, allowed, limit, threshold], result_types=[allowed.type])

    def verify_(self) -> None:
        found = [(rank(value.type), element_of(value.type)) for value in (*self.operands, self.output)]
        require(
            [found[0], found[1], found[4]] == [(3, f32), (2, i1), (2, i1)],
            f"C1: {self.name} cannot take boxes {self.boxes.type} and flags {self.allowed.type}",
        )
        require(found[2:4] == [(0, i64), (0, f32)], f"C2: {self.name} needs a limit and a threshold of 0 dimensions")

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from mlirt.dialects.box_suppression import kept_boxes

        boxes, allowed, limit, threshold = arrays
        return [kept_boxes(boxes, allowed, int(limit), float(threshold))]
