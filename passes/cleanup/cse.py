"""Common subexpression elimination: equal things are computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import Pure

from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.cleanup.rewriting import blocks, join_location, replace

Key: TypeAlias = "tuple[object, ...]"


@dataclass(frozen=True)
class CsePass(ModulePass):
    """Let equal pure ops be one op, which bears the names of all; scalar regions are compared by structure.

    Before:

        %a = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
        %b = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
        %y = trt.elementwise sum %a, %b : ...

    After:

        %a = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
        %y = trt.elementwise sum %a, %a : ...
    """

    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in blocks(op):
            _share(block)


def _share(block: Block) -> None:
    seen: dict[Key, Operation] = {}
    for op in list(block.ops):
        if not op.results or not op.has_trait(Pure):
            continue
        first = seen.setdefault(_key(op, {}), op)
        if first is op:
            continue
        if not isinstance(op, ConstantOp):
            join_location(first, first, op)
        replace(op, *first.results)


def _key(op: Operation, numbers: dict[SSAValue, int]) -> Key:
    """What makes two ops equal: values defined inside of a region count by number, others by identity."""
    operands = tuple(numbers[value] if value in numbers else (id(value),) for value in op.operands)
    types = tuple(result.type for result in op.results)
    attributes: frozenset[tuple[str, Attribute]] = frozenset((*op.properties.items(), *op.attributes.items()))
    bodies = tuple(_body_key(block, numbers) for region in op.regions for block in region.blocks)
    return (op.name, operands, attributes, types, bodies)


def _body_key(block: Block, numbers: dict[SSAValue, int]) -> Key:
    for argument in block.args:
        numbers[argument] = len(numbers)
    keys: list[object] = [tuple(argument.type for argument in block.args)]
    for op in block.ops:
        keys.append(_key(op, numbers))
        for result in op.results:
            numbers[result] = len(numbers)
    return tuple(keys)
