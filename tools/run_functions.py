"""Executes the tests that stand in a module: its functions without arguments, with the expectations in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from mlirt.dialects.check.expect_close import ExpectationError, ExpectCloseOp
from mlirt.dialects.check.input import InputOp
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.errors import MlirtError

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def run_functions(module: ModuleOp, ctx: RtContext, target: str) -> Iterator[MlirtError]:
    """Run every function without arguments; yields the error of each that fails.

    `reference` interprets the function as it is. Other targets compile it as a network whose inputs are the
    `check.input` ops and whose outputs are the tensors that something is expected of; the expectations are interpreted.
    """
    for function in _tests(module):
        try:
            if target == "reference":
                interpret(module, ctx, {}, function.sym_name.data)
            else:
                _run_compiled(function, ctx, target)
        except MlirtError as error:
            yield error


def has_tests(module: ModuleOp) -> bool:
    """Whether a module has a function without arguments."""
    return bool(_tests(module))


def _tests(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration and not op.args]


def _run_compiled(function: FuncOp, ctx: RtContext, target: str) -> None:
    from mlirt.builder.build import build

    engine = build(network_of(function), ctx, target)
    outputs = engine.run(input_arrays(function))
    expectations = expectations_of(function)
    actuals = {f"actual{index}": array for index, array in enumerate(outputs.values())}
    try:
        interpret(expectations, ctx, actuals)
    except ExpectationError as error:
        # The copy failed; the message is about the op that stands in the file.
        place = _expectations(expectations).index(error.op)
        raise ExpectationError(_expectations(function)[place], error.text) from error


def _expectations(inside: Operation) -> list[Operation]:
    return [op for op in inside.walk() if isinstance(op, ExpectCloseOp)]


def input_arrays(function: FuncOp) -> dict[str, Array]:
    """The values of the inputs of `network_of`, by name."""
    inputs = [op for op in function.body.block.ops if isinstance(op, InputOp)]
    return {f"input{index}": op.array() for index, op in enumerate(inputs)}


def network_of(function: FuncOp) -> ModuleOp:
    """The function as a network: `main` takes the `check.input` values and returns what expectations look at."""
    block = _copy_of_body(function)
    for op in list(block.ops):
        if isinstance(op, InputOp):
            op.output.replace_all_uses_with(_new_argument(block, "input", op.output))
    outputs = list(dict.fromkeys(op.actual for op in block.ops if isinstance(op, ExpectCloseOp)))
    for op in block.ops:
        if isinstance(op, ExpectCloseOp):
            _erase(op)
    return _main(block, outputs, checks=True)


def expectations_of(function: FuncOp) -> ModuleOp:
    """The other half: `main` takes what the network returned, and holds the expectations and what they compare with."""
    block = _copy_of_body(function)
    arguments: dict[SSAValue, SSAValue] = {}
    for op in block.ops:
        if isinstance(op, ExpectCloseOp):
            if op.actual not in arguments:
                arguments[op.actual] = _new_argument(block, "actual", op.actual)
            op.operands[0] = arguments[op.actual]
    return _main(block, [], checks=False)


def _copy_of_body(function: FuncOp) -> Block:
    return function.body.clone().detach_block(0)


def _new_argument(block: Block, kind: str, like: SSAValue) -> SSAValue:
    argument = block.insert_arg(like.type, len(block.args))
    argument.name_hint = f"{kind}{len(block.args) - 1}"
    return argument


def _main(block: Block, outputs: list[SSAValue], *, checks: bool) -> ModuleOp:
    """A module whose `main` has this body and these outputs, without what neither they nor an expectation needs.

    With `checks`, ops without results stay: limits of loops, conditions, checks of inputs.
    """
    terminator = block.last_op
    assert isinstance(terminator, ReturnOp)
    _erase(terminator)
    block.add_op(ReturnOp(*outputs))
    for op in reversed(list(block.ops)):
        is_kept = isinstance(op, (ExpectCloseOp, ReturnOp)) or (checks and not op.results)
        if not is_kept and not any(result.uses for result in op.results):
            _erase(op)
    types = ([argument.type for argument in block.args], [value.type for value in outputs])
    return ModuleOp([FuncOp("main", types, Region(block))])


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()
