"""Meanings of ops that plugins bring as xDSL's classes of interpreter functions, for ops that have no `reference`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mlirt.dialects.pass_plugins import active

if TYPE_CHECKING:
    from xdsl.interpreter import InterpreterFunctions

    from mlirt.dialects.tensor_op import Array


def plugin_results(op: Operation, operands: Sequence[Array]) -> Sequence[Array] | None:
    """What the first plugin that interprets the op makes of its operands; None where none does."""
    for plugin in active():
        for functions in plugin.interpreters():
            found = _results(functions, op, operands)
            if found is not None:
                return found
    return None


def _results(functions: type[InterpreterFunctions], op: Operation, operands: Sequence[Array]) -> Sequence[Array] | None:
    import numpy as np
    from xdsl.interpreter import Interpreter
    from xdsl.utils.exceptions import InterpretationError

    top = op.get_toplevel_object()
    interpreter = Interpreter(top if isinstance(top, ModuleOp) else ModuleOp([]))
    interpreter.register_implementations(functions())
    try:
        return [np.asarray(one) for one in interpreter.run_op(op, tuple(operands))]
    except InterpretationError as error:
        if str(error).startswith("Could not find interpretation function"):
            return None
        raise
