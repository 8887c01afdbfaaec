"""What the conversion of one layer works with: a place to put fused ops, and the ops that most families need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from xdsl.context import Context
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirt.dialects.constant_values import array_of, splat_of
from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.access import AccessAttr, broadcast_access, iteration
from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.scalar_builder import Formula, Scalars, arguments_of, yield_as
from mlirt.dialects.locations import name_of
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.tensor_types import dims, element_of, is_unknown, tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.errors import UnsupportedError

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class Conversion:
    """The conversion of one layer `op`; what it emits stands before `op` and bears its name."""

    ctx: Context
    op: Operation

    def emit(self, new: Operation) -> SSAValue:
        """Put an op before the layer and return its first result."""
        block = self.op.parent
        assert block is not None
        new.location = self.op.location
        block.insert_op_before(new, self.op)
        return new.results[0]

    def replace(self, *values: SSAValue) -> None:
        """Let the layer's readers read `values`, and erase it."""
        for old, new in zip(self.op.results, values, strict=True):
            if new.name_hint is None:
                new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        self.op.detach()
        self.op.erase()

    def unsupported(self, what: str) -> UnsupportedError:
        """The error for a layer that cannot be converted; `what` says what was met and what to do."""
        return UnsupportedError(f"layer {name_of(self.op)} ({self.op.name}): {what}")

    def constant(self, array: Array, hint: str = "") -> SSAValue:
        """A constant tensor."""
        name = hint or name_of(self.op)
        return self.emit(ConstantOp.from_array(array, weights_of(self.ctx), name))

    def array_of(self, value: SSAValue) -> Array | None:
        """The elements of a value that is known at build time."""
        return array_of(value, self.ctx)

    def known_array(self, value: SSAValue, what: str) -> Array:
        """The elements of an operand that must be known at build time; raises `UnsupportedError` where it is not."""
        array = self.array_of(value)
        if array is None:
            raise self.unsupported(f"{what} must be known when the engine is built, but it is computed at run time")
        return array

    def pointwise(
        self,
        operands: Sequence[SSAValue],
        result: Attribute,
        compute: Attribute | None,
        formula: Formula,
        yields: Attribute | None = None,
        access: Sequence[AccessAttr] | None = None,
    ) -> SSAValue:
        """A pointwise op whose formula takes one scalar per operand and gives a number of element type `yields`.

        Scalars are converted to the type `compute` (None: they stay as they are). Operands are broadcast by the rule of
        equal ranks unless `access` says otherwise. An operand that is one known number goes into the scalar body.
        """
        space = dims(result)
        given = access or [broadcast_access(dims(operand.type), space) for operand in operands]
        kept = [position for position, operand in enumerate(operands) if splat_of(operand) is None]
        body = self.body([*operands], kept, element_of(result), compute, formula, yields)
        inputs = [operands[position] for position in kept]
        return self.emit(PointwiseOp(inputs, [given[position] for position in kept], [result], body))

    def body(
        self,
        operands: Sequence[SSAValue],
        kept: Sequence[int],
        result: Attribute,
        compute: Attribute | None,
        formula: Formula,
        yields: Attribute | None = None,
    ) -> Region:
        """A scalar region with one argument for each operand at the positions `kept`; the others are known numbers."""
        block = Block()
        elements = [element_of(operand.type) for operand in operands]
        scalars = Scalars(block, compute or result)
        ready = dict(zip(kept, arguments_of(block, [elements[position] for position in kept]), strict=True))
        values = [self._scalar(scalars, operand, ready.get(k), compute) for k, operand in enumerate(operands)]
        outcome = formula(scalars, values)
        yield_as(scalars.on(yields or compute or result), outcome, result)
        return Region(block)

    def _scalar(
        self, scalars: Scalars, operand: SSAValue, ready: SSAValue | None, compute: Attribute | None
    ) -> SSAValue:
        element = element_of(operand.type)
        if ready is not None:
            return scalars.cast(ready, element) if compute is not None else ready
        number = splat_of(operand)
        assert number is not None
        return scalars.on(compute or element).constant(number)

    def moved(self, value: SSAValue, shape: Sequence[Dim], indices: Sequence[Dim]) -> SSAValue:
        """A tensor of the given shape whose element is `value[indices]`, over the iteration dimensions d0, d1, .."""
        element = element_of(value.type)
        access = [AccessAttr.of(indices)]
        return self.emit(PointwiseOp([value], access, [tensor(element, shape)], identity_region(element)))

    def transposed(self, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """The value with its dimensions in the order that `permutation` names, as NumPy's transpose."""
        if list(permutation) == list(range(len(permutation))):
            return value
        shape = dims(value.type)
        place = {source: axis for axis, source in enumerate(permutation)}
        indices = [0 if shape[source] == 1 else iteration(place[source]) for source in range(len(shape))]
        return self.moved(value, [shape[source] for source in permutation], indices)

    def viewed(self, value: SSAValue, shape: Sequence[Dim]) -> SSAValue:
        """The same elements in the same order under other dimensions."""
        from mlirt.dialects.fused.view import ViewOp

        if tuple(shape) == dims(value.type):
            return value
        return self.emit(ViewOp.build(operands=[value], result_types=[tensor(element_of(value.type), shape)]))

    def reshaped(self, value: SSAValue, shape: Sequence[Dim]) -> SSAValue:
        """As `viewed`; a constant becomes a constant of the new dimensions."""
        array = self.array_of(value) if tuple(shape) != dims(value.type) else None
        if array is None:
            return self.viewed(value, shape)
        return self.constant(array.reshape([size for size in shape if isinstance(size, int)]))

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The value with another element type."""
        if element_of(value.type) == element:
            return value
        result = tensor(element, dims(value.type))
        source = element_of(value.type)
        return self.pointwise([value], result, None, lambda s, x: s.cast(x[0], source))


Convert: TypeAlias = Callable[[Conversion], None]
Conversions: TypeAlias = Mapping[type[Operation], Convert]


def require_known(at: Conversion, lengths: Sequence[Dim], what: str, known: frozenset[str] | None = None) -> None:
    """Raise `UnsupportedError` where a length is known only to the run: unnamed, or a name that is not in `known`."""
    if all(isinstance(length, int) for length in lengths):
        return
    unsettled = [length for length in lengths if is_unknown(length) or (known is not None and symbols(length) - known)]
    if unsettled:
        text = ", ".join("?" if length in unsettled else str(length) for length in lengths)
        raise at.unsupported(
            f"its {what} [{text}] is computed at run time; only what follows from the inputs' dimensions is compiled"
        )
