"""What the ops at the borders of loops and conditionals share: a symbol that ties them together, no meaning alone."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import SymbolRefAttr

from mlirt.dialects.tensor_op import TensorOp
from mlirt.errors import UnsupportedError

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class BoundaryOp(TensorOp, ABC):
    """An op at the border of the loop or conditional that its symbol names."""

    def reference(self, *arrays: Array) -> Sequence[Array]:
        raise UnsupportedError("has a meaning only as part of its loop or conditional: convert it to scf first")


def symbol_of(reference: SymbolRefAttr) -> str:
    """The name that ties the ops of one loop or conditional together."""
    return reference.root_reference.data
