"""Folds requirements whose condition is known: one that holds is erased, one that does not hold ends the build."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.length_requirements import requirements_of
from mlirt.dialects.locations import name_of
from mlirt.dialects.trt.require import RequireOp
from mlirt.dialects.trt.require_lengths import RequireLengthsOp
from mlirt.errors import InvalidModelError


@dataclass(frozen=True)
class FoldRequirementsPass(ModulePass):
    """Erase each `trt.require` of a constant that is true; refuse a network that requires what is false.

    So is one whose lengths are known by now not to be as `require-lengths` has noted.

    In a branch or a loop a false one stays, as not every run comes there: that run ends with its message.

    Before:

        %c = trt.constant {value = dense<true> : tensor<i1>} : tensor<i1>
        trt.require %c {message = "the parts do not make up the axis"} : tensor<i1>
        %y = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>

    After:

        %y = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "fold-requirements"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks:
                _check_lengths(function)
        for inner in list(op.walk()):
            condition = array_of(inner.condition, ctx) if isinstance(inner, RequireOp) else None
            if not isinstance(inner, RequireOp) or condition is None:
                continue
            if condition.item():
                inner.detach()
                inner.erase()
            elif isinstance(inner.parent_op(), FuncOp):
                raise InvalidModelError(f"{_named(inner)}: no run can fulfil it")


def _check_lengths(function: FuncOp) -> None:
    """Refuse a network that requires of its lengths what no run can fulfil."""
    required = [op.requirement() for op in function.body.block.ops if isinstance(op, RequireLengthsOp)]
    for one in (*requirements_of(function), *required):
        if one.holds() is False:
            raise InvalidModelError(f"layer {one.layer}: {one.explained()}: no run can fulfil it")


def _named(op: RequireOp) -> str:
    name, message = name_of(op), op.message.data
    return message if name in message else f"{name}: {message}"
