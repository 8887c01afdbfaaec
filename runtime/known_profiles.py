"""The profiles of a plan in the shapes that callers know, which are not those of the arrays in memory."""

from collections.abc import Mapping, Sequence

from mlirt.runtime.manifest import Manifest, Tensor
from mlirt.runtime.profile_ranges import Shape, ShapeRange
from mlirt.tensor_formats import layout_of


def known_ranges(manifest: Manifest) -> tuple[Mapping[str, ShapeRange], ...]:
    """For each profile the range of each input that it speaks of."""
    tensors = {one.name: one for one in manifest.given_inputs}

    def known(name: str, found: ShapeRange) -> ShapeRange:
        shapes = (found.minimum, found.optimum, found.maximum)
        return ShapeRange(*(known_lengths(tensors[name], shape) for shape in shapes))

    return tuple(
        {name: known(name, found) for name, found in profile.items() if name in tensors}
        for profile in manifest.profiles
    )


def known_lengths(tensor: Tensor, stored: Sequence[int]) -> Shape:
    """The shape of a tensor as callers know it, from that of the array that holds it."""
    layout = layout_of(tensor.format)
    if layout is None:
        return tuple(stored)
    channels = tensor.known_shape[layout.axis(len(tensor.known_shape))]
    assert isinstance(channels, int)
    return layout.shape_of_stored(stored, channels)
