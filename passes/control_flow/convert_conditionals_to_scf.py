"""Converts the boundary layers of conditionals to `scf.if`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from mlirt.dialects.regions import condition_of, inner_blocks
from mlirt.dialects.symbolic import Dim, sym
from mlirt.dialects.tensor_types import Tensor, dims, with_dims
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.passes.control_flow.boundaries import Boundaries, ConditionalParts
from mlirt.passes.control_flow.nesting import ELSE, THEN
from mlirt.passes.control_flow.scopes import follow_results, forget_paths, path_of, set_path, sort_block


@dataclass(frozen=True)
class ConvertConditionalsToScfPass(ModulePass):
    """Replace the layers at the borders of each conditional by `scf.if`; what depends on its inputs is computed inside.

    Lengths that differ between the branches become sizes that the branch that is taken defines. Needs the attributes
    of infer-nesting, and removes them.

    Before:

        trt.condition %c {conditional = @choice} : tensor<i1>
        %a = trt.if_input %x {conditional = @choice} : (tensor<4xf32>) -> tensor<4xf32>
        %t = trt.unary neg %a {trt.nesting = ["choice.then"]} : (tensor<4xf32>) -> tensor<4xf32>
        %y = trt.if_output %t, %x {conditional = @choice} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

    After:

        %h = tensor.extract %c[] : tensor<i1>
        %y = scf.if %h -> (tensor<4xf32>) {
          %t = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
          scf.yield %t : tensor<4xf32>
        } else {
          scf.yield %x : tensor<4xf32>
        }
    """

    name = "convert-conditionals-to-scf"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks:
                for block in [function.body.block, *inner_blocks(function.body.block)]:
                    _convert_block(block)
                forget_paths(function.body.block)
                follow_results(function)


def _convert_block(block: Block) -> None:
    conditionals = list(Boundaries.of(block).conditionals.values())
    for parts in sorted(conditionals, key=lambda one: -_depth(one)):
        _convert(parts, block)
    if conditionals:
        sort_block(block)


def _depth(parts: ConditionalParts) -> int:
    """How many scopes are around a conditional; its borders know, as nothing else may be in it."""
    return max(len(path_of(op)) for op in parts.all())


def _convert(parts: ConditionalParts, block: Block) -> None:
    anchor = parts.outputs[0]
    for entry in parts.inputs:
        entry.output.replace_all_uses_with(entry.input)
    types = [_result_type(parts, k) for k in range(len(parts.outputs))]
    then = _region(parts, block, THEN, types, [output.then for output in parts.outputs])
    otherwise = _region(parts, block, ELSE, types, [output.otherwise for output in parts.outputs])
    ops, holds = condition_of(parts.conditions[0].condition)
    made = scf.IfOp(holds, types, then, otherwise)
    outer = _outer_path(parts, made) or path_of(anchor)
    for op in (*ops, made):
        op.location = anchor.location
        set_path(op, outer)
        block.insert_op_before(op, anchor)
    for output, result in zip(parts.outputs, made.results, strict=True):
        result.name_hint = output.output.name_hint
        if output.output.type != result.type:
            Rewriter.replace_value_with_new_type(output.output, result.type)
        output.output.replace_all_uses_with(result)
    for op in parts.all():
        op.detach()
        op.erase(safe_erase=False)


def _outer_path(parts: ConditionalParts, made: scf.IfOp) -> tuple[str, ...]:
    """The scopes around the conditional, read off what is inside of it."""
    for op in made.walk():
        path = path_of(op)
        for side in (THEN, ELSE):
            if parts.name + side in path:
                return path[: path.index(parts.name + side)]
    return ()


def _result_type(parts: ConditionalParts, k: int) -> Tensor:
    """The type of a result; a length in which the branches differ gets a name."""
    output = parts.outputs[k]
    pairs = zip(dims(output.then.type), dims(output.otherwise.type), strict=True)
    lengths: list[Dim] = [a if a == b else sym(f"{parts.name}_{k}_d{axis}") for axis, (a, b) in enumerate(pairs)]
    return with_dims(output.then.type, lengths)


def _region(
    parts: ConditionalParts, block: Block, side: str, types: Iterable[Tensor], values: list[SSAValue]
) -> Region:
    body = Block()
    for op in [op for op in block.ops if parts.name + side in path_of(op)]:
        op.detach()
        body.add_op(op)
    ops: list[Operation] = []
    for value, type_ in zip(values, types, strict=True):
        for own, joined in zip(dims(value.type), dims(type_), strict=True):
            if own != joined:
                ops.append(DefineSizeOp(str(joined), None, own))
    ops.append(scf.YieldOp(*values))
    for op in ops:
        op.location = parts.outputs[0].location
        body.add_op(op)
    sort_block(body)
    return Region(body)
