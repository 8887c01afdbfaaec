"""What all enumerations of the TensorRT names share: numbers that print as `Kind.MEMBER`."""

from enum import Enum, IntEnum


class Enumeration(IntEnum):
    """A number with a name; `1 << int(Kind.MEMBER)` is its bit in a mask.

    A member equals no plain number and no member of another enumeration, as TensorRT's do: programs look types of
    several libraries up by equality, and a number of another library must not pass for one of ours.
    """

    def __str__(self) -> str:
        return Enum.__str__(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = IntEnum.__hash__
