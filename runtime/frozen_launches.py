"""The launches of one set of shapes with the addresses that they are passed: what queues each, and in which order."""

import ctypes
from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from mlirt.runtime.bound_launch import Address, BoundArgument, BoundLaunch, TensorMap
from mlirt.runtime.cuda_graph import Queued
from mlirt.runtime.driver_interface import Handle
from mlirt.runtime.launch_accesses import accesses_of
from mlirt.runtime.launch_order import predecessors, seats
from mlirt.runtime.library_calls import LibraryCall
from mlirt.runtime.manifest import Kernel
from mlirt.runtime.program import Program
from mlirt.runtime.shape_binding import ShapeBinding

if TYPE_CHECKING:
    from mlirt.runtime.cuda import CudaDevice

_CTYPES: dict[str, Callable[[Any], Any]] = {
    "ptr": ctypes.c_uint64,
    "i64": ctypes.c_int64,
    "i32": ctypes.c_int32,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}


class FrozenLaunches:
    """Launches whose arguments are made: `bases` says where each buffer that owns memory begins.

    Those of `left_out` (plugins) and those without blocks are not among them. The arguments live as long as this does.
    """

    def __init__(
        self, device: "CudaDevice", binding: ShapeBinding, bases: Mapping[int, int], left_out: frozenset[int]
    ) -> None:
        self._device, self._driver, self._manifest = device, device.driver, device.manifest
        self._binding, self._bases = binding, bases
        launched = [one for one in binding.launches if 0 not in one.grid and one.index not in left_out]
        self._arguments = [self._frozen(launch) for launch in launched]
        self.queues: list[tuple[BoundLaunch, Callable[..., None]]] = [
            (launch, self._queued(launch, pointers))
            for launch, (pointers, _) in zip(launched, self._arguments, strict=True)
        ]

    def ordered(self, stretch: Program) -> tuple[list[Queued], list[tuple[int, ...]]]:
        """What queues each launch of a stretch, and the earlier ones among them that it waits for."""
        wanted = set(stretch)
        chosen = [(launch, queue) for launch, queue in self.queues if launch.index in wanted]
        blocks = [prod(launch.grid) if self._kernel(launch).cooperative else 0 for launch, _ in chosen]
        accesses = [
            [*accesses_of(launch, self._manifest, self._binding, self._bases), *seat]
            for (launch, _), seat in zip(chosen, seats(blocks, self._driver.processors()), strict=True)
        ]
        return [queue for _, queue in chosen], predecessors(accesses)

    def _address(self, place: Address) -> int:
        return self._bases[place.root] + place.offset

    def _frozen(self, launch: BoundLaunch) -> tuple[Any, list[Any]]:
        """The array of pointers that a launch takes, and the values it points to, which must live as long."""
        kinds = self._kernel(launch).args
        values = [self._argument(kind, arg) for kind, arg in zip(kinds, launch.args, strict=True)]
        pointers = (ctypes.c_void_p * max(len(values), 1))(*[ctypes.addressof(value) for value in values])
        return pointers, values

    def _argument(self, kind: str, argument: BoundArgument) -> Any:
        """The value that a kernel is passed."""
        if isinstance(argument, TensorMap):
            return self._driver.encode_map(argument.layout, self._address(argument.address))
        return _CTYPES[kind](self._address(argument) if isinstance(argument, Address) else argument)

    def _kernel(self, launch: BoundLaunch) -> Kernel:
        return self._manifest.kernels[self._manifest.launches[launch.index].kernel]

    def _queued(self, launch: BoundLaunch, pointers: Any) -> Callable[..., None]:
        """What puts a launch on a stream; it does not know these launches: a cycle would keep memory."""
        kernel, driver = self._kernel(launch), self._driver
        if kernel.call is not None:
            return self._queued_call(launch, kernel.call)
        number = self._manifest.launches[launch.index].kernel
        function, starts_early = self._device.function(number), self._device.starts_early(number)

        def queue(stream: Handle, *, follows: bool) -> None:
            kinds = follows and starts_early, kernel.cooperative
            driver.launch(function, launch.grid, kernel.block, kernel.shared_bytes, stream, pointers, *kinds)

        return queue

    def _queued_call(self, launch: BoundLaunch, what: LibraryCall) -> Callable[..., None]:
        addresses = [self._address(place) for place in launch.args if isinstance(place, Address)]
        numbers = [number for number in launch.args if isinstance(number, int)]
        call = self._device.libraries[what.library].prepare(what, addresses, numbers)

        def queue(stream: Handle, *, follows: bool) -> None:
            call(stream)

        return queue
