"""What all enumerations of the TensorRT names share: numbers that print as `Kind.MEMBER`."""

from enum import Enum, IntEnum


class Enumeration(IntEnum):
    """A number with a name; `1 << int(Kind.MEMBER)` is its bit in a mask."""

    def __str__(self) -> str:
        return Enum.__str__(self)
