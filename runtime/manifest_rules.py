"""The rules of a plan that span several records: views, weights, bindings and lifetimes; each breach is a PlanError."""

from collections.abc import Mapping

from mlirt.errors import PlanError
from mlirt.runtime.manifest import Buffer, BufferArgument, Manifest, MapArgument
from mlirt.runtime.program import Loop, launches, place_of, steps


def roots(buffers: tuple[Buffer, ...]) -> tuple[int, ...]:
    """Follow each view to the buffer that owns the bytes; linear in the number of buffers."""
    unknown, walking = -1, -2
    found = [unknown] * len(buffers)
    for start in range(len(buffers)):
        chain: list[int] = []
        at = start
        while found[at] == unknown:
            found[at] = walking
            chain.append(at)
            at = _view_of(buffers, at)
        if found[at] == walking and buffers[at].view_of is not None:
            raise PlanError(f"plan manifest: buffers[{start}].view_of: the views lead in a circle")
        root = at if found[at] == walking else found[at]
        for link in chain:
            found[link] = root
    return tuple(found)


def _view_of(buffers: tuple[Buffer, ...], i: int) -> int:
    source = buffers[i].view_of
    return i if source is None else source


def check_weights(buffers: tuple[Buffer, ...], weight_sizes: Mapping[str, int]) -> None:
    """Every weight buffer names a stored weight and is no larger than it."""
    for i, buffer in enumerate(buffers):
        if buffer.kind != "weight" or buffer.view_of is not None:
            continue
        if buffer.weight is None or buffer.weight not in weight_sizes:
            raise PlanError(f"plan manifest: buffers[{i}].weight: there is no weight {str(buffer.weight)[:80]!r}")
        stored = weight_sizes[buffer.weight]
        if not isinstance(buffer.size, int) or not 0 <= buffer.size <= stored:
            raise PlanError(f"plan manifest: buffers[{i}].bytes: weight {buffer.weight[:80]!r} has {stored} bytes")


def check_halos(buffers: tuple[Buffer, ...]) -> None:
    """Buffers of one halo class share memory, so their borders hold the same bytes; others have none to fill."""
    fills: dict[str, int] = {}
    for i, buffer in enumerate(buffers):
        if buffer.halo is None and buffer.fill:
            raise PlanError(f"plan manifest: buffers[{i}].fill: the buffer has no halo")
        if buffer.halo is not None and fills.setdefault(buffer.halo, buffer.fill) != buffer.fill:
            raise PlanError(
                f"plan manifest: buffers[{i}].fill: {buffer.fill}, others of its halo class have {fills[buffer.halo]}"
            )


def check_tensors(manifest: Manifest) -> None:
    """An input owns an input buffer; bytes that nobody binds would be read uninitialised."""
    bound = [tensor.buffer for tensor in manifest.inputs]
    for i, tensor in enumerate(manifest.inputs):
        if manifest.buffers[tensor.buffer].kind != "input" or manifest.roots[tensor.buffer] != tensor.buffer:
            raise PlanError(f"plan manifest: inputs[{i}].buffer: buffer {tensor.buffer} is no input buffer")
    outputs = {tensor.buffer for tensor in manifest.outputs}
    for i, (buffer, root) in enumerate(zip(manifest.buffers, manifest.roots, strict=True)):
        if root == i and buffer.kind == "input" and bound.count(i) != 1:
            raise PlanError(f"plan manifest: buffers[{i}]: an input buffer belongs to exactly one input")
        if root == i and buffer.kind == "output" and i not in outputs:
            raise PlanError(f"plan manifest: buffers[{i}]: an output buffer belongs to an output")


def check_lifetimes(manifest: Manifest) -> None:
    """Every use of arena memory, through views too, lies within the lifetime of the buffer that owns it."""
    for step, launch in enumerate(manifest.launches):
        for argument in launch.args:
            if not isinstance(argument, BufferArgument | MapArgument):
                continue
            root = manifest.roots[argument.buffer]
            owner = manifest.buffers[root]
            if owner.kind == "arena" and not owner.first <= step <= owner.last:
                raise PlanError(
                    f"plan manifest: launches[{step}] ({launch.layer[:80]}) uses buffer {root} "
                    f"outside of its lifetime [{owner.first}, {owner.last}]"
                )
    for loop in (step for step in steps(manifest.program) if isinstance(step, Loop)):
        _check_loop(manifest, loop)
    count = len(manifest.launches)
    for i, tensor in enumerate(manifest.outputs):
        owner = manifest.buffers[manifest.roots[tensor.buffer]]
        if owner.kind == "arena" and owner.last < count - 1:
            raise PlanError(f"plan manifest: outputs[{i}]: its buffer dies at step {owner.last}, before the run ends")


def _check_loop(manifest: Manifest, loop: Loop) -> None:
    """What a loop uses and what lives beyond it lives through all of its iterations."""
    inside = list(launches([loop]))
    if not inside:
        return
    first, last = inside[0], inside[-1]
    used = {a.buffer for i in inside for a in manifest.launches[i].args if isinstance(a, BufferArgument)}
    used |= {place.buffer for step in steps([loop]) if (place := place_of(step)) is not None}
    for root in sorted({manifest.roots[buffer] for buffer in used}):
        owner = manifest.buffers[root]
        within = first <= owner.first and owner.last <= last
        through = owner.first <= first and last <= owner.last
        if owner.kind == "arena" and not (within or through):
            raise PlanError(
                f"plan manifest: buffer {root} is alive in [{owner.first}, {owner.last}], which begins or ends "
                f"amid the iterations of a loop over the launches [{first}, {last}]"
            )
