"""Branches of a model's conditionals that have no meaning for the shapes that a network was given since."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims, element_of, is_tensor, numpy_dtype, rank
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.require import RequireOp
from mlirt.dialects.trt.slice import SliceOp

if TYPE_CHECKING:
    from mlirt.dialects.weights import WeightStore


def refuse_impossible_branches(op: Operation, store: WeightStore) -> None:
    """Let the side of a conditional end the run, should it be taken, where its layers contradict the shapes at hand and
    those of the other side do not: as the importer does for a model that has these shapes.
    """
    for inner in reversed(list(op.walk())):
        if isinstance(inner, scf.IfOp):
            sides = (inner.true_region, inner.false_region)
            faults = [_fault(side) for side in sides]
            for side, fault, other in zip(sides, faults, reversed(faults), strict=True):
                if fault and not other and all(is_tensor(value.type) for value in inner.results):
                    _refuse(side, fault, store)


def _fault(region: Region) -> str:
    """What is wrong with the first layer that is not right, or nothing."""
    for op in region.walk():
        if isinstance(op, TensorOp):
            try:
                op.check_all()
            except VerifyException as error:
                return f"{name_of(op)}: {error}"
    return ""


def _refuse(region: Region, fault: str, store: WeightStore) -> None:
    """In the place of the layers a condition that never holds, and zeros for the types' sake."""
    before = region.block
    end = before.last_op
    assert end is not None
    never = ConstantOp.from_array(np.array(False), store, "never")
    ops: list[Operation] = [never, RequireOp(never.output, fault)]
    made: list[SSAValue] = []
    for value in end.operands:
        ops += _zeros(value, store)
        made.append(ops[-1].results[0])
    for op in ops:
        op.location = end.location
    region.detach_block(before)
    before.erase()
    region.add_block(Block([*ops, scf.YieldOp(*made)]))


def _zeros(like: SSAValue, store: WeightStore) -> list[Operation]:
    """A tensor of this type, as one number that is read everywhere."""
    axes = rank(like.type)
    one = ConstantOp.from_array(np.zeros((1,) * axes, numpy_dtype(element_of(like.type))), store, "zero")
    if axes == 0:
        return [one]
    properties = {
        "start": DimsAttr.of([0] * axes),
        "size": DimsAttr.of(dims(like.type)),
        "stride": DenseArrayBase.from_list(i64, [0] * axes),
    }
    return [one, SliceOp.build_inferred([one.output, None, None, None, None], properties)]
