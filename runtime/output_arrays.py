"""Arrays of the caller that outputs are put into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.tensor_exchange import host_array, is_exchangeable

Kind = tuple["np.dtype[np.generic]", tuple[int, ...]]
"""The data type and the shape of an output."""


def put_into(given: Mapping[str, np.ndarray], found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs, in the arrays that are given for them; InvalidInputError where one does not fit.

    Nothing is copied unless all fit.
    """
    arrays = {name: host_output(name, one) for name, one in given.items()}
    check_outputs(arrays, {name: (array.dtype, array.shape) for name, array in found.items()})
    for name, array in arrays.items():
        if array is not found[name]:  # else the run has written it already
            np.copyto(array, found[name])
    return {**found, **given}


def host_output(name: str, given: Any) -> np.ndarray:
    """An array, or that in the memory of another library's tensor."""
    return host_array(f"output {name!r}", given) if is_exchangeable(given) else given


def check_outputs(given: Mapping[str, np.ndarray], kinds: Mapping[str, Kind]) -> None:
    """Raise InvalidInputError where an array cannot be an output of the kind that its name has."""
    for name, array in given.items():
        _check(name, array, kinds)


def _check(name: str, array: np.ndarray, kinds: Mapping[str, Kind]) -> None:
    if name not in kinds:
        raise InvalidInputError(f"the engine has no output {name!r}; its outputs are {', '.join(map(repr, kinds))}")
    if not isinstance(array, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError(f"output {name!r}: expected a NumPy array, got {type(array).__name__}")
    dtype, shape = kinds[name]
    if array.dtype != dtype or array.shape != shape:
        raise InvalidInputError(
            f"output {name!r}: expected an array of {dtype} and shape {shape}, got {array.dtype} and {array.shape}"
        )
    if not array.flags.writeable:
        raise InvalidInputError(f"output {name!r}: the array is read-only")
