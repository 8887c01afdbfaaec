"""Errors that point at an op, so that a tool can say in which line of the input it stands."""

from __future__ import annotations

from xdsl.ir import Operation

from mlirt.dialects.locations import names
from mlirt.errors import CompileError


class OperationError(CompileError):
    """Something is wrong with one op; passes raise it where they know the culprit."""

    def __init__(self, op: Operation, message: str) -> None:
        self.op = op
        self.text = message
        super().__init__(f"{title(op)} {message}")


class VerificationError(OperationError):
    """An op breaks a constraint of its own definition, or the IR around it is malformed."""


def title(op: Operation) -> str:
    """How messages introduce an op: its name, and the layers of the trained network that it stands for."""
    layers = names(op.location)
    return f"'{op.name}' op" + (f" (layer {' + '.join(layers)}):" if layers else "")
