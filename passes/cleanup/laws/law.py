"""What a law is: a function from a layer to the value that its readers may read instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.constant_values import splat_of
from mlirt.dialects.locations import fuse
from mlirt.dialects.tensor_op import TensorOp
from mlirt.passes.cleanup.rewriting import insert_before


@dataclass(frozen=True)
class Site:
    """A layer that a law looks at."""

    ctx: Context
    op: Operation

    def make(
        self,
        kind: type[TensorOp],
        operands: Sequence[SSAValue | None],
        properties: Mapping[str, Attribute],
        *absorbed: Operation,
    ) -> SSAValue:
        """A new layer in front of this one, named after this one and those that it absorbs."""
        return insert_before(self.op, kind.build_inferred(operands, properties), fuse(*absorbed, self.op))


# None: the law does not hold here. A value of another type than the layer's result counts as None.
Law: TypeAlias = "Callable[[Site], SSAValue | None]"
Laws: TypeAlias = Mapping[Any, tuple[Law, ...]]


def is_number(value: SSAValue, number: float) -> bool:
    """Whether a value is a constant with this number everywhere; 0.0 and -0.0 are equal."""
    return splat_of(value) == number


def real(value: float) -> FloatAttr:
    """The property for a coefficient."""
    return FloatAttr(value, f64)
