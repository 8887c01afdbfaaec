"""Non-maximum suppression: which of many boxes that overlap are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.shape import ShapeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.errors import InvalidModelError, UnsupportedError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import EnumSetting, IntSetting
from mlirt.tensorrt.layer_enums import BoundingBoxFormat, LayerType

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor

MAX_BOXES = 5000


class INMSLayer(ILayer):
    """(batch, class, box) of the boxes that are kept, and their number (tensorrt-features.md#1.44).

    Inputs: boxes N x B x 4, scores N x B x C, the most boxes of a class; 3 and 4 may be the thresholds of overlap and
    score. Of each class the `topk_box_limit` boxes with the best scores are looked at, of equal ones the first.
    """

    KIND, TYPE, INPUTS, INT32_OUTPUTS = "NMS", LayerType.NMS, 5, (0, 1)
    bounding_box_format = EnumSetting(BoundingBoxFormat.CORNER_PAIRS)
    topk_box_limit = IntSetting(MAX_BOXES)

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        boxes, scores = self._boxes(ir), ir.input(1)
        if rank(scores.type) != 3:
            raise InvalidModelError(f"{self.name}: scores are batch x boxes x classes, got {scores.type}")
        if self.topk_box_limit < 1:
            raise InvalidModelError(f"{self.name}: topk_box_limit is {self.topk_box_limit}, expected at least 1")
        by_class = ir.value(ShuffleOp, scores, None, first_transpose=[0, 2, 1])
        given = [boxes, by_class, *(ir.maybe_scalar(k) for k in (2, 3, 4))]
        centred = self.bounding_box_format is BoundingBoxFormat.CENTER_SIZES
        count = dims(scores.type)[1]
        is_open = not isinstance(count, int) or count > self.topk_box_limit
        limit = {"topk_box_limit": self.topk_box_limit} if is_open else {}
        found = ir.onnx("NonMaxSuppression", given, {"center_point_box": int(centred), **limit})
        shape = ir.value(ShapeOp, found)
        first = ir.op(SliceOp, [shape, None, None, None, None], {"start": [0], "size": [1], "stride": [1]})[0]
        return [found, ir.value(ShuffleOp, first, None, reshape_dims=[])]

    def _boxes(self, ir: LayerEmitter) -> SSAValue:
        """Boxes N x B x 4; they may come as N x B x 1 x 4."""
        boxes = ir.input(0)
        if rank(boxes.type) == 3:
            return boxes
        shape = dims(boxes.type)
        if len(shape) != 4 or shape[2] != 1:
            raise UnsupportedError(f"{self.name}: boxes of their own for each class, got {boxes.type}")
        return ir.value(ShuffleOp, boxes, None, reshape_dims=[*shape[:2], shape[3]], zero_is_placeholder=False)


class SuppressMethods(Methods):
    """`add_nms`."""

    def add_nms(self, boxes: ITensor, scores: ITensor, max_output_boxes_per_class: ITensor) -> INMSLayer:
        return self.graph.add(INMSLayer, [boxes, scores, max_output_boxes_per_class], outputs=2)
