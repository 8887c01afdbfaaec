"""The greedy part of non-maximum suppression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerType, TensorType, f32, i1, i64
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from mlirt.dialects.length_requirements import LengthRequirement, equal
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, rank, tensor

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class SuppressOp(TensorOp):
    """Which boxes of each group stay; they come in the order of preference (tensorrt-features.md#1.44).

    A box stays if it is allowed and its intersection over union with each earlier box that stays is at most
    `threshold`; at most `limit` boxes of a group stay. Corners are (y1, x1, y2, x2) with y1 <= y2 and x1 <= x2.

    C1: boxes are G x N x 4 of float32, `allowed` is G x N of booleans. C2: the limit is a 0-D int64 tensor. C3: the
    threshold is a 0-D float32 tensor.

    Example: `%k = trt.suppress %boxes, %allowed, %limit, %threshold :
    (tensor<2x9x4xf32>, tensor<2x9xi1>, tensor<i64>, tensor<f32>) -> tensor<2x9xi1>`
    """

    name = "trt.suppress"

    boxes = operand_def(TensorType)
    allowed = operand_def(TensorType)
    limit = operand_def(TensorType)
    threshold = operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$boxes `,` $allowed `,` $limit `,` $threshold attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        boxes, allowed = self.boxes.type, self.allowed.type
        shapes = rank(boxes) == 3 and rank(allowed) == 2
        require(
            shapes and element_of(boxes) == f32 and element_of(allowed) == IntegerType(1),
            f"C1: {self.name} cannot take boxes {boxes} and flags {allowed}",
        )
        for constraint, value, element in (("C2", self.limit, i64), ("C3", self.threshold, f32)):
            fits = rank(value.type) == 0 and element_of(value.type) == element
            require(fits, f"{constraint}: {self.name} expected a 0-D {element} tensor, got {value.type}")

    def length_requirements(self) -> Iterator[LengthRequirement]:
        pairs = zip([*dims(self.allowed.type), 4], dims(self.boxes.type), strict=True)
        for axis, (expected, found) in enumerate(pairs):
            yield equal("C1", f"dimension {axis} of the boxes of {self.name}", expected, found)

    def infer(self) -> Sequence[Tensor]:
        return [tensor(i1, dims(self.allowed.type))]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from mlirt.dialects.box_suppression import kept_boxes

        boxes, allowed, limit, threshold = arrays
        return [kept_boxes(boxes, allowed, int(limit), float(threshold))]
