"""The shapes that the optimization profiles of a plan allow: those of a run are within one of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mlirt.errors import InvalidInputError
from mlirt.runtime.record_kinds import MAX_RANK, numbers
from mlirt.runtime.record_schema import Fault, stored

Shape = tuple[int, ...]
_LENGTHS = numbers(0, (1 << 48) - 1, MAX_RANK, "expected lengths of dimensions")


@dataclass(frozen=True)
class ShapeRange:
    """The shapes of one input that a profile covers."""

    minimum: Shape = field(metadata=stored(_LENGTHS, key="min"))
    optimum: Shape = field(metadata=stored(_LENGTHS, key="opt"))
    maximum: Shape = field(metadata=stored(_LENGTHS, key="max"))

    def check_rank(self, rank: int) -> None:
        """Raise `Fault` unless these are shapes of so many dimensions, one within the others."""
        shapes = {".min": self.minimum, ".opt": self.optimum, ".max": self.maximum}
        for path, shape in shapes.items():
            if len(shape) != rank:
                raise Fault(f"expected {rank} dimensions", path)
        if any(not low <= best <= high for low, best, high in zip(*shapes.values(), strict=True)):
            raise Fault("expected min <= opt <= max in every dimension", ".opt")

    def beyond(self, shape: Sequence[int]) -> int | None:
        """The first axis on which a shape is too short or too long; None where there is none, or for another rank."""
        if len(shape) != len(self.minimum):
            return None
        ranges = zip(self.minimum, shape, self.maximum, strict=True)
        return next((axis for axis, (low, length, high) in enumerate(ranges) if not low <= length <= high), None)


def check_profiles(profiles: Sequence[Mapping[str, ShapeRange]], shapes: Mapping[str, Shape]) -> None:
    """Raise `InvalidInputError` where no single profile covers the shapes of all inputs; without any, all are right."""
    faults: list[str] = []
    for number, profile in enumerate(profiles):
        fault = next(_faults(profile, shapes, number), None)
        if fault is None:
            return
        faults.append(fault)
    if faults:
        listed = ", ".join(f"{name}={shape}" for name, shape in shapes.items())
        raise InvalidInputError(
            f"no optimization profile covers the shapes {listed}: {'; '.join(faults)}; stay between the profile's "
            "minimum and maximum, or build the engine with another profile"
        )


def _faults(profile: Mapping[str, ShapeRange], shapes: Mapping[str, Shape], number: int) -> Iterator[str]:
    for name, shape in shapes.items():
        covered = profile.get(name)
        axis = None if covered is None else covered.beyond(shape)
        if covered is not None and axis is not None:
            low, high = covered.minimum[axis], covered.maximum[axis]
            yield f"axis {axis} of input {name!r} is {shape[axis]}, profile {number} allows {low} to {high}"
