"""The shapes that a page shows where nobody asked for others: those of the profile, else sizes that make sense."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlirt.errors import InvalidInputError, MlirtError
from mlirt.runtime.expressions import ExpressionError, evaluate
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.shape_binding import ShapeBinder, ShapeBinding
from mlirt.runtime.symbol_values import Shape

# A network may halve its picture five times and join the halves with what they came from: 64 first, then others that
# networks ask for, and 1 where a dimension counts something.
_LENGTHS = (64, 32, 128, 224, 256, 320, 512, 640, 16, 8, 1)


def usual_binding(manifest: Manifest, given: Mapping[str, Sequence[int]]) -> ShapeBinding:
    """The plan for the shapes that are given, by input, and for usual ones of the other inputs.

    Raises `InvalidInputError` for an input that there is not, or the error of the first attempt where none fits.
    """
    unknown = given.keys() - {tensor.name for tensor in manifest.given_inputs}
    if unknown:
        names = [tensor.name for tensor in manifest.given_inputs]
        raise InvalidInputError(f"there is no input {min(unknown)!r}: expected {names}")
    binder = ShapeBinder(manifest)
    failure: MlirtError | None = None
    for shapes in _attempts(manifest, given):
        try:
            return binder.bind(shapes)
        except MlirtError as error:
            failure = failure or error
    raise failure or InvalidInputError("no usual shapes fit the inputs: give --shapes")


def _attempts(manifest: Manifest, given: Mapping[str, Sequence[int]]) -> Iterator[list[Shape]]:
    """Shapes of all inputs, the likeliest first; what is given tells the lengths of its symbols in other inputs too."""
    tensors = manifest.given_inputs
    known = _known(manifest, given)
    if manifest.profiles:
        usual = {name: one.optimum for name, one in manifest.profiles[0].items()}
        if all(tensor.name in {*usual, *given} or _is_fixed(tensor.shape) for tensor in tensors):
            chosen = {**{tensor.name: _fixed(tensor.shape) for tensor in tensors}, **usual, **given}
            yield [tuple(chosen[tensor.name]) for tensor in tensors]
    for length in _LENGTHS:
        values = {symbol.name: 1 if symbol.axis == 0 else length for symbol in manifest.symbols} | known
        try:
            yield [tuple(given.get(one.name, [evaluate(dim, values) for dim in one.shape])) for one in tensors]
        except ExpressionError:
            continue
        if not manifest.symbols:
            return


def _known(manifest: Manifest, given: Mapping[str, Sequence[int]]) -> dict[str, int]:
    inputs = manifest.given_inputs
    return {
        symbol.name: given[inputs[symbol.input].name][symbol.axis]
        for symbol in manifest.symbols
        if symbol.input < len(inputs) and symbol.axis < len(given.get(inputs[symbol.input].name, ()))
    }


def _is_fixed(shape: Sequence[object]) -> bool:
    return all(isinstance(dim, int) for dim in shape)


def _fixed(shape: Sequence[object]) -> list[int]:
    return [dim if isinstance(dim, int) else 1 for dim in shape]
