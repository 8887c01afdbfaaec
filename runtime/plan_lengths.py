"""All that binding a plan to shapes computes and checks, as instructions for native code: for lengths that grow.

A run whose lengths are a little larger than those of the run before needs no program of its own: its kernels, the order
of its launches and the places of its memory stay, and of the parameters some change. Where an instruction does not hold
(a buffer has outgrown its place, a launch would leave one, a shape is wrong), `ShapeBinder` binds the shapes instead,
and says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.expressions import Expression
from mlirt.runtime.formula_table import MAX_BYTES
from mlirt.runtime.length_code import LengthCode, UnfitError
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.plan_formulas import PlanFormulas
from mlirt.runtime.program import RELATIONS

_MIN_I32, _MAX_I32 = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True)
class PlanLengths:
    """The instructions of one plan, and where numbers stand that the host writes or reads."""

    lengths_code: np.ndarray
    """What follows from lengths."""
    arrays_code: np.ndarray
    """What follows from where the arrays of callers lie, besides."""
    numbers: np.ndarray
    """The values of all numbers at first."""
    shapes: Sequence[int]
    """For each input the first one with the same shape."""
    given: Mapping[int, Sequence[int]]
    """The numbers that are the lengths of such a first input."""
    symbols: Sequence[tuple[int, int]]
    """The input and the axis that tells each symbol."""
    output_dims: Sequence[Sequence[int]]
    """The numbers that are the lengths of each output."""
    slots: Sequence[int]
    """The numbers that say how many bytes each owner of memory in the arena may have."""
    bases: Sequence[int]
    """The numbers that are the addresses of each buffer that owns memory, or -1."""
    arrays: Sequence[int]
    """The numbers that are the addresses of inputs and outputs; one behind the other."""
    causes: Sequence[int]
    """For each instruction of `lengths_code` the lengths that it follows from, as bits in the order of `given`."""
    _following: dict[int, np.ndarray] = field(default_factory=dict[int, np.ndarray])

    def following(self, changed: int) -> np.ndarray:
        """The instructions that follow from lengths which have changed, as bits in the order of `given`."""
        found = self._following.get(changed)
        if found is None:
            chosen = [k for k, causes in enumerate(self.causes) if causes & changed]
            found = self._following[changed] = np.ascontiguousarray(self.lengths_code[chosen])
        return found

    @staticmethod
    def of(manifest: Manifest, formulas: PlanFormulas, spots: np.ndarray, parts: int) -> PlanLengths | None:
        """For words that are the parameters `spots`, and `parts` of a launch; None where a plan needs more."""
        if not _is_plain(manifest, formulas):
            return None
        try:
            return _Maker(manifest, formulas, spots, parts).made()
        except UnfitError:
            return None


def _is_plain(manifest: Manifest, formulas: PlanFormulas) -> bool:
    """Whether runs make all launches in a row, and no memory has to be filled before, nor outputs copied after."""
    buffers = manifest.buffers
    outputs = [tensor.buffer for tensor in manifest.outputs]
    own_outputs = all(buffers[i].kind == "output" and buffers[i].view_of is None for i in outputs)
    others = {i for i, one in enumerate(buffers) if one.kind == "output" and one.view_of is None} - set(outputs)
    return (
        formulas.is_straight
        and formulas.fills_arrays
        and bool(manifest.launches)
        and not (manifest.sizes or manifest.state or manifest.hosted or formulas.arguments.has_maps)
        and not (formulas.given_offsets or len(formulas.halo_array) or formulas.borders.buffers)
        and len(manifest.profiles) <= 1
        and len(manifest.given_inputs) == len(manifest.inputs)
        and own_outputs
        and not others
        and len(set(outputs)) == len(outputs)
        and formulas.proofs.proves_all
    )


@dataclass
class _Maker:
    manifest: Manifest
    formulas: PlanFormulas
    spots: np.ndarray
    parts: int
    code: LengthCode = field(default_factory=LengthCode)
    by_arrays: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    """Parameters that are an address and a number."""

    def made(self) -> PlanLengths:
        manifest, code = self.manifest, self.code
        shapes, given = self._given()
        bases = [-1] * len(manifest.buffers)
        callers = [tensor.buffer for tensor in (*manifest.inputs, *manifest.outputs)]
        arrays = code.open(len(callers))
        for buffer, number in zip(callers, arrays, strict=True):
            bases[buffer] = number
        for buffer in dict.fromkeys(manifest.roots):
            if bases[buffer] < 0:
                bases[buffer] = code.open(1)[0]
        self.values = self._values(shapes, given)
        self._check_inputs(shapes, given)
        self._check_requirements()
        self.sizes = [self._bounded(one.size) for one in manifest.buffers]
        for size in dict.fromkeys(self.sizes):
            self.code.natural(self.code.apply("-", size, self.code.constant(1)))
        self.starts = [self._start(i) for i in range(len(manifest.buffers))]
        self._check_tensors()
        slots = code.open(len(self.formulas.owners))
        for owner, slot in zip(self.formulas.owners, slots, strict=True):
            code.at_most(self.sizes[owner], slot)
        places = self._places()
        self._check_launches(places)
        self._write(places, bases, frozenset(callers))
        output_dims = [[self._number(dim) for dim in tensor.shape] for tensor in manifest.outputs]
        return PlanLengths(
            lengths_code=code.instructions(),
            arrays_code=self._arrays_code(),
            numbers=code.numbers(),
            shapes=shapes,
            given=given,
            symbols=[(shapes[symbol.input], symbol.axis) for symbol in manifest.symbols],
            output_dims=output_dims,
            slots=slots,
            bases=bases,
            arrays=arrays,
            causes=code.causes(),
        )

    def _given(self) -> tuple[list[int], dict[int, list[int]]]:
        """For each input the first of the same shape, and the numbers for the lengths of these."""
        firsts: dict[tuple[Expression, ...], int] = {}
        shapes = [firsts.setdefault(one.shape, i) for i, one in enumerate(self.manifest.inputs)]
        given: dict[int, list[int]] = {}
        count = 0
        for shape, i in firsts.items():
            given[i] = self.code.open(len(shape), count)
            count += len(shape)
        return shapes, given

    def _values(self, shapes: Sequence[int], given: Mapping[int, Sequence[int]]) -> list[int]:
        """The numbers of all formulas of the plan, by their numbers in its table."""
        manifest, code = self.manifest, self.code
        symbols = {one.name: given[shapes[one.input]][one.axis] for one in manifest.symbols}
        if manifest.parts is not None:
            symbols[manifest.parts] = code.constant(self.parts)
        table = self.formulas.table.formulas
        found = [0] * len(table)
        for formula, number in table.items():
            if isinstance(formula, tuple):
                operator, left, right = formula
                found[number] = code.apply(operator, found[table[left]], found[table[right]])
            else:
                found[number] = code.constant(formula) if isinstance(formula, int) else symbols[formula]
        return found

    def _number(self, formula: Expression) -> int:
        number = self.formulas.table.number_of(formula)
        assert number is not None
        return self.values[number]

    def _bounded(self, formula: Expression) -> int:
        """The number of a size or an offset, which is held to what these may be."""
        number = self._number(formula)
        self.code.natural(number)
        self.code.at_most(number, self.code.constant(MAX_BYTES))
        return number

    def _check_inputs(self, shapes: Sequence[int], given: Mapping[int, Sequence[int]]) -> None:
        """Every length is what its formula says, and what the profile allows."""
        inputs = self.manifest.inputs
        for i, lengths in given.items():
            for dim, length in zip(inputs[i].shape, lengths, strict=True):
                self.code.equal(self._number(dim), length)
        for profile in self.manifest.profiles:
            for i, tensor in enumerate(inputs):
                covered = profile.get(tensor.name)
                if covered is None:
                    continue
                if len(covered.minimum) != len(tensor.shape):
                    raise UnfitError("a profile is for another number of dimensions")
                bounds = zip(covered.minimum, given[shapes[i]], covered.maximum, strict=True)
                for low, length, high in bounds:
                    self.code.at_most(self.code.constant(low), length)
                    self.code.at_most(length, self.code.constant(high))

    def _check_requirements(self) -> None:
        code = self.code
        for one in self.manifest.requirements:
            left, right = self._number(one.left), self._number(one.right)
            where = self._number(one.where)
            counts = code.apply("-", code.apply("*", where, where), code.constant(1))
            code.natural(code.apply("if", counts, self._margin(one.relation, left, right), code.naught))

    def _margin(self, relation: str, left: int, right: int) -> int:
        """A number that is at least 0 only where a relation holds."""
        code = self.code
        difference = code.apply("-", left, right)
        if relation == "at_least":
            return difference
        if relation == "multiple":
            difference = code.apply("%", left, right)
        elif relation == "equal_or_one":
            difference = code.apply("*", difference, code.apply("-", left, code.constant(1)))
        elif relation not in RELATIONS or relation != "equal":
            raise UnfitError("a relation has no instructions")
        return code.scaled(code.apply("*", difference, difference), -1)

    def _start(self, i: int) -> int:
        """Where buffer `i` starts in the one that owns its bytes, in which it ends."""
        code, buffers, root = self.code, self.manifest.buffers, self.manifest.roots[i]
        start, at = code.naught, i
        while (source := buffers[at].view_of) is not None:
            start, at = code.apply("+", start, self._bounded(buffers[at].view_offset)), source
        code.at_most(code.apply("+", start, self.sizes[i]), self.sizes[root])
        return start

    def _check_tensors(self) -> None:
        """Arrays of callers are exactly their tensors."""
        for tensor in (*self.manifest.inputs, *self.manifest.outputs):
            size = self.code.constant(numpy_dtype(tensor.dtype).itemsize)
            for dim in tensor.shape:
                length = self._number(dim)
                self.code.natural(length)
                size = self.code.apply("*", size, length)
            self.code.equal(size, self.sizes[tensor.buffer])

    def _places(self) -> list[int]:
        """Where each pointer points in the buffer that owns the bytes, of which it has as many as it needs."""
        code, found = self.code, list[int]()
        for _, buffer, offset, extent in self.formulas.arguments.pointed:
            first, count = self.values[offset], self.values[extent]
            code.natural(first)
            code.natural(count)
            code.at_most(code.apply("+", first, count), self.sizes[buffer])
            found.append(code.apply("+", self.starts[buffer], first))
        return found

    def _check_launches(self, places: Sequence[int]) -> None:
        """Kernels are called as their contracts say, and touch nothing outside of their buffers."""
        code, proofs = self.code, self.formulas.proofs
        entries = proofs.table.entries
        found = dict[int, int]()
        for (operation, a, b, c), number in entries.items():
            if number in found:
                continue
            if operation == "const":
                found[number] = code.constant(a)
            elif operation == "formula":
                found[number] = self.values[a]
            else:
                found[number] = code.apply(operation, found[a], found[b], found[c])
        for number in proofs.natural:
            code.natural(found[number])
        roots = self.formulas.arguments.roots
        for pointer, touched in proofs.touched():
            size, place = self.sizes[int(roots[pointer])], places[pointer]
            for one in touched:
                low, high = found[one.low], found[one.high]
                before = code.apply("+", place, code.scaled(low, one.width))
                end = code.scaled(code.apply("+", high, code.constant(1)), one.width)
                behind = code.apply("-", size, code.apply("+", place, end))
                within = code.apply("min", before, behind)
                within = code.apply("if", code.apply("-", high, low), within, code.naught)
                code.natural(code.apply("if", found[one.guard], within, code.naught))

    def _write(self, places: Sequence[int], bases: Sequence[int], callers: frozenset[int]) -> None:
        """The parameters that change: those that follow from lengths, and pointers to arrays of callers."""
        code, arguments, manifest = self.code, self.formulas.arguments, self.manifest
        for word, formula, is_narrow in arguments.integers:
            number = self.values[formula]
            if is_narrow:
                code.at_most(code.constant(_MIN_I32), number)
                code.at_most(number, code.constant(_MAX_I32))
            if code.value_of(number) is None:
                code.word(int(self.spots[word]), number)
        for (word, buffer, _, _), place in zip(arguments.pointed, places, strict=True):
            root = manifest.roots[buffer]
            if root in callers:
                self.by_arrays.append((int(self.spots[word]), bases[root], place))
            elif code.value_of(place) is None:
                code.word(int(self.spots[word]), bases[root], place)

    def _arrays_code(self) -> np.ndarray:
        last = LengthCode()
        for place, base, number in self.by_arrays:
            last.word(place, base, number)
        return last.instructions()
