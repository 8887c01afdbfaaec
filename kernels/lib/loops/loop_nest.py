"""Loop nests over affine accesses: each operand's address is a sum of iteration index times stride, symbolically.

Neighbouring dimensions that every operand walks through like one are merged, so that most nests have one or two
loops, and the last one stays the one along which memory is contiguous.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.kernel.core import SMALL_STEPS, LoadOp, StoreOp
from mlirt.dialects.symbolic import Dim, coefficient_of, substitute
from mlirt.dialects.tensor_types import element_of
from mlirt.dialects.typical_sizes import typical
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder, Stride
from mlirt.kernels.lib.builder.placement import Placement
from mlirt.kernels.lib.builder.run_values import Value, value_of


@dataclass(frozen=True)
class Affine:
    """The element of `value` at `offset + sum of index * step` (in elements, over the dimensions of a nest)."""

    value: SSAValue
    steps: tuple[Dim, ...]
    offset: Dim = 0


def affine(value: SSAValue, place: Placement, access: AccessAttr, rank: int) -> Affine:
    """The elements that an access picks, over `rank` iteration dimensions."""
    indices = access.indices()
    steps = tuple(
        total(
            [coefficient_of(index, f"d{axis}") * stride for index, stride in zip(indices, place.strides, strict=True)]
        )
        for axis in range(rank)
    )
    origin: dict[str, Dim] = {f"d{axis}": 0 for axis in range(rank)}
    offset = total([substitute(index, origin) * stride for index, stride in zip(indices, place.strides, strict=True)])
    return Affine(value, steps, offset)


def direct(value: SSAValue, place: Placement) -> Affine:
    """The whole of a value, element for iteration."""
    return Affine(value, place.strides)


def total(terms: Sequence[Dim]) -> Dim:
    result: Dim = 0
    for term in terms:
        result = result + term
    return result


@dataclass(frozen=True)
class Nest:
    """A box of iterations and what it touches. `groups[k]` are the dimensions of the original space that loop k
    walks.
    """

    extents: tuple[Dim, ...]
    operands: tuple[Affine, ...]
    groups: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(extents: Sequence[Dim], operands: Sequence[Affine]) -> Nest:
        return Nest(tuple(extents), tuple(operands), tuple((axis,) for axis in range(len(extents))))

    def ordered(self, operand: int, first: int = 0, last: int | None = None) -> Nest:
        """The nest with the dimensions from `first` to `last` in the order in which an operand lies in memory.

        Where dimensions are symbolic, typical sizes decide; they concern speed alone.
        """
        steps = self.operands[operand].steps
        last = len(steps) if last is None else last
        moved = sorted(range(first, last), key=lambda axis: -typical(steps[axis], {}))
        order = [*range(first), *moved, *range(last, len(steps))]
        if order == list(range(len(steps))):
            return self
        operands = tuple(replace(one, steps=tuple(one.steps[axis] for axis in order)) for one in self.operands)
        extents, groups = zip(*((self.extents[axis], self.groups[axis]) for axis in order), strict=True)
        return Nest(extents, operands, groups)

    def without(self, axis: int) -> Nest:
        """The nest without a dimension of length 1."""
        cut = tuple(replace(one, steps=one.steps[:axis] + one.steps[axis + 1 :]) for one in self.operands)
        return Nest(self.extents[:axis] + self.extents[axis + 1 :], cut, self.groups[:axis] + self.groups[axis + 1 :])

    def merged(self, axis: int) -> Nest:
        """The nest with dimension `axis` and the next one as one."""
        length = self.extents[axis] * self.extents[axis + 1]
        extents = (*self.extents[:axis], length, *self.extents[axis + 2 :])
        operands = tuple(replace(one, steps=one.steps[:axis] + one.steps[axis + 1 :]) for one in self.operands)
        groups = (*self.groups[:axis], self.groups[axis] + self.groups[axis + 1], *self.groups[axis + 2 :])
        return Nest(extents, operands, groups)

    def merges(self, axis: int) -> bool:
        """Whether every operand walks through dimension `axis` and the next one like one."""
        inner = self.extents[axis + 1]
        return all(one.steps[axis] == one.steps[axis + 1] * inner for one in self.operands)


def collapse(nest: Nest, keep: frozenset[int] = frozenset(), borders: frozenset[int] = frozenset()) -> Nest:
    """Drop dimensions of length 1 and merge neighbours, except the dimensions in `keep`, whose indices are needed.

    No merge joins the dimension before one of `borders` with it.
    """
    for axis in reversed(range(len(nest.extents))):
        if nest.extents[axis] == 1 and not keep & set(nest.groups[axis]):
            nest = nest.without(axis)
    axis = len(nest.extents) - 2
    while axis >= 0:
        left, right = nest.groups[axis], nest.groups[axis + 1]
        free = not keep & {*left, *right} and not any(left[-1] < border <= right[0] for border in borders)
        if free and nest.merges(axis):
            nest = nest.merged(axis)
        axis -= 1
    return nest


class NestCode:
    """Loads and stores of a nest's operands in a kernel; `memories` are those of operands that lie elsewhere.

    With an `element` all others are taken for elements of that type, which has as many bytes.
    """

    def __init__(
        self,
        builder: KernelBuilder,
        nest: Nest,
        memories: Mapping[int, SSAValue] | None = None,
        element: Attribute | None = None,
    ) -> None:
        self.builder = builder
        self.nest = nest
        known = memories or {}
        self._pointers = [
            known[number] if number in known else builder.buffer(one.value, one.offset, element)
            for number, one in enumerate(nest.operands)
        ]
        # Operands that lie alike share their strides, so that the code may know that they do.
        alike = {one.steps: self._strides(one.steps) for one in nest.operands}
        self._steps = [alike[one.steps] for one in nest.operands]

    def _strides(self, steps: tuple[Dim, ...]) -> list[Stride]:
        """On a CPU small steps of the last loop, whose iterations may be lanes, are part of the code."""
        *outer, last = steps or (0,)
        known = last if isinstance(last, int) and last in SMALL_STEPS else self.builder.stride(last)
        return [*(self.builder.stride(step) for step in outer), known][: len(steps)]

    def extents(self) -> list[Dim]:
        """The extents of the loops; one of length 1 where there would be none."""
        return list(self.nest.extents) or [1]

    def split(self, border: int) -> tuple[list[Dim], list[Dim]]:
        """The extents of the loops over the dimensions before `border`, at least one, and of those from it on."""
        before = [size for size, group in zip(self.nest.extents, self.nest.groups, strict=True) if group[0] < border]
        return before or [1], list(self.nest.extents[len(before) :])

    def loops_before(self, border: int, loops: Sequence[Value]) -> list[Value]:
        """The loop indices that belong to dimensions before `border`: none where a loop of length 1 stands in."""
        count = sum(group[0] < border for group in self.nest.groups)
        return list(loops[:count])

    def address(self, operand: int, indices: Sequence[SSAValue]) -> tuple[list[SSAValue], list[Stride]]:
        """Indices and steps of an operand; loops beyond the given indices do not move it."""
        steps = self._steps[operand]
        count = min(len(indices), len(steps))
        return list(indices[:count]), steps[:count]

    def pointer(self, operand: int) -> Value:
        """Where an operand's element at index zero is."""
        return value_of(self._pointers[operand])

    def linear(self, operand: int, indices: Sequence[SSAValue]) -> Value:
        """How many elements from its pointer on an element of an operand lies."""
        b, index = self.builder, self.builder.constant(0)
        for at, step in zip(*self.address(operand, indices), strict=True):
            index = b.add(index, b.mul(at, step))
        return index

    def step(self, operand: int, loop: int) -> Stride:
        """How far apart neighbouring iterations of a loop access an operand."""
        return self._steps[operand][loop]

    def load(self, operand: int, indices: Sequence[SSAValue], more: Sequence[tuple[SSAValue, Stride]] = ()) -> Value:
        """One element of an operand, moved on by `more` pairs of index and step."""
        places, steps = self.address(operand, indices)
        places, steps = [*places, *(index for index, _ in more)], [*steps, *(step for _, step in more)]
        return value_of(self.builder.value(LoadOp(self._pointers[operand], places, steps)))

    def store(
        self, stored: SSAValue, operand: int, indices: Sequence[SSAValue], more: Sequence[tuple[SSAValue, Stride]] = ()
    ) -> None:
        """Write one element of an operand, moved on by `more` pairs of index and step."""
        places, steps = self.address(operand, indices)
        places, steps = [*places, *(index for index, _ in more)], [*steps, *(step for _, step in more)]
        self.builder.insert(StoreOp(stored, self._pointers[operand], places, steps))

    def read(
        self, operand: int, wide: Attribute, indices: Sequence[SSAValue], more: Sequence[tuple[SSAValue, Stride]] = ()
    ) -> Value:
        """One element of an operand, converted to the type in which the kernel computes."""
        element = element_of(self.nest.operands[operand].value.type)
        return value_of(self.builder.scalars(wide).cast(self.builder.ready(self.load(operand, indices, more)), element))

    def read_typed(
        self, operand: int, wide: Attribute, indices: Sequence[SSAValue], more: Sequence[tuple[SSAValue, Stride]] = ()
    ) -> Value:
        """As `read`, given back as an element of a tensor of that type."""
        return self.builder.typed(self.read(operand, wide, indices, more), wide)

    def write(
        self,
        value: SSAValue,
        wide: Attribute,
        operand: int,
        indices: Sequence[SSAValue],
        more: Sequence[tuple[SSAValue, Stride]] = (),
    ) -> None:
        """Write a number of the type in which the kernel computes."""
        element = element_of(self.nest.operands[operand].value.type)
        narrow = self.builder.scalars(element).cast(value, wide)
        self.store(self.builder.typed(narrow, element), operand, indices, more)

    def original(self, axis: int, indices: Sequence[SSAValue]) -> Value:
        """The index along a dimension of the original space, which was kept or has length 1."""
        for loop, group in enumerate(self.nest.groups):
            if group == (axis,):
                return value_of(indices[loop])
        return self.builder.constant(0)
