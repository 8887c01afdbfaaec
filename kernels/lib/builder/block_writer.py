"""Writes ops at the end of the innermost open block of a kernel; constants go to the start of the kernel."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeVar, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirt.dialects.fused.scalar_builder import integer_type
from mlirt.dialects.tensor_types import is_float
from mlirt.kernels.lib.builder.index_arithmetic import IndexArithmetic
from mlirt.kernels.lib.builder.run_values import Value, value_of

OpT = TypeVar("OpT", bound=Operation)
_INDEX = IndexType()


class BlockWriter(IndexArithmetic):
    """Appends ops to the innermost open block of a kernel whose outermost one is `top`."""

    def __init__(self, top: Block) -> None:
        self.top = top
        self.block = top
        self._constants: dict[Attribute, Value] = {}
        self._last_constant: Operation | None = None
        self._named: list[SSAValue] = []
        self.keeps_names = False
        """Whether each value that a kernel function names has a line in the generated text, also if it is read once."""

    def insert(self, op: OpT) -> OpT:
        """Append an op."""
        self.block.add_op(op)
        return op

    def value(self, op: Operation) -> Value:
        """Append an op and return its result."""
        return value_of(self.insert(op).results[0])

    def constant(self, value: float, type_: Attribute = _INDEX) -> Value:
        """A number that is part of the code; equal ones are one op at the start of the kernel."""
        if is_float(type_):
            attr = FloatAttr(float(value), cast("AnyFloat", type_))
        elif isinstance(type_, IndexType):
            attr = IntegerAttr(int(value), type_)
        else:
            attr = IntegerAttr(int(value), integer_type(type_), truncate_bits=True)
        if attr not in self._constants:
            op = arith.ConstantOp(attr)
            if self._last_constant is not None:
                self.top.insert_op_after(op, self._last_constant)
            elif self.top.first_op is not None:
                self.top.insert_op_before(op, self.top.first_op)
            else:
                self.top.add_op(op)
            self._last_constant = op
            self._constants[attr] = value_of(op.result)
        return self._constants[attr]

    def named(self, value: SSAValue, name: str, *, keep: bool = False) -> Value:
        """A value that goes by a name if it is read more than once, or in any case; numbers have no names.

        Tensors of the network, which a kernel function may be given, keep the names that they have.
        """
        has_names = not isinstance(value.owner, arith.ConstantOp) and not isinstance(value.type, TensorType)
        if value.name_hint is None and has_names:
            value.name_hint = name
            if not keep:
                self._named.append(value)
        return value_of(value)

    def forget_names(self) -> None:
        """Take the names of what is read once: generated text has it where it is read, and compilers see the same."""
        for value in self._named:
            owner = value.owner
            if isinstance(owner, Operation) and owner.name.startswith(("arith.", "math.")) and value.has_one_use():
                (use,) = value.uses
                if use.operation.parent is owner.parent:
                    value.name_hint = None

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Append to `block` for a while."""
        outer, self.block = self.block, block
        try:
            yield
        finally:
            self.block = outer
