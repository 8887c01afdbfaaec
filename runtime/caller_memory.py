"""Runs on device memory of a caller: kernels read inputs and write outputs where they lie, and nothing is copied.

A graph holds addresses. One is captured for the addresses of a call when they come a second time, and kept for more
such calls; allocators that keep freed memory, such as PyTorch's, give the same few again. Until then, and where memory
does not fit as it is, tensors are copied from and to the memory of the context.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mlirt.runtime.bound_launch import Address, TensorMap
from mlirt.runtime.driver_interface import Handle
from mlirt.runtime.frozen_launches import FrozenLaunches
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.memory_planning import ALIGNMENT
from mlirt.runtime.shape_binding import ShapeBinding

Addresses = tuple[tuple[int, int], ...]
KEPT_GRAPHS = 8
_REMEMBERED = 64


class Placed(NamedTuple):
    """The buffers that lie in a caller's memory, by their number, and the (target, source, size) copies of others."""

    bases: dict[int, int]
    before: list[tuple[int, int, int]]
    after: list[tuple[int, int, int]]


class CallerMemory:
    """Which inputs and outputs of one set of shapes can lie in a caller's memory, by their places in the plan."""

    def __init__(
        self, manifest: Manifest, binding: ShapeBinding, bases: Mapping[int, int], output_sizes: Sequence[int]
    ) -> None:
        """`bases` says where the context has each buffer."""
        self._bases = bases
        self._placed: dict[tuple[int, ...], Placed] = {}
        roots = [place.root for place in binding.outputs]
        written = _written(manifest, binding) | set(roots)
        self._inputs = [
            (tensor.buffer, binding.sizes[tensor.buffer], tensor.buffer not in written)
            for tensor in manifest.given_inputs
        ]
        self._outputs = [
            (place, size, _is_whole(place, size, manifest, binding) and roots.count(place.root) == 1)
            for place, size in zip(binding.outputs, output_sizes, strict=True)
        ]

    def placed(self, inputs: Sequence[int], outputs: Sequence[int], *, in_place: bool = True) -> Placed:
        """What becomes of tensors at these addresses; with `in_place` false all are copied."""
        key = (in_place, *inputs, *outputs)
        found = self._placed.get(key)
        if found is None:
            if len(self._placed) >= _REMEMBERED:
                self._placed.clear()
            found = self._placed[key] = self._place(inputs, outputs, in_place)
        return found

    def _place(self, inputs: Sequence[int], outputs: Sequence[int], in_place: bool) -> Placed:
        found = Placed({}, [], [])
        held = [(address, address + size) for address, (_, size, _) in zip(inputs, self._inputs, strict=True) if size]
        for address, (buffer, size, can_stay) in zip(inputs, self._inputs, strict=True):
            if in_place and size and can_stay and address % ALIGNMENT == 0:
                found.bases[buffer] = address
            elif size:
                found.before.append((self._bases[buffer], address, size))
        for address, (place, size, can_stay) in zip(outputs, self._outputs, strict=True):
            is_apart = all(address + size <= start or end <= address for start, end in held)
            if in_place and size and can_stay and is_apart and address % ALIGNMENT == 0:
                found.bases[place.root] = address
            elif size:
                found.after.append((address, self._bases[place.root] + place.offset, size))
            held.append((address, address + size))
        return found


def _is_whole(place: Address, size: int, manifest: Manifest, binding: ShapeBinding) -> bool:
    """Whether an output is all of a buffer that holds nothing else."""
    is_output = manifest.buffers[place.root].kind == "output"
    return is_output and place.offset == 0 and binding.sizes[place.root] == size


def _written(manifest: Manifest, binding: ShapeBinding) -> set[int]:
    """The buffers that launches write."""
    found: set[int] = set()
    for launch in binding.launches:
        for place in manifest.kernels[manifest.launches[launch.index].kernel].written:
            argument = launch.args[place]
            address = argument.address if isinstance(argument, TensorMap) else argument
            if isinstance(address, Address):
                found.add(address.root)
    return found


class CallerGraphs:
    """Graphs by the addresses of a caller's tensors: the last few that have come more than once."""

    def __init__(self) -> None:
        self._seen: dict[Addresses, None] = {}
        self._graphs: dict[Addresses, tuple[Handle, FrozenLaunches]] = {}

    def __iter__(self) -> Iterator[Handle]:
        return (graph for graph, _ in self._graphs.values())

    def __len__(self) -> int:
        return len(self._graphs)

    def graph_at(
        self,
        bases: Mapping[int, int],
        capture_at: Callable[[Mapping[int, int]], tuple[Handle, FrozenLaunches]],
        free: Callable[[Handle], None],
    ) -> Handle | None:
        """The graph on these addresses; None where they come for the first time. `free` takes one that is dropped."""
        key = tuple(sorted(bases.items()))
        known = self._graphs.pop(key, None)
        if known is None:
            if key not in self._seen:
                self._note(key)
                return None
            known = capture_at(bases)
        self._graphs[key] = known
        if len(self._graphs) > KEPT_GRAPHS:
            free(self._graphs.pop(next(iter(self._graphs)))[0])
        return known[0]

    def _note(self, key: Addresses) -> None:
        self._seen[key] = None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
