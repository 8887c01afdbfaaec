"""What layers need of lengths, asked for once for layers that are equal in all that it follows from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from xdsl.ir import Operation

from mlirt.dialects.length_requirements import LengthRequirement
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.trt.constant import looks


class RepeatedRequirements:
    """Remembers the requirements that are `wanted`, by the properties of layers and the types around them.

    A layer that looks at the elements of a constant, or has layers inside of it, is asked each time.
    """

    def __init__(self, wanted: Callable[[LengthRequirement], bool]) -> None:
        self._wanted = wanted
        self._known: dict[Hashable, Sequence[LengthRequirement]] = {}
        self.asked = 0
        """How many layers have been asked."""

    def of(self, op: Operation) -> Sequence[LengthRequirement]:
        """Those of an op; none of one that is no layer."""
        if not isinstance(op, TensorOp) or type(op).length_requirements is TensorOp.length_requirements:
            return ()
        if op.regions:
            return self._ask(op)
        types = tuple([value.type for value in (*op.operands, *op.results)])
        form = type(op), len(op.operands), types, tuple(op.properties.items())
        known = self._known.get(form)
        if known is None:
            before = looks.count
            known = self._ask(op)
            if looks.count == before:
                self._known[form] = known
        return known

    def _ask(self, op: TensorOp) -> Sequence[LengthRequirement]:
        self.asked += 1
        return tuple(filter(self._wanted, op.length_requirements()))
