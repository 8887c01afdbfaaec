"""Networks made in Python, run by the interpreter before and after passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from trt_layers import as_attribute
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import VarOperandDef

from mlirt.dialects.context import RtContext
from mlirt.dialects.dominance import verify_dominance
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.locations import named
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import element_type, tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.pipeline_text import parse_pipeline

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class NetworkBuilder:
    """A function `main` that grows layer by layer; inputs are called `input0`, .., layers by their class and number."""

    def __init__(self) -> None:
        self.ctx = RtContext()
        self.block = Block()
        self.inputs: list[Array] = []

    def input(self, array: Array) -> SSAValue:
        """An input with the array's type, which a run feeds with the array."""
        self.inputs.append(array)
        return self.block.insert_arg(type_of(array), len(self.block.args))

    def constant(self, array: Array) -> SSAValue:
        op = ConstantOp.from_array(array, self.ctx.weights, f"weights{len(list(self.block.ops))}")
        self.block.add_op(op)
        return op.output

    def layer(
        self,
        op_class: type[TensorOp],
        operands: Sequence[SSAValue | None],
        results: int = 1,
        element: Attribute | None = None,
        **properties: object,
    ) -> list[SSAValue]:
        """The results of a new layer; properties are plain values."""
        definitions = [definition for _, definition in op_class.get_irdl_definition().operands]
        given: list[Any] = [*operands, *[None] * (len(definitions) - len(operands))]
        if type(definitions[0]) is VarOperandDef:
            given = [list(operands)]
        attributes = {name: as_attribute(op_class, name, value) for name, value in properties.items()}
        if element is not None:
            assert isinstance(operands[0], SSAValue)
            op = cast(Any, op_class).cast(operands[0], element)
        else:
            op = op_class.build_inferred(given, attributes, results=results)
        op.location = named(f"{op_class.name}_{len(list(self.block.ops))}")
        self.block.add_op(op)
        return list(op.results)

    def module(self, outputs: Sequence[SSAValue]) -> ModuleOp:
        """The network that returns these values."""
        self.block.add_op(ReturnOp(*outputs))
        types = ([argument.type for argument in self.block.args], [value.type for value in outputs])
        module = ModuleOp([FuncOp("main", types, Region(self.block))])
        module.verify()
        return module

    def run(self, module: ModuleOp) -> list[Array]:
        """The outputs for the arrays that the inputs were made from."""
        feeds: Mapping[str, Array] = {f"input{k}": array for k, array in enumerate(self.inputs)}
        with np.errstate(all="ignore"):
            return list(interpret(module, self.ctx, feeds).values())


def type_of(array: Array) -> Attribute:
    return tensor(element_type(array.dtype.name), [int(size) for size in array.shape])


def layers_of(module: ModuleOp) -> list[Operation]:
    """The ops in the bodies of functions."""
    return [op for op in module.walk() if isinstance(op.parent_op(), FuncOp)]


def run_passes(module: ModuleOp, ctx: RtContext, pipeline: str) -> None:
    """Run passes; the IR is verified after each."""
    for one in parse_pipeline(pipeline):
        one.apply(ctx, module)
        module.verify()
        verify_dominance(module)


def compare(
    build: Callable[[NetworkBuilder], Sequence[SSAValue]], pipeline: str, rtol: float = 1e-5, atol: float = 1e-6
) -> ModuleOp:
    """Build a network, run it, run passes, run it again: the outputs agree. Returns the module after the passes."""
    builder = NetworkBuilder()
    module = builder.module(build(builder))
    expected = builder.run(module)
    run_passes(module, builder.ctx, pipeline)
    for before, after in zip(expected, builder.run(module), strict=True):
        assert (before.dtype, before.shape) == (after.dtype, after.shape)
        if before.dtype.kind in "fV":
            wide = before.astype(np.float64), after.astype(np.float64)
            np.testing.assert_allclose(wide[1], wide[0], rtol, atol)
        else:
            np.testing.assert_array_equal(after, before)
    return module
