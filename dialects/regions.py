"""Branches and loops over tensors: the blocks that they hold, and how tensors become the numbers that `scf` takes."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, TensorType, i1, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

ControlOp = scf.IfOp | scf.ForOp | scf.WhileOp
Terminator = scf.YieldOp | scf.ConditionOp


def tensor_blocks(module: ModuleOp) -> Iterator[Block]:
    """The blocks of all functions on tensors, and of the branches and loops in them, outer ones first."""
    for function in module.ops:
        for region in function.regions:
            for block in region.blocks:
                yield block
                if isinstance(function, FuncOp):
                    yield from inner_blocks(block)


def inner_blocks(block: Block) -> Iterator[Block]:
    """The blocks of the branches and loops in a block, at any depth."""
    for op in block.ops:
        if op.regions and isinstance(op, ControlOp):
            for region in op.regions:
                for inner in region.blocks:
                    yield inner
                    yield from inner_blocks(inner)


def is_bridge(op: Operation) -> bool:
    """Whether an op only turns a tensor into a number for `scf`, or back."""
    if isinstance(op, tensor.ExtractOp | tensor.FromElementsOp | arith.IndexCastOp):
        return True
    return isinstance(op, arith.ConstantOp) and op.result.type in (IndexType(), i1)


def condition_of(value: SSAValue) -> tuple[list[Operation], SSAValue]:
    """The ops that give a 0-D boolean tensor as an i1, and that i1."""
    op = tensor.ExtractOp(value, [], i1)
    return [op], op.result


def index_of(value: SSAValue) -> tuple[list[Operation], SSAValue]:
    """The ops that give a 0-D int64 tensor as an index, and that index."""
    number = tensor.ExtractOp(value, [], i64)
    op = arith.IndexCastOp(number.result, IndexType())
    return [number, op], op.result


def tensor_of(index: SSAValue) -> tuple[list[Operation], SSAValue]:
    """The ops that give an index as a 0-D int64 tensor, and that tensor."""
    number = arith.IndexCastOp(index, i64)
    op = tensor.FromElementsOp(number.result, result_type=TensorType(i64, []))
    return [number, op], op.result


def index_constant(value: int) -> arith.ConstantOp:
    """A number for the bounds of a loop."""
    return arith.ConstantOp(IntegerAttr(value, IndexType()))


def source_of_condition(value: SSAValue) -> SSAValue:
    """The 0-D boolean tensor behind an i1; raises `ValueError` where there is none."""
    owner = value.owner
    if not isinstance(owner, tensor.ExtractOp):
        raise ValueError("the condition is not read from a tensor")
    return owner.tensor


def source_of_index(value: SSAValue) -> SSAValue | int:
    """The 0-D int64 tensor behind an index, or the number that it is; raises `ValueError` where it is neither."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    if isinstance(owner, arith.IndexCastOp) and isinstance(owner.input.owner, tensor.ExtractOp):
        return owner.input.owner.tensor
    raise ValueError("the bound of the loop is not read from a tensor")
