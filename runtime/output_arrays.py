"""Arrays of the caller that outputs are put into."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlirt.errors import InvalidInputError


def put_into(given: Mapping[str, np.ndarray], found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs, in the arrays that are given for them; InvalidInputError where one does not fit.

    Nothing is written unless all fit.
    """
    for name, array in given.items():
        _check(name, array, found)
    for name, array in given.items():
        np.copyto(array, found[name])
    return {**found, **given}


def _check(name: str, array: np.ndarray, found: Mapping[str, np.ndarray]) -> None:
    if name not in found:
        raise InvalidInputError(f"the engine has no output {name!r}; its outputs are {', '.join(map(repr, found))}")
    if not isinstance(array, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError(f"output {name!r}: expected a NumPy array, got {type(array).__name__}")
    dtype, shape = found[name].dtype, found[name].shape
    if array.dtype != dtype or array.shape != shape:
        raise InvalidInputError(
            f"output {name!r}: expected an array of {dtype} and shape {shape}, got {array.dtype} and {array.shape}"
        )
    if not array.flags.writeable:
        raise InvalidInputError(f"output {name!r}: the array is read-only")
