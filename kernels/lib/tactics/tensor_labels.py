"""What the tensors of a network are called once it is lowered: as the network calls them, else after their layers."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, OpResult, SSAValue

from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.interpreter import input_names, output_names
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_names import name_of_hint
from mlirt.dialects.trt.constant import ConstantOp


class TensorLabels:
    """A label of its own for each tensor; a view has that of what it looks at, a constant none."""

    def __init__(self) -> None:
        self._labels: dict[SSAValue, str] = {}
        self._taken: set[str] = set()
        self._known: set[FuncOp] = set()

    def of_layer(self, layer: Operation) -> ArrayAttr[StringAttr]:
        """The labels of the operands, then of the results."""
        self._learn(_function_of(layer))
        return ArrayAttr(StringAttr(self._label(value)) for value in (*layer.operands, *layer.results))

    def _learn(self, function: FuncOp | None) -> None:
        """Inputs and outputs keep their public names."""
        if function is None or function in self._known:
            return
        self._known.add(function)
        for name, value in zip(input_names(function), function.body.block.args, strict=True):
            self._give(value, name)
        last = function.body.block.last_op
        if isinstance(last, ReturnOp):
            for name, value in zip(output_names(function), last.operands, strict=True):
                self._give(_origin(value), name)

    def _give(self, value: SSAValue, name: str) -> None:
        if value not in self._labels:
            self._labels[value] = name
            self._taken.add(name)

    def _label(self, value: SSAValue) -> str:
        value = _origin(value)
        if isinstance(value.owner, ConstantOp):
            return ""
        if value not in self._labels:
            base = _natural(value)
            label, number = base, 1
            while label in self._taken:
                number += 1
                label = f"{base} ({number})"
            self._give(value, label)
        return self._labels[value]


def _origin(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, ViewOp):
        value = value.owner.input
    return value


def _natural(value: SSAValue) -> str:
    if value.name_hint is not None:
        return name_of_hint(value.name_hint)
    return f"{name_of(value.owner)}_output" if isinstance(value, OpResult) else "carried"


def _function_of(op: Operation) -> FuncOp | None:
    at = op.parent_op()
    while at is not None and not isinstance(at, FuncOp):
        at = at.parent_op()
    return at
