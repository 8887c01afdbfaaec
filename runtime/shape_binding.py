"""What the shapes of one run settle: symbol values, buffer sizes, memory, and every kernel argument as a number.

Pure arithmetic over a manifest, the same for every device. A mismatch of the caller's shapes is an InvalidInputError; a
plan whose formulas make no sense for legal shapes is a PlanError.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mlirt.errors import InvalidInputError, PlanError, UnmetConditionError
from mlirt.runtime.concurrent_memory import Use, plan_side_by_side
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.expressions import Expression, ExpressionError, evaluate, to_text
from mlirt.runtime.extents import Extents
from mlirt.runtime.formula_table import EvaluatedFormulas
from mlirt.runtime.launch_words import MAX_BYTES, LaunchArguments
from mlirt.runtime.layer_records import first_without_elements
from mlirt.runtime.manifest import (
    Argument,
    BufferArgument,
    IntArgument,
    Kernel,
    Launch,
    Manifest,
    MapArgument,
    Tensor,
)
from mlirt.runtime.memory_planning import MemoryPlan, MemoryPlanError, Request, plan, verify
from mlirt.runtime.plan_formulas import PlanFormulas
from mlirt.runtime.plugin_calls import dense_extents
from mlirt.runtime.profile_ranges import check_profiles
from mlirt.runtime.program import Place, Program, SizeCheck, certain, decided, never_run, place_of, steps
from mlirt.runtime.size_guesses import settled
from mlirt.runtime.tensor_maps import MapLayout

Shape = tuple[int, ...]
# What launches that run side by side may take between them; more would not stay in a cache, and big launches fill a
# device alone.
_SIDE_BY_SIDE_BYTES = 64 << 20

NO_SIZES: Mapping[str, int] = {}
# What a size that only the run tells is taken for at first.
GUESS = 1


@dataclass(frozen=True)
class Address:
    """A place in memory: `offset` bytes into the buffer `root` that owns it."""

    root: int
    offset: int


@dataclass(frozen=True)
class TensorMap:
    """A tensor at a place in memory that the device copies boxes from."""

    address: Address
    layout: MapLayout


BoundArgument = Address | TensorMap | int | float


@dataclass(frozen=True)
class BoundLaunch:
    """A launch with numbers for everything; `index` is its place in the manifest."""

    index: int
    args: tuple[BoundArgument, ...]
    grid: tuple[int, int, int]


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
    def launches(self) -> tuple[BoundLaunch, ...]:
        """The launches one by one."""
        return self.binder.launches


def bind_symbols(manifest: Manifest, shapes: Sequence[Shape], sizes: Mapping[str, int]) -> dict[str, int]:
    """Give each symbol its value from the shapes of the inputs, and check all dimensions and what layers need."""
    values = _symbol_values(manifest, shapes, sizes)
    _check_requirements(manifest, shapes, values)
    return values


def _symbol_values(manifest: Manifest, shapes: Sequence[Shape], sizes: Mapping[str, int]) -> dict[str, int]:
    """Give each symbol its value from the shapes of the inputs, and check every other dimension against its formula."""
    for tensor, shape in zip(manifest.given_inputs, shapes, strict=True):
        if len(shape) != len(tensor.shape):
            raise _wrong_shape(tensor, shape, f"expected {len(tensor.shape)} dimensions")
    values = {symbol.name: shapes[symbol.input][symbol.axis] for symbol in manifest.symbols}
    values.update((name, sizes.get(name, GUESS)) for name in manifest.sizes)
    for tensor, shape in zip(manifest.given_inputs, shapes, strict=True):
        for axis, (dim, length) in enumerate(zip(tensor.shape, shape, strict=True)):
            try:
                expected = evaluate(dim, values)
            except ExpressionError as error:
                raise _wrong_shape(tensor, shape, f"dimension {axis} has no value: {error}") from error
            if expected != length:
                named = "" if isinstance(dim, int) else f" (= {to_text(dim)})"
                layer = tensor.needed_by[axis] if tensor.needed_by else ""
                reason = f", as layer {layer} needs it" if layer else ""
                raise _wrong_shape(tensor, shape, f"dimension {axis} must be {expected}{named}, not {length}{reason}")
    if manifest.profiles:
        check_profiles(manifest.profiles, dict(zip((one.name for one in manifest.given_inputs), shapes, strict=True)))
    return values


def settled_sizes(
    manifest: Manifest, shapes: Sequence[Shape], sizes: Mapping[str, int], known: str | None = None
) -> dict[str, int]:
    """What the run's own sizes are best taken for, where the run has told what the symbol `known` is."""
    values = settled(manifest.program, bind_symbols(manifest, shapes, sizes), known)
    return {name: values[name] for name in manifest.sizes}


def _wrong_shape(tensor: Tensor, shape: Shape, fault: str) -> InvalidInputError:
    expected = ", ".join(to_text(dim) for dim in tensor.shape)
    return InvalidInputError(
        f"input {tensor.name!r}: expected shape ({expected}), got {shape}: {fault}; "
        "reshape the array, or build the engine for this shape"
    )


def _check_requirements(manifest: Manifest, shapes: Sequence[Shape], values: Mapping[str, int]) -> None:
    for one in manifest.requirements:
        try:
            violation = one.violation(values)
        except ExpressionError as error:
            given = _listed(manifest, shapes)
            raise PlanError(f"layer {one.layer} has no meaning for the shapes {given}: {error}; give others") from error
        if violation is not None:
            raise UnmetConditionError(
                f"{violation}, for the shapes {_listed(manifest, shapes)}; give inputs that fit, or build the engine "
                "for these shapes"
            )


def _listed(manifest: Manifest, shapes: Sequence[Shape]) -> str:
    return ", ".join(f"{tensor.name}={shape}" for tensor, shape in zip(manifest.given_inputs, shapes, strict=True))


def bind_shapes(manifest: Manifest, shapes: Sequence[Shape], sizes: Mapping[str, int] = NO_SIZES) -> ShapeBinding:
    """`ShapeBinder.bind` for one set of shapes."""
    return ShapeBinder(manifest).bind(shapes, sizes)


class ShapeBinder:
    """Binds one plan to sets of shapes, which share what does not depend on them."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._formulas = PlanFormulas(manifest)

    def bind(self, shapes: Sequence[Shape], sizes: Mapping[str, int] = NO_SIZES) -> ShapeBinding:
        """Everything that depends on the shapes of the inputs, and on what the run's own sizes are taken for."""
        manifest, formulas = self._manifest, self._formulas
        values = _symbol_values(manifest, shapes, sizes)
        evaluated = formulas.table.evaluated(values)
        if not formulas.meets_requirements(evaluated):
            _check_requirements(manifest, shapes, values)
        try:
            return _Binder(manifest, formulas, evaluated).bind(tuple(shapes))
        except (ExpressionError, MemoryPlanError) as error:
            given = _listed(manifest, shapes)
            # Where a layer has no elements left, formulas of the layers behind it fail, which do not show the reason.
            emptied = first_without_elements(manifest.layers, values)
            why = "" if emptied is None else f", as layer {emptied} has no elements left"
            raise PlanError(f"the plan has no meaning for the shapes {given}{why}: {error}; give others") from error


class _Binder:
    """Evaluates the formulas of one manifest for one set of symbol values."""

    def __init__(self, manifest: Manifest, formulas: PlanFormulas, evaluated: EvaluatedFormulas) -> None:
        self.manifest = manifest
        self.formulas = formulas
        self.values = evaluated.values
        self._value = evaluated.of
        # What no run with these values comes to need not make sense for them.
        self.never_run = set[int]() if formulas.is_straight else never_run(manifest.program, self.values)[0]
        self.faults: dict[int, str] = {}
        """What is wrong with launches that a run may never come to: data or a size that it tells decide about that."""
        self.unused = self._unused() if self.never_run else frozenset[int]()
        self._numbers = evaluated.array() if evaluated.is_whole and not self.never_run else None
        self.size_array, self.start_array = self._arrays()
        self.sizes: list[int] = self.size_array.tolist()
        self.starts: list[int] = self.start_array.tolist()

    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Bytes of each buffer, and where it starts in its owner: all at once where all make sense."""
        if self._numbers is not None:
            sizes = self.formulas.sizes(self._numbers)
            starts = None if sizes is None else self.formulas.starts(self._numbers, sizes)
            if sizes is not None and starts is not None:
                return sizes, starts
        count = range(len(self.manifest.buffers))
        self.sizes = [self._size(i) for i in count]
        return np.array(self.sizes, np.int64), np.array([self._start(i) for i in count], np.int64)

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

    def _natural(self, expression: Expression, what: str) -> int:
        value = self._value(expression)
        if not 0 <= value <= MAX_BYTES:
            raise ExpressionError(f"{what} is {value}")
        return value

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
        offsets, total = self._arena()
        offset_array = np.zeros(len(self.sizes), np.int64)
        offset_array[self.formulas.owner_array] = offsets
        halos = {
            (int(offset_array[i]), self.sizes[i], manifest.buffers[i].fill)
            for i, halo in zip(self.formulas.owners, self.formulas.halos, strict=True)
            if halo is not None and self.sizes[i]
        }
        words = self._words()
        return ShapeBinding(
            input_shapes=input_shapes,
            output_shapes=output_shapes,
            outputs=tuple(Address(manifest.roots[t.buffer], self.starts[t.buffer]) for t in manifest.outputs),
            size_array=self.size_array,
            offset_array=offset_array,
            arena_bytes=total,
            halos=tuple(sorted(halos)),
            arguments=self.formulas.arguments,
            words=words,
            values=self.values,
            places={} if self.formulas.is_straight else self._places(),
            program=self._decided(),
            binder=self,
        )

    def _words(self) -> np.ndarray | None:
        """The arguments of all launches, every number of which is checked."""
        formulas = self.formulas
        if self._numbers is not None and formulas.fills_arrays and not formulas.arguments.has_maps:
            words = formulas.arguments.words(self._numbers, self.size_array, self.start_array)
            if words is not None:
                for number in formulas.unproved(words, self.size_array):
                    self._launch(number, self.manifest.launches[number])
                return words
        launches = self.launches
        return formulas.arguments.words_of(launches) if self.manifest.target.kind == "cpu" else None

    @cached_property
    def launches(self) -> tuple[BoundLaunch, ...]:
        """The launches one by one."""
        return tuple(self._launch(number, launch) for number, launch in enumerate(self.manifest.launches))

    def _decided(self) -> Program:
        if self.formulas.is_straight:
            return self.manifest.program
        return decided(self.manifest.program, self.values, self.faults)

    def _places(self) -> dict[Place, Address]:
        return {
            place: self._place(place, 1 if not isinstance(step, SizeCheck) else 8)
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
        held = self.sizes[tensor.buffer]
        if size > MAX_BYTES or (held != size if is_own else held < size):
            raise ExpressionError(f"buffer of {tensor.name!r} has {held} bytes, its tensor {size}")

    def _arena(self) -> tuple[Sequence[int] | np.ndarray, int]:
        """The offset of each owner of memory, and the bytes of all."""
        formulas = self.formulas
        owners, given = formulas.owners, [self._natural(one, "an offset") for one in formulas.given_offsets]
        if len(given) < len(owners) and not self._runs_side_by_side:
            return formulas.placements.place(self.size_array[formulas.owner_array])
        described = zip(owners, formulas.lives, formulas.halos, strict=True)
        requests = [Request(self.sizes[i], first, last, halo) for i, (first, last), halo in described]
        if len(given) == len(owners):
            total = max((offset + request.size for offset, request in zip(given, requests, strict=True)), default=0)
            verify(requests, given, total)
            return given, total
        chosen = plan(requests)
        if all(halo is None for halo in formulas.halos):
            apart = self._side_by_side(owners)
            if apart.total <= max(chosen.total, _SIDE_BY_SIDE_BYTES):
                chosen = apart
        return chosen.offsets, chosen.total

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

    def _launch(self, step: int, launch: Launch) -> BoundLaunch:
        kernel = self.manifest.kernels[launch.kernel]
        if step in self.never_run:
            return BoundLaunch(step, tuple(map(self._placeholder, launch.args)), (1, 1, 1))
        # Where a tensor has no elements the first one of a slice has no place, and none is needed. A CPU's kernel runs
        # nevertheless and finds by its numbers that there is nothing to do.
        grid = (0, 0, 0) if self._writes_nothing(launch) else self._grid(launch)
        args = tuple(
            self._placeholder(argument)
            if 0 in grid and isinstance(argument, BufferArgument | MapArgument)
            else self._argument(argument, kind, f"launch {step} ({launch.layer[:80]}), argument {i}")
            for i, (argument, kind) in enumerate(zip(launch.args, kernel.args, strict=True))
        )
        if kernel.plugin is not None or step not in self.manifest.sealed:
            self._prove(step, launch, args, grid)
        return BoundLaunch(step, args, grid)

    def _prove(self, step: int, launch: Launch, args: Sequence[BoundArgument], grid: Sequence[int]) -> None:
        """Raise where the numbers of a launch would let it leave its buffers, or let runs end that come to it."""
        kernel = self.manifest.kernels[launch.kernel]
        found = self.manifest.contracts.get(kernel.symbol, ())
        contracts = () if any(one.unproved for one in found) else found  # others are as they were made
        if kernel.plugin is not None:
            faults = [self._fault(kernel, args, dense_extents(kernel.plugin, args))]
        elif 0 in grid and self.manifest.target.kind == "cuda":
            return
        else:
            faults: list[str | None] = []
            for contract in contracts:
                faults.append(self._fault(kernel, args, contract.extents_of(args, grid)))
                if faults[-1] is None:
                    break
        if faults and faults[-1] is not None:
            self.faults[step] = f"layer {launch.layer[:200]}: {faults[0]}"
            if step in self._certain:
                raise ExpressionError(self.faults[step])

    @cached_property
    def _certain(self) -> frozenset[int]:
        return certain(self.manifest.program)

    def _fault(self, kernel: Kernel, args: Sequence[BoundArgument], extents: "Extents | str") -> str | None:
        """Why a launch may not touch such extents of its buffers, or not pass such numbers."""
        if isinstance(extents, str):
            return extents
        for place, (start, end) in extents.items():
            pointer = args[place]
            assert isinstance(pointer, Address)
            held = self.sizes[pointer.root]
            if start < end and not 0 <= pointer.offset + start < pointer.offset + end <= held:
                return (
                    f"its kernel would touch bytes {pointer.offset + start} to {pointer.offset + end} of a buffer of "
                    f"{held} bytes (argument {place} of {kernel.name[:80]})"
                )
        return None

    def _writes_nothing(self, launch: Launch) -> bool:
        """Whether all that a launch writes has no bytes."""
        written = [launch.args[place] for place in self.manifest.kernels[launch.kernel].written]
        places = [one.buffer for one in written if isinstance(one, BufferArgument | MapArgument)]
        return bool(places) and not any(self.sizes[buffer] for buffer in places)

    def _placeholder(self, argument: Argument) -> BoundArgument:
        """Something of the argument's kind, which nothing reads."""
        if isinstance(argument, BufferArgument):
            return Address(self.manifest.roots[argument.buffer], 0)
        if isinstance(argument, MapArgument):
            return self._map_placeholder(argument)
        return 0 if isinstance(argument, IntArgument) else argument.value

    def _map_placeholder(self, argument: MapArgument) -> TensorMap:
        layout = replace(argument.fixed, sizes=(1,) * len(argument.sizes), steps=(16,) * len(argument.steps))
        return TensorMap(Address(self.manifest.roots[argument.buffer], 0), layout)

    def _argument(self, argument: Argument, kind: str, where: str) -> BoundArgument:
        if isinstance(argument, BufferArgument):
            extent = 0 if argument.extent is None else self._natural(argument.extent, f"{where}: bytes")
            # Where there are no elements, that of the third column or the last row has no place: nothing reads it.
            is_empty = self.sizes[argument.buffer] == 0
            offset = 0 if is_empty else self._natural(argument.offset, f"{where}: offset")
            if offset + extent > self.sizes[argument.buffer]:
                raise ExpressionError(f"{where}: reaches beyond the {self.sizes[argument.buffer]} bytes of its buffer")
            return Address(self.manifest.roots[argument.buffer], self.starts[argument.buffer] + offset)
        if isinstance(argument, MapArgument):
            return self._tensor_map(argument, where)
        if isinstance(argument, IntArgument):
            value = self._value(argument.value)
            if kind == "i32" and not -(2**31) <= value < 2**31:
                raise ExpressionError(f"{where}: {value} does not fit 32 bits")
            return value
        return argument.value

    def _tensor_map(self, argument: MapArgument, where: str) -> TensorMap:
        sizes, steps = (
            tuple(self._natural(one, f"{where}: {what}") for one in given)
            for given, what in ((argument.sizes, "a size"), (argument.steps, "a step"))
        )
        if 0 in sizes:  # a kernel that sums up nothing copies nothing
            return self._map_placeholder(argument)
        layout = replace(argument.fixed, sizes=sizes, steps=steps)
        offset = self._natural(argument.offset, f"{where}: offset")
        if offset + layout.extent() > self.sizes[argument.buffer]:
            raise ExpressionError(
                f"{where}: {sizes} is no tensor in the {self.sizes[argument.buffer]} bytes of its buffer"
            )
        return TensorMap(Address(self.manifest.roots[argument.buffer], self.starts[argument.buffer] + offset), layout)

    def _place(self, place: Place, size: int) -> Address:
        offset = self._natural(place.offset, "offset of a condition")
        if offset + size > self.sizes[place.buffer]:
            raise ExpressionError(f"a condition lies beyond the {self.sizes[place.buffer]} bytes of its buffer")
        return Address(self.manifest.roots[place.buffer], self.starts[place.buffer] + offset)

    def _grid(self, launch: Launch) -> tuple[int, int, int]:
        x, y, z = (self._natural(size, f"grid of {launch.layer[:80]}") for size in launch.grid)
        if self.manifest.target.kind == "cuda" and (x >= 2**31 or max(y, z) > 65535):
            raise ExpressionError(f"grid {(x, y, z)} of {launch.layer[:80]} is beyond what a device can launch")
        return x, y, z
