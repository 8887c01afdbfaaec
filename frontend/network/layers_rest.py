"""Ragged softmax and assertions, which are several ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import dims, element_of, is_bool, numpy_dtype, rank
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.fill import FillOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.reduce import ReduceOp
from mlirt.dialects.trt.require import RequireOp
from mlirt.dialects.trt.require_lengths import RequireLengthsOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.compared_lengths import compared_lengths
from mlirt.frontend.network.condition_text import condition_text
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import Setting
from mlirt.tensorrt.layer_enums import LayerType

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor


class IRaggedSoftMaxLayer(ILayer):
    """Softmax over the first elements of each row, as many as its bound says; zeros behind (tensorrt-features.md#1.28).
    """

    KIND, TYPE, INPUTS = "Ragged SoftMax", LayerType.RAGGED_SOFTMAX, 2

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        x, bounds = ir.input(0), ir.input(1)
        if rank(x.type) != 3:
            raise InvalidModelError(f"{self.name}: Input tensor must have exactly 3 dimensions")
        if rank(bounds.type) != 3:
            raise InvalidModelError(
                f"{self.name}: condition: input.getDimensions().nbDims == bounds.getDimensions().nbDims"
            )
        start, step = ir.constant(np.array(0, np.int32)), ir.constant(np.array([0, 0, 1], np.int32))
        places = ir.value(FillOp, None, start, step, kind="linspace", output_dims=[1, 1, dims(x.type)[2]])
        inside = ir.value(ElementwiseOp, places, bounds, kind="less")
        kind = numpy_dtype(element_of(x.type))
        least = ir.constant(np.full((1, 1, 1), np.finfo(kind).min, kind))
        zero = ir.constant(np.zeros((1, 1, 1), kind))
        weights = ir.value(SoftmaxOp, ir.value(SelectOp, inside, x, least), axis=2)
        return [ir.value(SelectOp, inside, weights, zero)]


# Of that many conditions each is checked for itself, and named where it does not hold.
_MAX_CONDITIONS = 8


class IAssertionLayer(ILayer):
    """Ends the run, or the build where that is known then, unless all conditions hold (tensorrt-features.md#1.2a,
    1.2b).
    """

    KIND, TYPE, SHAPE_INPUTS = "Assertion", LayerType.ASSERTION, (0,)
    message = Setting[str]("")

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        condition = ir.input(0)
        if not is_bool(element_of(condition.type)) or rank(condition.type) > 1:
            raise InvalidModelError(f"{self.name}: an assertion needs Bool conditions of at most one dimension")
        if isinstance(condition.owner, ConstantOp):
            self._check(condition.owner.array(ir.emission.store).ravel().tolist())
            return []
        tensor = self.get_input(0)
        assert tensor is not None
        count = dims(condition.type)[0] if rank(condition.type) else 1
        if not isinstance(count, int) or count > _MAX_CONDITIONS:
            whole = ir.value(ReduceOp, condition, kind="min", axes=[0], keep_dims=False)
            ir.append(
                RequireOp(whole, f"IAssertionLayer {self.name}: a condition of {tensor.name} is false. {self.message}")
            )
            return []
        for index in range(count):
            self._require(ir, condition, tensor, index)
        return []

    def _require(self, ir: LayerEmitter, condition: SSAValue, tensor: ITensor, index: int) -> None:
        """Check a condition by formulas of lengths, else by its value in a run (tensorrt-features.md#1.2b)."""
        fault = f"condition[{index}] is false: {condition_text(tensor, index)}. {self.message}"
        compared = compared_lengths(tensor, index, ir.emission, fault)
        for one in compared or ():
            ir.append(RequireLengthsOp(replace(one, layer=self.name)))
        if compared is not None:
            return
        place = ir.constant(np.array(index, np.int32)) if rank(condition.type) else None
        one = condition if place is None else ir.value(GatherOp, condition, place, axis=0)
        ir.append(RequireOp(one, f"IAssertionLayer {self.name}: {fault}"))

    def _check(self, conditions: Sequence[bool]) -> None:
        for index, holds in enumerate(conditions):
            if not holds:
                raise InvalidModelError(f"IAssertionLayer {self.name}: condition[{index}] is false: 0. {self.message}")


class RestMethods(Methods):
    """`add_ragged_softmax`, `add_assertion`."""

    def add_ragged_softmax(self, input: ITensor, bounds: ITensor) -> IRaggedSoftMaxLayer:
        return self.graph.add(IRaggedSoftMaxLayer, [input, bounds])

    def add_assertion(self, condition: ITensor, message: str) -> IAssertionLayer:
        return self.graph.add(IAssertionLayer, [condition], outputs=0, settings={"message": message})
