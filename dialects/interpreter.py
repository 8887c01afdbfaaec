"""Runs a module op by op with the NumPy meaning of each op: what every target must agree with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.context import weights_of
from mlirt.dialects.diagnostics import OperationError, title
from mlirt.dialects.length_requirements import requirements_of
from mlirt.dialects.pass_plugins import active
from mlirt.dialects.plugin_interpreters import plugin_results
from mlirt.dialects.region_interpreter import execute, is_structural, restored
from mlirt.dialects.regions import ControlOp, Terminator
from mlirt.dialects.symbol_values import bind, symbol_values
from mlirt.dialects.symbolic import evaluate, symbols
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims, element_name, element_of, is_tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.dialects.trt.run_number import this_run
from mlirt.dialects.weights import WeightStore
from mlirt.errors import CompileError, InvalidInputError, MlirtError, UnmetConditionError, UnsupportedError

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

Observer = Callable[[Operation, "Sequence[Array]"], None]


def interpret(
    module: ModuleOp,
    ctx: Context,
    inputs: Mapping[str, Array],
    function: str = "main",
    observe: Observer | None = None,
) -> dict[str, Array]:
    """The outputs of a network by name, for inputs by name.

    `observe(op, results)` is called after each op. Raises `InvalidInputError` for inputs that do not fit, and an error
    that names the layer where an op fails.
    """
    func = entry_function(module, function)
    inputs = with_run_number(func, inputs)
    guesses = dict.fromkeys(_late_sizes(func), 1)
    while True:
        arguments, values = _bind_inputs(func, inputs)
        _check_requirements(func, values)
        values.update(guesses)
        try:
            with symbol_values(values):
                results = _Interpreter(weights_of(ctx), values, guesses, observe).run(func.body.block, arguments)
        except _WrongGuess as found:
            guesses[found.symbol] = found.size
        else:
            return named_outputs(func, results)


class _WrongGuess(Exception):
    """A size is another than it was taken for."""

    def __init__(self, symbol: str, size: int) -> None:
        super().__init__(symbol, size)
        self.symbol, self.size = symbol, size


def _late_sizes(func: FuncOp) -> list[str]:
    """Symbols that tensors have before the op that gives them their value: what a loop collects until it ends."""
    ops = list(func.walk())
    defined = {op.symbol.data: place for place, op in enumerate(ops) if isinstance(op, DefineSizeOp)}
    if not defined:
        return []
    late: set[str] = set()
    for place, op in enumerate(ops):
        types = [result.type for result in op.results if is_tensor(result.type)]
        if not isinstance(op, ControlOp):
            late |= {name for of in types for dim in dims(of) for name in symbols(dim) if place < defined.get(name, -1)}
    return sorted(late)


def entry_function(module: ModuleOp, function: str = "main") -> FuncOp:
    """The function of this name; raises `InvalidInputError` where the module has none."""
    for op in module.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == function:
            return op
    found = ", ".join(op.sym_name.data for op in module.ops if isinstance(op, FuncOp)) or "none"
    raise InvalidInputError(f"no function {function!r} in the module, its functions are: {found}")


def input_names(func: FuncOp) -> list[str]:
    """The public names of a function's arguments: `trt.name`, else the name of the value, else `input0`, ..

    A name that several values have, as lowering may give it, is that of none of them.
    """
    hints = [arg.name_hint for arg in func.body.block.args]
    own = [hint if hint and hints.count(hint) == 1 else f"input{k}" for k, hint in enumerate(hints)]
    return _names(func.arg_attrs, own)


def counts_runs(func: FuncOp) -> list[bool]:
    """For each argument whether it is the number of the run, which no caller gives: `trt.counts_runs`."""
    if func.arg_attrs is None:
        return [False] * len(func.body.block.args)
    return ["trt.counts_runs" in entry.data for entry in func.arg_attrs]


def with_run_number(func: FuncOp, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    """The inputs that a caller gives, and the number of the run where the function asks for it."""
    asked = [name for name, counts in zip(input_names(func), counts_runs(func), strict=True) if counts]
    return {**inputs, **{name: this_run() for name in asked if name not in inputs}}


def output_names(func: FuncOp) -> list[str]:
    """The public names of a function's results: `trt.name`, else `output0`, .."""
    return _names(func.res_attrs, [f"output{k}" for k in range(len(func.function_type.outputs))])


def squeezed_outputs(func: FuncOp) -> list[bool]:
    """For each result whether its caller gets it without dimensions of length 1: `trt.squeezed`."""
    if func.res_attrs is None:
        return [False] * len(func.function_type.outputs)
    return ["trt.squeezed" in entry.data for entry in func.res_attrs]


def named_outputs(func: FuncOp, results: Sequence[Array]) -> dict[str, Array]:
    """A function's results as its caller gets them, by name."""
    squeezed = squeezed_outputs(func)
    given = [result.squeeze() if bare else result for result, bare in zip(results, squeezed, strict=True)]
    return dict(zip(output_names(func), given, strict=True))


def _names(attributes: ArrayAttr[DictionaryAttr] | None, defaults: Sequence[str]) -> list[str]:
    given = [entry.data.get("trt.name") for entry in attributes] if attributes is not None else [None] * len(defaults)
    return [
        name.data if isinstance(name, StringAttr) else default for name, default in zip(given, defaults, strict=True)
    ]


def _bind_inputs(func: FuncOp, inputs: Mapping[str, Array]) -> tuple[list[Array], dict[str, int]]:
    expected = input_names(func)
    missing, extra = [n for n in expected if n not in inputs], [n for n in inputs if n not in expected]
    if missing or extra:
        raise InvalidInputError(f"inputs {sorted(inputs)} do not fit the network, expected {expected}")
    values: dict[str, int] = {}
    arrays: list[Array] = []
    for name, argument in zip(expected, func.body.block.args, strict=True):
        array = inputs[name]
        _check_element(f"input {name!r}", argument.type, array)
        bind(argument.type, array.shape, values, f"input {name!r}")
        arrays.append(array)
    return arrays, values


def _check_requirements(func: FuncOp, values: Mapping[str, int]) -> None:
    for one in requirements_of(func):
        violation = one.violation(values)
        if violation is not None:
            raise InvalidInputError(f"layer {one.layer}: {violation}; give inputs that fit")


def _check_element(label: str, of: Attribute, array: Array) -> None:
    expected = element_name(element_of(of))
    if array.dtype.name != expected:
        raise InvalidInputError(f"{label}: expected element type {expected}, got {array.dtype.name}")


class _Interpreter:
    """Executes blocks; values are dropped after their last use, so that memory stays that of a run."""

    def __init__(
        self, store: WeightStore, symbols: dict[str, int], guesses: Mapping[str, int], observe: Observer | None
    ) -> None:
        self.store = store
        self.guesses = guesses
        self.symbols = symbols
        self.observe = observe

    def run(
        self, block: Block, arguments: Sequence[Array], around: Mapping[SSAValue, Array] | None = None
    ) -> list[Array]:
        """The values that the block's terminator ends with; `around` has what the block sees of its surroundings."""
        known: dict[SSAValue, Array] = {**(around or {}), **dict(zip(block.args, arguments, strict=True))}
        last = _last_uses(block)
        for op in block.ops:
            operands = [known[operand] for operand in op.operands]
            if isinstance(op, ReturnOp | Terminator):
                return operands
            results = self._structural(op, operands, known) if is_structural(op) else self._results(op, operands)
            known.update(zip(op.results, results, strict=True))
            if self.observe is not None:
                self.observe(op, results)
            for value in last.get(op, ()):
                known.pop(value, None)
        raise CompileError("the function does not end with func.return")

    def _results(self, op: Operation, operands: Sequence[Array]) -> Sequence[Array]:
        try:
            self._check_lengths(op)
            results = self._execute(op, operands)
            for result, array in zip(op.results, results, strict=True):
                _check_element("its result", result.type, array)
                bind(result.type, array.shape, self.symbols, "its result")
        except OperationError:
            raise  # it names the op itself
        except MlirtError as error:
            raise type(error)(f"{title(op)} {error}") from error
        except (VerifyException, ValueError, IndexError) as error:
            raise InvalidInputError(f"{title(op)} cannot be computed for these inputs: {error}") from error
        return results

    def _check_lengths(self, op: Operation) -> None:
        """Check what the op needs of lengths, but for those that are only guessed yet."""
        if not isinstance(op, TensorOp):
            return
        for one in op.length_requirements():
            violation = None if one.symbols & self.guesses.keys() else one.violation(self.symbols)
            if violation is not None:
                raise UnmetConditionError(f"{violation}; give inputs that fit")

    def _structural(self, op: Operation, operands: Sequence[Array], known: Mapping[SSAValue, Array]) -> Sequence[Array]:
        """The results of a branch or a loop: what is learnt about sizes in a region holds for that iteration alone."""
        before = dict(self.symbols)

        def run(block: Block, arguments: Sequence[Array]) -> list[Array]:
            restored(self.symbols, before)
            for argument, array in zip(block.args, arguments, strict=True):
                if is_tensor(argument.type):
                    bind(argument.type, array.shape, self.symbols, "its value")
            return self.run(block, arguments, known)

        results = execute(op, operands, run)
        defined = {name: value for name, value in self.symbols.items() if name not in before}
        restored(self.symbols, before)
        for result, array in zip(op.results, results, strict=True):
            if is_tensor(result.type):
                bind(result.type, array.shape, self.symbols, "its result")
        self.symbols.update({name: value for name, value in defined.items() if name not in self.symbols})
        return results

    def _define(self, op: DefineSizeOp, operands: Sequence[Array]) -> None:
        dimension = op.dimension()
        size = int(operands[0]) if dimension is None else evaluate(dimension, self.symbols)
        if size < 0:
            raise InvalidInputError(f"the size {op.symbol.data} would be {size}")
        if self.guesses.get(op.symbol.data, size) != size:
            raise _WrongGuess(op.symbol.data, size)
        self.symbols[op.symbol.data] = size

    def _execute(self, op: Operation, operands: Sequence[Array]) -> Sequence[Array]:
        if isinstance(op, ConstantOp):
            return [op.array(self.store)]
        if isinstance(op, DefineSizeOp):
            self._define(op, operands)
        reference = getattr(op, "reference", None)
        if reference is None and (results := plugin_results(op, operands)) is not None:
            return results
        if reference is None:
            brought = type(op).__module__ in {plugin.module.__name__ for plugin in active()}
            what = "give its class a method reference(self, *arrays)" if brought else "lower or remove it first"
            raise UnsupportedError(f"is not known to the interpreter: {what}")
        return reference(*operands)


def _last_uses(block: Block) -> dict[Operation, list[SSAValue]]:
    """For each op, the values that nothing after it needs."""
    users: dict[SSAValue, Operation] = {value: op for op in block.ops for value in _read(op)}
    last: dict[Operation, list[SSAValue]] = {}
    for value, op in users.items():
        last.setdefault(op, []).append(value)
    for op in block.ops:
        last.setdefault(op, []).extend(result for result in op.results if result not in users)
    return last


def _read(op: Operation) -> Iterator[SSAValue]:
    """The values that an op or an op inside its regions uses."""
    for inner in op.walk():
        yield from inner.operands
