"""The profiles of a build as its plan keeps them, so that runs stay within their shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlirt.runtime.profile_ranges import ShapeRange
from mlirt.tensor_formats import layout_of

if TYPE_CHECKING:
    from mlirt.builder.profiles import Profile

ProfileRecord = dict[str, dict[str, list[int]]]


def profile_records(
    profiles: Sequence[Mapping[str, Profile]], inputs: Iterable[Mapping[str, Any]]
) -> list[ProfileRecord]:
    """The field `profiles` of a manifest with these inputs: the shapes of the arrays that hold them."""
    layouts = {str(one["name"]): layout_of(str(one.get("format", "LINEAR"))) for one in inputs}

    def stored(name: str, shape: Sequence[int]) -> list[int]:
        layout = layouts[name]
        return list(shape if layout is None else layout.stored_shape(shape))

    return [
        {
            name: {
                "min": stored(name, one.smallest),
                "opt": stored(name, one.usual),
                "max": stored(name, one.largest),
            }
            for name, one in profile.items()
            if name in layouts
        }
        for profile in profiles
    ]


def shape_ranges(profiles: Sequence[Mapping[str, Profile]]) -> list[dict[str, ShapeRange]]:
    """The same for an engine without a plan."""
    return [
        {name: ShapeRange(one.smallest, one.usual, one.largest) for name, one in profile.items()}
        for profile in profiles
    ]
