"""The inputs that callers give by name, checked against what a plan expects, and in its order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.input_arrays import checked_array, checked_input
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.run_state import MAIN, RunState


class NamedInputs:
    """The inputs of a plan; those that are states come from the run before."""

    def __init__(self, manifest: Manifest, state: RunState | None) -> None:
        self._manifest, self._state = manifest, state
        states = {} if state is None else state.pairs
        self.expected = [(one.name, numpy_dtype(one.dtype)) for one in manifest.given_inputs if one.name not in states]
        """Names and types of the inputs that each run is given."""
        self.names = [name for name, _ in self.expected]
        self._is_joined = manifest.target.kind == "cuda" and state is None

    def checked(self, feeds: Mapping[str, np.ndarray], sequence: str = MAIN) -> list[np.ndarray]:
        """The inputs of a run in the order of the plan, those that are states from the sequence."""
        state = self._state
        if state is None:
            return self._given(feeds)
        own = {name: array for name, array in feeds.items() if name not in state.pairs}
        given = dict(zip(self.names, self._given(own), strict=True))
        for name in feeds.keys() - own.keys():
            dtype = numpy_dtype(self._manifest.given_inputs[state.pairs[name].input].dtype)
            given[name] = checked_array(name, feeds[name], dtype)
        return state.merged(given, sequence)

    def _given(self, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        try:
            if len(feeds) == len(self.expected):
                return self._in_order(feeds)
        except (KeyError, TypeError, IndexError):
            pass  # no mapping, or other names
        self._complain(feeds)
        return self._in_order(feeds)

    def _in_order(self, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        found = [checked_input(name, feeds[name], dtype, is_joined=self._is_joined) for name, dtype in self.expected]
        return cast("list[np.ndarray]", found)  # `CudaProgram.upload` alone reads more of them than shape and type

    def _complain(self, feeds: Mapping[str, np.ndarray]) -> None:
        try:
            names = set(feeds)
        except TypeError as error:
            kind = type(feeds).__name__
            example = f"{{{self.names[0]!r}: array}}" if self.names else "{}"
            raise InvalidInputError(f"expected the inputs by name, such as {example}, got {kind}") from error
        known = ", ".join(map(repr, self.names)) or "none"
        for name in self.names:
            if name not in names:
                raise InvalidInputError(f"input {name!r} is missing; the engine's inputs are {known}")
        for name in feeds:
            if name not in self.names:
                raise InvalidInputError(f"the engine has no input {name!r}; its inputs are {known}")
