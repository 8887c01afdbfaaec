"""Binds launches one by one: every argument and the grid as numbers, which are held to the buffers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from mlirt.runtime.bound_launch import Address, BoundArgument, BoundLaunch, TensorMap
from mlirt.runtime.expressions import ExpressionError
from mlirt.runtime.extents import Extents
from mlirt.runtime.formula_table import EvaluatedFormulas
from mlirt.runtime.manifest import Argument, BufferArgument, IntArgument, Kernel, Launch, Manifest, MapArgument
from mlirt.runtime.plugin_calls import dense_extents
from mlirt.runtime.program import Place, certain


class LaunchBinder:
    """The launches of one manifest, for one set of symbol values and the buffers that follow from them.

    `sizes` are the bytes of each buffer, `starts` where each begins in the one that owns its bytes. The launches
    `never_run` have placeholders, as what no run comes to need not make sense.
    """

    def __init__(
        self,
        manifest: Manifest,
        evaluated: EvaluatedFormulas,
        sizes: Sequence[int],
        starts: Sequence[int],
        never_run: set[int],
    ) -> None:
        self.manifest = manifest
        self.sizes, self.starts, self.never_run = sizes, starts, never_run
        self.faults: dict[int, str] = {}
        """What is wrong with launches that a run may never come to: data or a size that it tells decide about that."""
        self._value, self._natural = evaluated.of, evaluated.natural

    @cached_property
    def launches(self) -> tuple[BoundLaunch, ...]:
        """All launches."""
        return tuple(self.bind(number) for number in range(len(self.manifest.launches)))

    def bind(self, step: int) -> BoundLaunch:
        """A launch, by its number; raises ExpressionError where its numbers make no sense or leave its buffers."""
        launch = self.manifest.launches[step]
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

    def place(self, place: Place, size: int) -> Address:
        """Where `size` bytes lie that decide how the program goes on."""
        offset = self._natural(place.offset, "offset of a condition")
        if offset + size > self.sizes[place.buffer]:
            raise ExpressionError(f"a condition lies beyond the {self.sizes[place.buffer]} bytes of its buffer")
        return Address(self.manifest.roots[place.buffer], self.starts[place.buffer] + offset)

    def _grid(self, launch: Launch) -> tuple[int, int, int]:
        x, y, z = (self._natural(size, f"grid of {launch.layer[:80]}") for size in launch.grid)
        if self.manifest.target.kind == "cuda" and (x >= 2**31 or max(y, z) > 65535):
            raise ExpressionError(f"grid {(x, y, z)} of {launch.layer[:80]} is beyond what a device can launch")
        return x, y, z
