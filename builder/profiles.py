"""Shape profiles: for an input with dynamic dimensions, the smallest, the usual and the largest shape to come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlirt.errors import InvalidInputError

Shape = Sequence[int]
Profiles = Mapping[str, Sequence[Shape]]


@dataclass(frozen=True)
class Profile:
    """The shapes of one input."""

    smallest: tuple[int, ...]
    usual: tuple[int, ...]
    largest: tuple[int, ...]


def read_profiles(profiles: Profiles | None) -> dict[str, Profile]:
    """The profiles by input name; raises `InvalidInputError` where the three shapes contradict each other."""
    if profiles is not None and not isinstance(profiles, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError(f"profiles are (min, opt, max) shapes by input name, got {type(profiles).__name__}")
    return {name: _profile(name, shapes) for name, shapes in (profiles or {}).items()}


def _profile(name: str, shapes: Sequence[Shape]) -> Profile:
    if isinstance(shapes, str) or len(shapes) != 3 or any(isinstance(shape, int) for shape in shapes):
        raise InvalidInputError(f"profile of input {name!r}: expected the shapes (min, opt, max), got {shapes!r}")
    smallest, usual, largest = (tuple(int(size) for size in shape) for shape in shapes)
    ordered = len(smallest) == len(usual) == len(largest) and all(
        0 <= a <= b <= c for a, b, c in zip(smallest, usual, largest, strict=True)
    )
    if not ordered:
        raise InvalidInputError(
            f"profile of input {name!r}: expected min <= opt <= max in each dimension, "
            f"got {smallest}, {usual}, {largest}"
        )
    return Profile(smallest, usual, largest)


def pinned_shapes(
    profiles: Mapping[str, Profile], own: Mapping[str, Sequence[int | str]]
) -> dict[str, list[int | str]]:
    """The dimensions of each profiled input where those that the profile leaves no choice have become numbers.

    Raises `InvalidInputError` for a profile that contradicts the network.
    """
    result: dict[str, list[int | str]] = {}
    for name, profile in profiles.items():
        if name not in own:
            raise InvalidInputError(f"there is a profile for {name!r}, but the inputs of the network are {sorted(own)}")
        result[name] = _pinned(name, profile, own[name])
    return result


def _pinned(name: str, profile: Profile, own: Sequence[int | str]) -> list[int | str]:
    if len(own) != len(profile.smallest):
        raise InvalidInputError(
            f"profile of input {name!r}: its shapes have {len(profile.smallest)} dimensions, the input is {list(own)}"
        )
    result: list[int | str] = []
    for dim, low, high in zip(own, profile.smallest, profile.largest, strict=True):
        if isinstance(dim, int) and not low == high == dim:
            raise InvalidInputError(
                f"profile of input {name!r}: it says {low} to {high} where the input {list(own)} has {dim}"
            )
        result.append(low if low == high else dim)
    return result
