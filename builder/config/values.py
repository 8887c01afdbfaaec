"""Values of settings: when two are equal, and how they are written in files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_ARRAY = ("dtype", "shape", "values")
_FILE_KINDS = (str, int, float, bool, type(None))


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal: arrays by type, shape and bytes, lists and tuples by their items."""
    if _is_array(one) or _is_array(other):
        return (
            _is_array(one)
            and _is_array(other)
            and (one.dtype, one.shape) == (other.dtype, other.shape)
            and one.tobytes() == other.tobytes()
        )
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        mine, theirs = cast("Mapping[Any, Any]", one), cast("Mapping[Any, Any]", other)
        return mine.keys() == theirs.keys() and all(same(value, theirs[key]) for key, value in mine.items())
    if _is_sequence(one) and _is_sequence(other):
        pair = cast("tuple[Sequence[Any], Sequence[Any]]", (one, other))
        return len(pair[0]) == len(pair[1]) and all(map(same, *pair))
    return bool(one == other)


def written(name: str, value: Any) -> Any:
    """A value as JSON has it; an array becomes its type, its shape and its elements."""
    if isinstance(value, _FILE_KINDS):
        return value
    if isinstance(value, Mapping):
        return {key: written(name, one) for key, one in cast("Mapping[str, Any]", value).items()}
    if _is_sequence(value):
        return [written(name, one) for one in value]
    if _is_array(value):
        elements = [_element(one) for one in value.reshape(-1).tolist()]
        return dict(zip(_ARRAY, (value.dtype.name, list(value.shape), elements), strict=True))
    edits = getattr(value, "edits", None)
    if edits is not None:
        return [str(edit) for edit in edits]
    raise InvalidInputError(f"{name}: a file cannot hold {type(value).__name__}; give it when you build")


def read(name: str, value: Any) -> Any:
    """What `written` has made of a value."""
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        if set(found) == set(_ARRAY):
            return _array(name, found)
        return {key: read(name, one) for key, one in found.items()}
    return [read(name, one) for one in cast("list[Any]", value)] if isinstance(value, list) else value


def _array(name: str, record: Mapping[str, Any]) -> Array:
    import numpy as np

    try:
        return np.array(record["values"], dtype=np.dtype(record["dtype"])).reshape(record["shape"])
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name}: {error}") from error


def _element(value: Any) -> Any:
    """Infinite numbers and NaN have no form of their own in JSON."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "tobytes")


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
