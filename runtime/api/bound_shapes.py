"""The shapes that a caller gave the inputs of an engine, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlirt.errors import InvalidInputError, MlirtError
from mlirt.runtime.api.engine_tensors import EngineTensor, profile_shapes
from mlirt.runtime.expressions import ExpressionError, evaluate, parse
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.size_program import SizeProgram
from mlirt.runtime.symbol_values import bind_symbols
from mlirt.tensorrt.dims import Dims

NO_PROFILE = -1


class BoundShapes:
    """The shape of each input: its own where it is not dynamic, else what was set."""

    def __init__(
        self,
        manifest: Manifest,
        tensors: Mapping[str, EngineTensor],
        size_program: SizeProgram,
        values: Callable[[], Mapping[str, Sequence[int]]] = dict,
    ) -> None:
        """`values` gives the elements of the inputs that are read as shapes, as far as they are known."""
        self.profile = 0
        self._values = values
        self._size_program = size_program
        self._manifest = manifest
        self._tensors = tensors
        self._given = {name: tuple(one.shape) for name, one in tensors.items() if one.is_input and -1 not in one.shape}

    def set(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise `InvalidInputError` where an input has another rank, or the profile another range."""
        tensor = self._tensors.get(name)
        if tensor is None or not tensor.is_input:
            raise InvalidInputError(f"the engine has no input {name!r}")
        if len(shape) != len(tensor.shape):
            raise InvalidInputError(f"{name}: engineDims.nbDims == dims.nbDims: expected {tensor.shape}, got {shape}")
        if min(shape, default=0) < 0:
            raise InvalidInputError(f"{name}: {list(shape)} is no shape; each length is to be set")
        for axis, (length, own) in enumerate(zip(shape, tensor.shape, strict=True)):
            if own not in (-1, length):
                raise InvalidInputError(f"{name}: Static dimension mismatch at index {axis}: {length}, expected {own}")
        self._check_profile(name, shape)
        self._check_built(name, shape)
        self._given[name] = shape

    def _check_built(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise `InvalidInputError` for a length that the network leaves open and that is fixed in the engine."""
        built = next((one.known_shape for one in self._manifest.inputs if one.name == name), ())
        for axis, (length, own) in enumerate(zip(shape, built, strict=False)):
            if isinstance(own, int) and own != length:
                raise InvalidInputError(f"{name}: dimension {axis} is {length}, but the layers need {own}")

    def check_has_profile(self) -> None:
        """Raise `InvalidInputError` where no profile is chosen."""
        if self.profile == NO_PROFILE:
            raise InvalidInputError(
                "no optimization profile is chosen: another execution context uses profile 0; choose a profile that "
                "none uses by set_optimization_profile_async, or destroy the other context"
            )

    def choose_profile(self, profile: int) -> None:
        """Change the profile, and forget shapes that it does not allow."""
        self.profile = profile
        for name, shape in list(self._given.items()):
            try:
                self._check_profile(name, shape)
            except InvalidInputError:
                del self._given[name]

    def check_values(self, tensor: EngineTensor, values: Sequence[int]) -> None:
        """Raise `InvalidInputError` for values that the profile does not allow an input that is read as a shape."""
        self.check_has_profile()
        if tensor.shape_values is None or self.profile >= len(tensor.shape_values):
            raise InvalidInputError(f"{tensor.name!r} is no input that is read as a shape")
        low, _, high = tensor.shape_values[self.profile]
        if len(values) != len(low):
            raise InvalidInputError(f"{tensor.name}: expected {len(low)} values, got {len(values)}")
        for place, (least, value, most) in enumerate(zip(low, values, high, strict=True)):
            if not least <= value <= most:
                raise InvalidInputError(
                    f"{tensor.name}: Supplied values {list(values)} exceed min ~ max range at index {place}, "
                    f"maximum value in profile is {most}, minimum value in profile is {least}"
                )

    def _check_profile(self, name: str, shape: tuple[int, ...]) -> None:
        self.check_has_profile()
        ranges = profile_shapes(self._manifest, self.profile, name)
        if not ranges:
            return
        low, _, high = ranges
        for axis, (least, length, most) in enumerate(zip(low, shape, high, strict=True)):
            if not least <= length <= most:
                raise InvalidInputError(
                    f"{name}: Supplied binding shapes {list(shape)} exceed min ~ max range at index {axis}, "
                    f"maximum shape in profile is {most}, minimum shape in profile is {least}"
                )

    def given(self, name: str) -> tuple[int, ...] | None:
        """The shape of an input that is its own or was set."""
        return self._given.get(name)

    def missing(self) -> list[str]:
        """The inputs without a shape."""
        return [name for name, one in self._tensors.items() if one.is_input and name not in self._given]

    def shape_of(self, name: str) -> Dims:
        """The lengths of a tensor; -1 where something is still to be set, or the run decides."""
        if name in self._given:
            return Dims(self._given[name])
        if self._tensors[name].is_input or self.missing():
            return Dims(self._tensors[name].shape)
        values = self.symbols()
        shape = next(one.known_shape for one in self._manifest.outputs if one.name == name)
        lengths: list[int] = []
        for dim in shape:
            try:
                lengths.append(evaluate(dim, values))
            except (ExpressionError, KeyError):
                lengths.append(-1)
        return Dims(lengths)

    def largest_shape(self, name: str) -> tuple[int, ...]:
        """The lengths of an output as large as data may make them; -1 where nothing says so."""
        values, lengths = self.symbols(), list[int]()
        for dim in self._tensors[name].largest or self._tensors[name].shape:
            try:
                lengths.append(evaluate(parse(dim, values), values))
            except ExpressionError:
                lengths.append(-1)
        return tuple(lengths)

    def stored_shape(self, name: str) -> tuple[int, ...]:
        """The dense array that holds a tensor of the shape that `shape_of` gives; -1 as there."""
        given = self._given.get(name)
        return self._tensors[name].stored_shape(self.shape_of(name) if given is None else given)

    def check(self) -> None:
        """Raise `InvalidInputError` where the shapes that are set do not fit together."""
        bind_symbols(self._manifest, [self.stored_shape(one.name) for one in self._manifest.given_inputs], {})

    def symbols(self) -> dict[str, int]:
        """What the symbols stand for, as far as the shapes that are set, and the values of shapes, say so."""
        if self.missing():
            return {}
        shapes = [self.stored_shape(one.name) for one in self._manifest.given_inputs]
        try:
            values = bind_symbols(self._manifest, shapes, {})
        except MlirtError:
            return {}
        known = {name: value for name, value in values.items() if name not in self._manifest.sizes}
        return known | self._size_program.sizes(self._values(), known)
