"""Whether a request can be run: names, data types and shapes against the network's signature, profiles and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.engine_interface import TensorDescription
from mlirt.runtime.profile_ranges import ShapeRange, check_profiles
from mlirt.serve.batching.limits import Limits
from mlirt.serve.batching.request import Array, Key, Request
from mlirt.serve.batching.signature import Signature

_MEBI = float(1 << 20)
_MAX_FORMS = 256
"""Types and shapes of requests that were found right, which are remembered."""

Form = tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]


@dataclass(frozen=True)
class _Form:
    """What is the same for all requests whose arrays have equal types and shapes."""

    rows: int
    key: Key
    size: int


class RequestCheck:
    """Checks requests for one network. `batches`: whether requests are joined along their first dimension."""

    def __init__(self, signature: Signature, limits: Limits, *, batches: bool) -> None:
        self._limits = limits
        self._inputs = {tensor.name: tensor for tensor in signature.inputs}
        self._dtypes = {tensor.name: numpy_dtype(tensor.dtype) for tensor in signature.inputs}
        self._profiles = signature.profiles
        self._symbol = signature.batch_symbol if batches else None
        self._lengths = _known_lengths(signature, limits)
        self._names = tuple(self._inputs)
        self._forms: dict[Form, _Form] = {}

    def __call__(self, feeds: Mapping[str, Array], timeout: float | None) -> Request:
        """The request for these inputs; InvalidInputError names the tensor, what was expected and what came."""
        if timeout is not None and not 0 <= timeout < float("inf"):
            raise InvalidInputError(f"timeout is {timeout!r}; expected seconds from 0 on, or None")
        if feeds.keys() != self._inputs.keys():
            self._check_names(feeds)
        arrays = {name: np.asarray(feeds[name]) for name in self._names}
        form = tuple([(array.dtype, array.shape) for array in arrays.values()])
        found = self._forms.get(form)
        if found is None:
            found = self._checked_form(arrays)
            if len(self._forms) < _MAX_FORMS:
                self._forms[form] = found
        return Request(arrays, found.rows, found.key, found.size, self._limits.timeout if timeout is None else timeout)

    def _checked_form(self, arrays: Mapping[str, Array]) -> _Form:
        lengths: dict[str, tuple[int, str]] = {}
        for name, array in arrays.items():
            self._check_array(name, array, lengths)
        size = sum(array.nbytes for array in arrays.values())
        if size > self._limits.max_request_mb * _MEBI:
            raise InvalidInputError(
                f"the inputs have {size} bytes in all; expected at most {self._limits.max_request_mb:g} MiB"
            )
        shapes = {name: array.shape for name, array in arrays.items()}
        check_profiles(self._covering(shapes), shapes)
        rows = lengths[self._symbol][0] if self._symbol else 1
        return _Form(rows, self._key(shapes), size)

    @property
    def max_rows(self) -> int:
        """The most rows of any batch."""
        return 1 if self._symbol is None else self._lengths[self._symbol]

    def most_rows(self, shapes: Mapping[str, tuple[int, ...]]) -> int:
        """How many rows a batch of requests like this one may have."""
        if self._symbol is None:
            return 1
        allowed = [_range_of_rows(profile) for profile in self._profiles if _covers_but_rows(profile, shapes)]
        return min(self._lengths[self._symbol], max((high for _, high in allowed), default=self._limits.max_batch))

    def padded_rows(self, rows: int, shapes: Mapping[str, tuple[int, ...]]) -> int:
        """The rows that a batch of so many has to be padded to: the next size that there is, which a profile covers."""
        if self._symbol is None:
            return rows
        most = self.most_rows(shapes)
        rows = min((size for size in self._limits.batch_sizes if rows <= size <= most), default=rows)
        if not self._profiles:
            return rows
        allowed = [_range_of_rows(profile) for profile in self._profiles if _covers_but_rows(profile, shapes)]
        if any(low <= rows <= high for low, high in allowed):
            return rows
        return min((low for low, _ in allowed if low > rows), default=rows)

    def _covering(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Mapping[str, ShapeRange], ...]:
        """The profiles to hold shapes against: fewer rows than a profile's minimum are padded, so they are no fault."""
        if self._symbol is None:
            return self._profiles
        return tuple(
            {name: _from_one_row(found) for name, found in profile.items() if name in shapes}
            for profile in self._profiles
        )

    def _key(self, shapes: Mapping[str, tuple[int, ...]]) -> Key:
        return tuple(shape[1:] if self._symbol else shape for shape in shapes.values())

    def _check_names(self, feeds: Mapping[str, Array]) -> None:
        for name in self._inputs:
            if name not in feeds:
                raise InvalidInputError(f"input {name!r} is missing; expected {', '.join(self._inputs)}")
        for name in feeds:
            if name not in self._inputs:
                raise InvalidInputError(f"there is no input {name[:80]!r}; expected {', '.join(self._inputs)}")

    def _check_array(self, name: str, array: Array, lengths: dict[str, tuple[int, str]]) -> None:
        tensor = self._inputs[name]
        if array.dtype != self._dtypes[name]:
            raise InvalidInputError(f"input {name!r} is {array.dtype}; expected {tensor.dtype}")
        if array.ndim != len(tensor.shape):
            raise InvalidInputError(
                f"input {name!r} has shape {list(array.shape)}; "
                f"expected {len(tensor.shape)} dimensions: {_shape(tensor)}"
            )
        for axis, (dim, length) in enumerate(zip(tensor.shape, array.shape, strict=True)):
            self._check_length(tensor, axis, dim, length, lengths)

    def _check_length(
        self, tensor: TensorDescription, axis: int, dim: int | str, length: int, lengths: dict[str, tuple[int, str]]
    ) -> None:
        where = f"axis {axis} of input {tensor.name!r} is {length}"
        if isinstance(dim, int):
            if dim != length:
                raise InvalidInputError(f"{where}; expected {dim}: {_shape(tensor)}")
            return
        most = self._lengths.get(dim)
        if most is not None and not (dim == self._symbol) <= length <= most:
            raise InvalidInputError(f"{where}; expected {int(dim == self._symbol)} to {most} ({dim})")
        known, other = lengths.setdefault(dim, (length, f"axis {axis} of input {tensor.name!r}"))
        if known != length:
            raise InvalidInputError(f"{where}; expected {known}, as {other} is ({dim})")


def _shape(tensor: TensorDescription) -> str:
    return f"[{', '.join(map(str, tensor.shape))}]"


def _known_lengths(signature: Signature, limits: Limits) -> dict[str, int]:
    """The greatest length of each dimension that has one."""
    found = dict(limits.lengths)
    symbol = signature.batch_symbol
    if symbol is not None:
        most = [_range_of_rows(profile)[1] for profile in signature.profiles if profile]
        found[symbol] = min(limits.max_batch, found.get(symbol, limits.max_batch), *([max(most)] if most else []))
    return found


def _range_of_rows(profile: Mapping[str, ShapeRange]) -> tuple[int, int]:
    ranges = [found for found in profile.values() if found.minimum]
    return max((one.minimum[0] for one in ranges), default=0), min(
        (one.maximum[0] for one in ranges), default=(1 << 48) - 1
    )


def _covers_but_rows(profile: Mapping[str, ShapeRange], shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether the shapes are in the profile, whatever their first dimension is."""
    return all(
        found.beyond((found.minimum[0], *shapes[name][1:])) is None
        for name, found in profile.items()
        if name in shapes and found.minimum
    )


def _from_one_row(found: ShapeRange) -> ShapeRange:
    return ShapeRange((min(1, found.minimum[0]), *found.minimum[1:]), found.optimum, found.maximum)
