"""Runs a host program on NumPy memory: every launch by the SIMT interpreter, so that lowered networks run anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, Region, SSAValue

from mlirt.dialects.context import weights_of
from mlirt.dialects.interpreter import entry_function, input_names, named_outputs, with_run_number
from mlirt.dialects.kernel.core import FuncOp as KernelOp
from mlirt.dialects.kernel.library_op import LibraryOp
from mlirt.dialects.kernel.plugin import PluginOp
from mlirt.dialects.kernel.worker import PARTS
from mlirt.dialects.length_requirements import LengthRequirement, requirements_of
from mlirt.dialects.locations import name_of
from mlirt.dialects.plan.control import Control, IfOp, RequireLengthsOp, RequireOp, SizeOp, WhileOp, ops_in
from mlirt.dialects.plan.expression import Argument, ExpressionAttr
from mlirt.dialects.plan.ops import BufferOp, InputOp, LaunchOp, OutputOp, ViewOp, WeightOp
from mlirt.dialects.plan.tensor_map import TensorMapAttr
from mlirt.dialects.symbol_values import bind
from mlirt.dialects.symbolic import evaluate
from mlirt.dialects.tensor_types import byte_width, dims, element_of, numpy_dtype
from mlirt.errors import CompileError, InvalidInputError, UnmetConditionError

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter import Argument as KernelArgument
    from mlirt.dialects.tensor_op import Array

# What memory holds before a launch writes it: as a float not-a-number, as an index far out of bounds.
_GARBAGE = 0xFF


def run_plan(module: ModuleOp, ctx: Context, inputs: Mapping[str, Array], *, check: bool = True) -> dict[str, Array]:
    """The outputs of a lowered network by name; with `check` a kernel's races and reads of nothing are errors."""
    func = entry_function(module)
    sizes = {op.symbol.data: 1 for op in func.walk() if isinstance(op, SizeOp)}
    while True:
        try:
            return _run_once(module, ctx, inputs, check, sizes)
        except _WrongSize as found:
            sizes[found.symbol] = found.size


class _WrongSize(Exception):
    def __init__(self, symbol: str, size: int) -> None:
        super().__init__(symbol, size)
        self.symbol, self.size = symbol, size


def _run_once(
    module: ModuleOp, ctx: Context, inputs: Mapping[str, Array], check: bool, sizes: Mapping[str, int]
) -> dict[str, Array]:
    func = entry_function(module)
    inputs = with_run_number(func, inputs)
    run = _Run(module, ctx, check)
    run.symbols.update(sizes)
    for name, value in zip(input_names(func), func.body.block.args, strict=True):
        bind(value.type, inputs[name].shape, run.symbols, f"input {name!r}")
        run.tensors[value] = inputs[name]
    for one in requirements_of(func):
        run.require_lengths(one)
    return named_outputs(func, run.block(func))


class _Run:
    def __init__(self, module: ModuleOp, ctx: Context, check: bool) -> None:
        self.ctx, self.check = ctx, check
        self.kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp | LibraryOp | PluginOp)}
        self.symbols: dict[str, int] = {PARTS: 1}
        self.tensors: dict[SSAValue, Array] = {}
        self.memory: dict[SSAValue, Array] = {}
        self.written: set[int] = set()

    def block(self, func: FuncOp) -> list[Array]:
        for op in func.body.block.ops:
            if isinstance(op, ReturnOp):
                return [self.tensors[value] for value in op.operands]
            self.execute(op)
        raise CompileError("the function does not end with func.return")

    def execute(self, op: Operation) -> None:
        import numpy as np

        if isinstance(op, InputOp):
            self.memory[op.buffer] = self._filled(np.ascontiguousarray(self.tensors[op.source]))
        elif isinstance(op, WeightOp):
            self.memory[op.buffer] = self._filled(np.ascontiguousarray(weights_of(self.ctx).get(op.value)))
        elif isinstance(op, BufferOp):
            size = evaluate(op.bytes.value(), self.symbols)
            self.memory[op.buffer] = np.full(size, _GARBAGE if op.halo is None else op.fill.value.data, np.uint8)
            if op.halo is not None:
                self.written.add(_address(self.memory[op.buffer]))
        elif isinstance(op, ViewOp):
            first = evaluate(op.offset.value(), self.symbols)
            last = first + evaluate(op.bytes.value(), self.symbols)
            self.memory[op.buffer] = self.memory[op.source][first:last]
        elif isinstance(op, OutputOp):
            self.tensors[op.result] = self._tensor(op)
        elif isinstance(op, LaunchOp):
            self._launch(op)
        elif isinstance(op, Control):
            self._control(op)
        else:
            raise CompileError(f"the host program has {op.name}, which the plan interpreter does not know")

    def _control(self, op: Control) -> None:
        if isinstance(op, IfOp):
            self._region(op.then if self._holds(op) else op.otherwise)
        elif isinstance(op, WhileOp):
            self._region(op.before)
            while self._holds(op):
                self._region(op.body)
                self._region(op.before)
        elif isinstance(op, SizeOp):
            self._settle(op)
        elif isinstance(op, RequireLengthsOp):
            self.require_lengths(op.requirement())
        elif not self._holds(op):
            raise UnmetConditionError(op.message.data)

    def require_lengths(self, one: LengthRequirement) -> None:
        violation = one.violation(self.symbols)
        if violation is not None:
            raise InvalidInputError(f"layer {one.layer}: {violation}")

    def _region(self, region: Region) -> None:
        for op in ops_in(region):
            self.execute(op)

    def _holds(self, op: IfOp | WhileOp | RequireOp) -> bool:
        return bool(self.memory[op.condition][evaluate(op.offset.value(), self.symbols)])

    def _settle(self, op: SizeOp) -> None:
        """Learn a size; where the run has been made with another one, it has to be made again."""
        symbol = op.symbol.data
        if op.word is None:
            assert op.value is not None
            size = evaluate(op.value.value(), self.symbols)
        else:
            start = evaluate(op.offset.value(), self.symbols)
            size = int(self.memory[op.word][start : start + 8].view("int64")[0])
        if size != self.symbols[symbol]:
            raise _WrongSize(symbol, size)

    def _filled(self, array: Array) -> Array:
        data = array.reshape(-1).view("u1").copy()
        self.written.add(_address(data))
        return data

    def _tensor(self, op: OutputOp) -> Array:
        shape = [evaluate(dim, self.symbols) for dim in dims(op.result.type)]
        dtype = numpy_dtype(element_of(op.result.type))
        return self.memory[op.buffer].view(dtype).reshape(shape).copy()

    def _launch(self, op: LaunchOp) -> None:
        from mlirt.dialects.kernel.interpreter import run_kernel
        from mlirt.dialects.kernel.interpreter_library import run_call
        from mlirt.dialects.kernel.interpreter_plugin import run_plugin

        kernel = self.kernels[op.kernel_name()]
        types = kernel.function_type.inputs
        arguments = [self._argument(op, given, type_) for given, type_ in zip(op.arguments(), types, strict=True)]
        if isinstance(kernel, LibraryOp):
            run_call(kernel, arguments)
        elif isinstance(kernel, PluginOp):
            run_plugin(kernel, arguments, name_of(op), self.ctx)
        else:
            filled = [k for k, given in enumerate(arguments) if self._address_of(given) in self.written]
            grid = None if op.grid is None else [evaluate(size.value(), self.symbols) for size in op.grid]
            run_kernel(kernel, arguments, grid, check=self.check, updated=filled)
        self.written.update(_address(self.memory[buffer]) for buffer in op.buffers)

    def _argument(self, op: LaunchOp, given: Argument, type_: Attribute) -> KernelArgument:
        from mlirt.dialects.kernel.interpreter import OffsetBuffer

        if isinstance(given, ExpressionAttr):
            return evaluate(given.value(), self.symbols)
        if isinstance(given, FloatAttr):
            return given.value.data
        if isinstance(given, TensorMapAttr):
            return self._tensor_map(op, given)
        assert isinstance(type_, MemRefType)
        element = cast("MemRefType[Attribute]", type_).get_element_type()
        data = self.memory[op.buffers[given.operand.data]]
        start = evaluate(given.value(), self.symbols)
        return OffsetBuffer(data.view(numpy_dtype(element)), start // byte_width(element))

    def _tensor_map(self, op: LaunchOp, given: TensorMapAttr) -> KernelArgument:
        from mlirt.dialects.kernel.interpreter import TensorMap

        data = self.memory[op.buffers[given.operand.data]].view(numpy_dtype(given.element))
        start = evaluate(given.value(), self.symbols)
        sizes, steps = (
            tuple(evaluate(one, self.symbols) for one in some) for some in (given.size_list(), given.step_list())
        )
        return TensorMap(data, start // byte_width(given.element), sizes, steps, given.walk())

    def _address_of(self, given: KernelArgument) -> int | None:
        from mlirt.dialects.kernel.interpreter import OffsetBuffer, TensorMap

        return _address(given.array) if isinstance(given, OffsetBuffer | TensorMap) else None


def _address(array: Array) -> int:
    return array.ctypes.data


__all__: Sequence[str] = ["run_plan"]
