"""Builds networks of fused ops in Python, and compares their kernels with their references, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from lowered_network import compare
from xdsl.dialects.arith import AddfOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.fused_op import YieldOp, scalar_region
from mlirt.dialects.locations import named
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.symbolic_text import parse
from mlirt.dialects.tensor_types import Tensor, element_type, tensor
from mlirt.dialects.verification import verify

Array = np.ndarray[Any, np.dtype[Any]]


class Network:
    """A function under construction; `add` appends an op and gives its first result."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.inputs: list[SSAValue] = list(block.args)

    @property
    def pair(self) -> tuple[SSAValue, SSAValue]:
        """Two inputs."""
        first, second = self.inputs
        return first, second

    @property
    def triple(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Three inputs."""
        first, second, third = self.inputs
        return first, second, third

    def add(self, op: Operation, layer: str = "") -> SSAValue:
        op.location = named(layer or f"layer{len(list(self.block.ops))}")
        self.block.add_op(op)
        return op.results[0]


Add = Callable[[Operation], SSAValue]
Build = Callable[[Network], Sequence[SSAValue]]


def network_of(inputs: Sequence[Attribute], build: Build) -> ModuleOp:
    """A module whose function takes tensors of these types (named input0, ..) and returns what `build` gives."""
    block = Block(arg_types=inputs)
    for position, argument in enumerate(block.args):
        argument.name_hint = f"input{position}"
    network = Network(block)
    results = build(network)
    block.add_op(ReturnOp(*results))
    function = FuncOp("main", (list(inputs), [value.type for value in results]), Region(block))
    module = ModuleOp([function])
    verify(module)
    return module


def context() -> RtContext:
    """A context that knows all dialects."""
    made = RtContext()
    register_dialects(made)
    return made


def check(
    inputs: Sequence[Attribute], build: Build, arrays: Sequence[Array], *, rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """Assert that the generic kernels of a network compute what its reference says, on every target."""
    named_arrays = {f"input{position}": array for position, array in enumerate(arrays)}
    compare(network_of(inputs, build), context(), named_arrays, rtol=rtol, atol=atol)


def dim(size: int | str) -> Dim:
    return parse(size) if isinstance(size, str) else size


def t(element: str, *sizes: int | str) -> Tensor:
    """A tensor type: `t("float32", "n", 3)`."""
    return tensor(element_type(element), [dim(size) for size in sizes])


def access(*indices: int | str) -> AccessAttr:
    return AccessAttr.of([dim(index) for index in indices])


def region(elements: Sequence[str], body: Callable[[Add, list[SSAValue]], Sequence[SSAValue]]) -> Region:
    """A scalar region; `body(add, arguments)` appends ops with `add` and gives the values to yield."""
    made = scalar_region([element_type(element) for element in elements])

    def add(op: Operation) -> SSAValue:
        made.block.add_op(op)
        return op.results[0]

    made.block.add_op(YieldOp(operands=[list(body(add, list(made.block.args)))]))
    return made


def summing(count: int) -> Region:
    """A region that adds up its f32 arguments."""

    def body(add: Add, values: list[SSAValue]) -> Sequence[SSAValue]:
        total = values[0]
        for value in values[1:]:
            total = add(AddfOp(total, value))
        return [total]

    return region(["float32"] * count, body)


def random_array(rng: np.random.Generator, element: str, shape: Sequence[int]) -> Array:
    """Small numbers of an element type."""
    dtype = np.dtype(element)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.integers(-9 if dtype.kind == "i" else 0, 10, shape).astype(dtype)


__all__ = [
    "Add",
    "Network",
    "access",
    "check",
    "context",
    "dim",
    "network_of",
    "random_array",
    "region",
    "summing",
    "t",
]
