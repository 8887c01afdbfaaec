"""Which bytes of the memory of a context each launch of a run reads and writes."""

from collections.abc import Mapping

from mlirt.runtime.bound_launch import Address, BoundLaunch, TensorMap
from mlirt.runtime.launch_order import Access
from mlirt.runtime.manifest import BufferArgument, Manifest
from mlirt.runtime.shape_binding import ShapeBinding


def accesses_of(
    launch: BoundLaunch, manifest: Manifest, binding: ShapeBinding, bases: Mapping[int, int]
) -> list[Access]:
    """The whole buffers, or the parts of them, that a launch has pointers to; `bases` says where a buffer starts.

    Weights are left out: nothing writes them.
    """
    record = manifest.launches[launch.index]
    written = manifest.kernels[record.kernel].written
    found: list[Access] = []
    for place, (argument, given) in enumerate(zip(launch.args, record.args, strict=True)):
        address = argument.address if isinstance(argument, TensorMap) else argument
        if isinstance(address, Address) and manifest.buffers[address.root].kind != "weight":
            start = bases[address.root]
            part = given.part if isinstance(given, BufferArgument) else ()
            found.append(Access(start, start + binding.sizes[address.root], place in written, part))
    return found
