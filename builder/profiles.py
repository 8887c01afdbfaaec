"""Shape profiles: for an input with dynamic dimensions, the smallest, the usual and the largest shape to come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlirt.errors import InvalidInputError

Shape = Sequence[int]
ProfileLike = Mapping[str, Sequence[Shape]]
Profiles = ProfileLike | Sequence[ProfileLike]


@dataclass(frozen=True)
class Profile:
    """The shapes of one input."""

    smallest: tuple[int, ...]
    usual: tuple[int, ...]
    largest: tuple[int, ...]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The smallest, the usual and the largest one."""
        return self.smallest, self.usual, self.largest


def read_profiles(profiles: Profiles | None) -> list[dict[str, Profile]]:
    """The profiles, each by input name; a mapping is one, a sequence of mappings several.

    Raises `InvalidInputError` where the three shapes of an input contradict each other.
    """
    if profiles is None:
        return []
    given = [profiles] if isinstance(profiles, Mapping) else profiles
    wrong = [given] if isinstance(given, str | bytes) or not isinstance(given, Sequence) else given  # pyright: ignore[reportUnnecessaryIsInstance]
    for one in wrong:
        if not isinstance(one, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(f"profiles are (min, opt, max) shapes by input name, got {type(one).__name__}")
    return [{name: _profile(name, shapes) for name, shapes in one.items()} for one in given if one]


def widest(profiles: Sequence[Mapping[str, Profile]]) -> dict[str, Profile]:
    """For each input of which all profiles speak one that covers them, with the first one's usual shape.

    Raises `InvalidInputError` where they have different ranks.
    """
    first, *others = profiles or [{}]
    found = dict(first)
    for profile in others:
        found = {name: _joined(name, one, profile[name]) for name, one in found.items() if name in profile}
    return found


def _joined(name: str, one: Profile, other: Profile) -> Profile:
    if len(one.usual) != len(other.usual):
        ranks = f"{len(one.usual)} and {len(other.usual)}"
        raise InvalidInputError(
            f"profiles of input {name!r}: their shapes have {ranks} dimensions, not the same number"
        )
    low = tuple(map(min, zip(one.smallest, other.smallest, strict=True)))
    high = tuple(map(max, zip(one.largest, other.largest, strict=True)))
    return Profile(low, one.usual, high)


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
