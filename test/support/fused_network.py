"""Builds networks of fused ops in Python, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirt.dialects.locations import named


class Network:
    """A function under construction; `add` appends an op and gives its first result."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.inputs: list[SSAValue] = list(block.args)

    def add(self, op: Operation, layer: str = "") -> SSAValue:
        op.location = named(layer or f"layer{len(self.block.ops)}")
        self.block.add_op(op)
        return op.results[0]


def network_of(inputs: Sequence[Attribute], build: Callable[[Network], Sequence[SSAValue]]) -> ModuleOp:
    """A module whose function takes tensors of these types (named input0, ..) and returns what `build` gives."""
    block = Block(arg_types=inputs)
    for position, argument in enumerate(block.args):
        argument.name_hint = f"input{position}"
    network = Network(block)
    results = build(network)
    block.add_op(ReturnOp(*results))
    function = FuncOp("main", (list(inputs), [value.type for value in results]), Region(block))
    return ModuleOp([function])


__all__ = ["Network", "network_of"]
