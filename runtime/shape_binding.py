"""What the shapes of one run determine: symbol values, buffer sizes, memory, and every kernel argument as a number.

Pure arithmetic over a manifest, the same for every device. A mismatch of the caller's shapes is an InvalidInputError; a
plan whose formulas make no sense for legal shapes is a PlanError.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mlirt.errors import PlanError
from mlirt.runtime.borders import Borders
from mlirt.runtime.bound_launch import Address, BoundLaunch
from mlirt.runtime.concurrent_memory import Use, plan_side_by_side
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.expressions import ExpressionError
from mlirt.runtime.formula_table import MAX_BYTES, EvaluatedFormulas
from mlirt.runtime.launch_binding import LaunchBinder
from mlirt.runtime.launch_words import LaunchArguments
from mlirt.runtime.layer_records import first_without_elements
from mlirt.runtime.manifest import BufferArgument, Launch, Manifest, MapArgument, Tensor
from mlirt.runtime.memory_planning import MemoryPlan, MemoryPlanError, Request, plan, plan_apart, verify
from mlirt.runtime.plan_formulas import PlanFormulas
from mlirt.runtime.plan_lengths import PlanLengths
from mlirt.runtime.program import Place, Program, SizeCheck, decided, never_run, place_of, steps
from mlirt.runtime.symbol_values import MAX_PARTS, NO_SIZES, Shape, check_requirements, listed, symbol_values

# What launches that run side by side may take between them; more would not stay in a cache, and big launches fill a
# device alone.
_SIDE_BY_SIDE_BYTES = 64 << 20
# With more buffers than that, none is asked of each two whether they are alive together, as that grows with the cube.
_SIDE_BY_SIDE_BUFFERS = 1000


@dataclass(frozen=True)
class ShapeBinding:
    """Everything that follows from the input shapes."""

    input_shapes: tuple[Shape, ...]
    output_shapes: tuple[Shape, ...]
    outputs: tuple[Address, ...]
    size_array: np.ndarray
    """Bytes of each buffer, as int64."""
    offset_array: np.ndarray
    """Where each arena buffer that owns memory starts in the arena, as int64; 0 for others."""
    arena_bytes: int
    halos: tuple[tuple[int, int, int], ...]
    """Parts of the arena (offset, bytes, fill) all of whose bytes must be `fill` before the first run."""
    borders: Borders
    border_numbers: np.ndarray
    """Those of all borders that launches can write, see `Borders.numbers`."""
    rewritten: np.ndarray
    """Which of them launches must write in each run, as other buffers share their memory."""
    arguments: LaunchArguments
    words: np.ndarray | None
    """The arguments of all launches; None for a GPU, whose launches are bound one by one."""
    values: Mapping[str, int]
    """What each symbol stands for."""
    places: Mapping[Place, Address]
    """Where the bytes and words lie that decide how the program goes on."""
    program: Program
    """What a run does, where all is known that formulas decide."""
    binder: "_Binder" = field(repr=False)

    @property
    def is_straight(self) -> bool:
        """Whether a run makes all launches one after the other, whatever the shapes are."""
        return self.binder.formulas.is_straight

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each buffer."""
        return tuple(self.size_array.tolist())

    @cached_property
    def offsets(self) -> Mapping[int, int]:
        """Where each arena buffer that owns memory starts in the arena."""
        formulas = self.binder.formulas
        return dict(zip(formulas.owners, self.offset_array[formulas.owner_array].tolist(), strict=True))

    @cached_property
    def live_bytes(self) -> int:
        """Bytes of the arena's buffers that are in use at once, where most are: no arena is smaller."""
        formulas = self.binder.formulas
        return formulas.placements.largest_live_set(self.size_array[formulas.owner_array])

    @cached_property
    def launches(self) -> tuple[BoundLaunch, ...]:
        """The launches one by one."""
        return self.binder.one_by_one.launches


def bind_shapes(manifest: Manifest, shapes: Sequence[Shape], sizes: Mapping[str, int] = NO_SIZES) -> ShapeBinding:
    """`ShapeBinder.bind` for one set of shapes."""
    return ShapeBinder(manifest).bind(shapes, sizes)


class ShapeBinder:
    """Binds one plan to sets of shapes, which share what does not depend on them."""

    def __init__(self, manifest: Manifest, parts: int = MAX_PARTS) -> None:
        """`parts` of a launch are under way at once at most."""
        self._manifest, self._parts = manifest, parts
        self._formulas = PlanFormulas(manifest)
        self._lengths: tuple[np.ndarray, PlanLengths | None] | None = None

    def lengths(self, spots: np.ndarray) -> PlanLengths | None:
        """How parameters follow from lengths that grow, where words are the parameters `spots`; made once."""
        if self._lengths is None or self._lengths[0] is not spots:
            self._lengths = spots, PlanLengths.of(self._manifest, self._formulas, spots, self._parts)
        return self._lengths[1]

    def bind_with_room(self, shapes: Sequence[Shape], before: Sequence[Shape]) -> tuple[ShapeBinding, np.ndarray]:
        """The binding for lengths that have grown since `before`, whose arena has room for more of them.

        Besides, the bytes that each owner of memory in the arena may have.
        """
        values = symbol_values(self._manifest, shapes, NO_SIZES, self._parts)
        grown = [
            one.name for one in self._manifest.symbols if shapes[one.input][one.axis] > before[one.input][one.axis]
        ]
        room = self._formulas.room(values, grown)
        return self.bind(shapes, room=room), room

    def bind(
        self, shapes: Sequence[Shape], sizes: Mapping[str, int] = NO_SIZES, *, room: np.ndarray | None = None
    ) -> ShapeBinding:
        """Everything that depends on the shapes of the inputs, and on what the run's own sizes are taken for.

        `room`: the bytes that owners of memory in the arena get at least.
        """
        manifest, formulas = self._manifest, self._formulas
        values = symbol_values(manifest, shapes, sizes, self._parts)
        evaluated = formulas.table.evaluated(values)
        if not formulas.meets_requirements(evaluated):
            check_requirements(manifest, shapes, values)
        try:
            return _Binder(manifest, formulas, evaluated, room).bind(tuple(shapes))
        except (ExpressionError, MemoryPlanError) as error:
            given = listed(manifest, shapes)
            # Where a layer has no elements left, formulas of the layers behind it fail, which do not show the reason.
            emptied = first_without_elements(manifest.layers, values)
            why = "" if emptied is None else f", as layer {emptied} has no elements left"
            raise PlanError(f"the plan has no meaning for the shapes {given}{why}: {error}; give others") from error


class _Binder:
    """Evaluates the formulas of one manifest for one set of symbol values."""

    def __init__(
        self,
        manifest: Manifest,
        formulas: PlanFormulas,
        evaluated: EvaluatedFormulas,
        room: np.ndarray | None = None,
    ) -> None:
        self.manifest, self._room = manifest, room
        self.formulas = formulas
        self.evaluated, self.values = evaluated, evaluated.values
        self._value, self._natural = evaluated.of, evaluated.natural
        # What no run with these values comes to need not make sense for them.
        self.never_run = set[int]() if formulas.is_straight else never_run(manifest.program, self.values)[0]
        self.unused = self._unused() if self.never_run else frozenset[int]()
        self._numbers = evaluated.array() if evaluated.is_whole and not self.never_run else None
        self._fill_arrays()

    def _fill_arrays(self) -> None:
        """The bytes of each buffer, and where it starts in its owner: all at once where all make sense."""
        if self._numbers is not None:
            sizes = self.formulas.sizes(self._numbers)
            starts = None if sizes is None else self.formulas.starts(self._numbers, sizes)
            if sizes is not None and starts is not None:
                self.size_array, self.start_array = sizes, starts
                return
        count = range(len(self.manifest.buffers))
        self.size_array = np.array([self._size(i) for i in count], np.int64)
        self.start_array = np.array([self._start(i) for i in count], np.int64)

    @cached_property
    def sizes(self) -> list[int]:
        """Bytes of each buffer."""
        return self.size_array.tolist()

    @cached_property
    def one_by_one(self) -> LaunchBinder:
        """For launches that are looked at alone."""
        return LaunchBinder(self.manifest, self.evaluated, self.sizes, self.start_array.tolist(), self.never_run)

    def _unused(self) -> frozenset[int]:
        """The buffers that only such launches touch as never run."""
        manifest = self.manifest
        used = {tensor.buffer for tensor in (*manifest.inputs, *manifest.outputs)}
        used |= {place.buffer for step in steps(manifest.program) if (place := place_of(step)) is not None}
        for number, launch in enumerate(manifest.launches):
            if number not in self.never_run:
                used |= {one.buffer for one in launch.args if isinstance(one, BufferArgument | MapArgument)}
        return frozenset(range(len(manifest.buffers))) - used - {manifest.roots[i] for i in used}

    def _size(self, i: int) -> int:
        size = self.manifest.buffers[i].size
        if i in self.unused and self._value(size) < 0:
            return 0
        return self._natural(size, f"size of buffer {i}")

    def _start(self, i: int) -> int:
        """Where buffer `i` starts in the buffer that owns its bytes."""
        buffers, root = self.manifest.buffers, self.manifest.roots[i]
        if i in self.unused or self.sizes[i] == 0:
            return 0
        start, at = 0, i
        while (source := buffers[at].view_of) is not None:
            start += self._natural(buffers[at].view_offset, f"view offset of buffer {at}")
            at = source
        if start + self.sizes[i] > self.sizes[root]:
            raise ExpressionError(f"buffer {i} reaches beyond buffer {root}, of which it is a view")
        return start

    def bind(self, input_shapes: tuple[Shape, ...]) -> ShapeBinding:
        manifest = self.manifest
        for tensor, shape in zip(manifest.given_inputs, input_shapes, strict=True):
            self._check_dense(tensor, shape)
        output_shapes = tuple(self._shape(tensor) for tensor in manifest.outputs)
        for tensor, shape in zip(manifest.outputs, output_shapes, strict=True):
            self._check_dense(tensor, shape)
        borders = self.formulas.borders
        border_numbers = borders.numbers(self.evaluated, self.size_array)
        offsets, total, written_over = self._arena()
        offset_array = np.zeros(len(self.size_array), np.int64)
        offset_array[self.formulas.owner_array] = offsets
        rewritten = np.zeros(len(self.size_array), bool)
        rewritten[self.formulas.owner_array] = written_over
        words = self._words()
        return ShapeBinding(
            input_shapes=input_shapes,
            output_shapes=output_shapes,
            outputs=tuple(Address(manifest.roots[t.buffer], int(self.start_array[t.buffer])) for t in manifest.outputs),
            size_array=self.size_array,
            offset_array=offset_array,
            arena_bytes=total,
            halos=self._halos(offset_array, rewritten),
            borders=borders,
            border_numbers=border_numbers,
            rewritten=rewritten[borders.buffers],
            arguments=self.formulas.arguments,
            words=words,
            values=self.values,
            places={} if self.formulas.is_straight else self._places(),
            program=self._decided(),
            binder=self,
        )

    def _halos(self, offsets: np.ndarray, rewritten: np.ndarray) -> tuple[tuple[int, int, int], ...]:
        """The slots with borders that no launch writes, which several buffers may have."""
        buffers, fills = self.formulas.halo_array, self.formulas.halo_fills
        kept = (self.size_array[buffers] > 0) & ~rewritten[buffers]
        buffers, fills = buffers[kept], fills[kept]
        found = zip(offsets[buffers].tolist(), self.size_array[buffers].tolist(), fills.tolist(), strict=True)
        return tuple(sorted(set(found)))

    def _words(self) -> np.ndarray | None:
        """The arguments of all launches, every number of which is checked."""
        formulas = self.formulas
        if self._numbers is not None and formulas.fills_arrays and not formulas.arguments.has_maps:
            words = formulas.arguments.words(self._numbers, self.size_array, self.start_array)
            if words is not None:
                for number in formulas.unproved(self.evaluated, words, self.size_array):
                    self.one_by_one.bind(number)
                return words
        launches = self.one_by_one.launches
        return formulas.arguments.words_of(launches) if self.manifest.target.kind == "cpu" else None

    def _decided(self) -> Program:
        if self.formulas.is_straight:
            return self.manifest.program
        return decided(self.manifest.program, self.values, self.one_by_one.faults)

    def _places(self) -> dict[Place, Address]:
        return {
            place: self.one_by_one.place(place, 1 if not isinstance(step, SizeCheck) else 8)
            for step in steps(self.manifest.program)
            if (place := place_of(step)) is not None
        }

    def _shape(self, tensor: Tensor) -> Shape:
        lengths = (self._natural(dim, f"a dimension of {tensor.name!r}") for dim in tensor.shape)
        return tuple(length for length in lengths if length != 1 or not tensor.squeezed)

    def _check_dense(self, tensor: Tensor, shape: Shape) -> None:
        """The buffer of a caller's array is exactly its dense tensor; another that is copied out may be larger."""
        size = numpy_dtype(tensor.dtype).itemsize
        for dim in shape:
            size *= dim
        kind = self.manifest.buffers[self.manifest.roots[tensor.buffer]].kind
        is_own = self.manifest.roots[tensor.buffer] == tensor.buffer and kind in ("input", "output")
        held = int(self.size_array[tensor.buffer])
        if size > MAX_BYTES or (held != size if is_own else held < size):
            raise ExpressionError(f"buffer of {tensor.name!r} has {held} bytes, its tensor {size}")

    def _arena(self) -> tuple[Sequence[int] | np.ndarray, int, np.ndarray | bool]:
        """The offset of each owner of memory, the bytes of all, and which borders share theirs with other buffers."""
        formulas = self.formulas
        owners, given = formulas.owners, [self._natural(one, "an offset") for one in formulas.given_offsets]
        if len(given) < len(owners) and not self._runs_side_by_side:
            held = self.size_array[formulas.owner_array]
            return formulas.placements.place(held if self._room is None else np.maximum(held, self._room))
        described = zip(owners, formulas.lives, formulas.halos, strict=True)
        requests = [Request(self.sizes[i], first, last, halo) for i, (first, last), halo in described]
        if len(given) == len(owners):
            total = max((offset + request.size for offset, request in zip(given, requests, strict=True)), default=0)
            verify(requests, given, total)
            return given, total, False
        chosen = plan(requests)
        if all(halo is None for halo in formulas.halos):
            most = max(chosen.total, _SIDE_BY_SIDE_BYTES)
            apart = self._side_by_side(owners) if len(owners) <= _SIDE_BY_SIDE_BUFFERS else plan_apart(requests)
            if apart.total <= most:
                chosen = apart
        return chosen.offsets, chosen.total, False

    @property
    def _runs_side_by_side(self) -> bool:
        """Whether launches may overtake each other: those of a GPU may, where no decision stands between them."""
        manifest = self.manifest
        return manifest.target.kind == "cuda" and list(manifest.program) == list(range(len(manifest.launches)))

    def _side_by_side(self, owners: Sequence[int]) -> MemoryPlan:
        """Offsets for the `owners` of memory by which no launch waits for one that it has no data of."""
        manifest = self.manifest
        kept = {manifest.roots[tensor.buffer] for tensor in manifest.outputs}
        return plan_side_by_side(self.sizes, [self._uses(launch) for launch in manifest.launches], owners, kept)

    def _uses(self, launch: Launch) -> list[Use]:
        written = self.manifest.kernels[launch.kernel].written
        return [
            (self.manifest.roots[one.buffer], place in written, one.part if isinstance(one, BufferArgument) else ())
            for place, one in enumerate(launch.args)
            if isinstance(one, BufferArgument | MapArgument)
        ]
