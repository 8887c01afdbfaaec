"""The state of a context: outputs that stay in the engine and are inputs of the next run, apart for each sequence.

On the CPU they are arrays, which kernels write and read where they lie: one run writes what the next one reads, and two
arrays take turns. On a GPU they stay in its memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Protocol

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.expressions import evaluate
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.symbol_values import Shape

MAIN = ""
"""The sequence of runs that name none."""


class Kept(Protocol):
    """A tensor that stays where the device has it."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def to_host(self) -> np.ndarray:
        """A copy in the host's memory."""
        ...


class RunState:
    """What the inputs of the next run of each sequence are."""

    def __init__(self, manifest: Manifest, initial: Mapping[str, np.ndarray]) -> None:
        """`initial` has, by input, what the first run of a sequence begins with; zeros where it has none."""
        self._manifest, self._initial = manifest, initial
        inputs, outputs = manifest.given_inputs, manifest.outputs
        self.pairs = {inputs[pair.input].name: pair for pair in manifest.state}
        self.outputs = frozenset(pair.output for pair in manifest.state)
        self.output_names = frozenset(outputs[number].name for number in self.outputs)
        self._grows = {
            name for name, pair in self.pairs.items() if inputs[pair.input].shape != outputs[pair.output].shape
        }
        self._values: dict[str, dict[str, Any]] = {}
        self._spare: dict[str, dict[str, np.ndarray]] = {}

    @property
    def sequences(self) -> tuple[str, ...]:
        """Those that have run, or were given values."""
        return tuple(self._values)

    def reset(self, sequence: str | None = None) -> None:
        """Let a sequence, or all, begin anew."""
        for name in [sequence] if sequence is not None else list(self._values):
            self._values.pop(name, None)
            self._spare.pop(name, None)

    def value(self, name: str, sequence: str) -> Any:
        """An input of the next run: an array, or what stays on a device; None where only a run tells its shape."""
        found = self._values.get(sequence, {}).get(name)
        return self._first(name, None) if found is None else found

    def set(self, name: str, value: Any, sequence: str) -> None:
        """Let the next run begin with a copy of an array; InvalidInputError where it does not fit."""
        tensor = self._manifest.given_inputs[self.pairs[name].input]
        array = np.array(value, copy=True, order="C")
        fixed = [have for want, have in zip(tensor.shape, array.shape, strict=False) if isinstance(want, int)]
        if (
            array.dtype != numpy_dtype(tensor.dtype)
            or array.ndim != len(tensor.shape)
            or fixed != [one for one in tensor.shape if isinstance(one, int)]
        ):
            expected = f"{tensor.dtype}{[str(one) for one in tensor.shape]}"
            raise InvalidInputError(f"state {name!r}: expected {expected}, got {array.dtype}{list(array.shape)}")
        self._values.setdefault(sequence, {})[name] = array

    def merged(self, given: Mapping[str, np.ndarray], sequence: str) -> list[Any]:
        """All inputs in the order of the plan; `given` may have the value of a state, for this run."""
        found: list[Any] = []
        values = self._values.get(sequence, {})
        for tensor in self._manifest.given_inputs:
            if tensor.name in given:
                found.append(given[tensor.name])
            else:
                value = values.get(tensor.name)
                found.append(self._first(tensor.name, given) if value is None else value)
        return found

    def _first(self, name: str, given: Mapping[str, np.ndarray] | None) -> np.ndarray | None:
        """What a sequence begins with. Lengths that no other input tells are 0: nothing has been seen yet."""
        if name in self._initial:
            return self._initial[name]
        tensor = self._manifest.given_inputs[self.pairs[name].input]
        if given is None and not all(isinstance(dim, int) for dim in tensor.shape):
            return None
        known = dict.fromkeys((symbol.name for symbol in self._manifest.symbols), 0)
        for one in self._manifest.given_inputs:
            if given is not None and one.name in given:
                lengths = zip(one.shape, given[one.name].shape, strict=False)
                known |= {dim: length for dim, length in lengths if isinstance(dim, str)}
        return np.zeros([evaluate(dim, known) for dim in tensor.shape], numpy_dtype(tensor.dtype))

    def targets(self, arrays: Sequence[Any], sequence: str) -> dict[int, np.ndarray]:
        """By output the array that the run may write it into: what the run before the last has left."""
        spare = self._spare.get(sequence, {})
        return {
            pair.output: spare[name]
            for name, pair in self.pairs.items()
            if name in spare and name not in self._grows and spare[name].shape == arrays[pair.input].shape
        }

    def before(self, sequence: str) -> dict[int, Any]:
        """By output what stays on a device now, whose memory the next value may have."""
        values = self._values.get(sequence, {})
        return {pair.output: values.get(name) for name, pair in self.pairs.items()}

    def keep(self, outputs: Sequence[Any], sequence: str) -> None:
        """The run has ended: what it made is what the next one begins with."""
        values, spare = self._values.setdefault(sequence, {}), self._spare.setdefault(sequence, {})
        for name, pair in self.pairs.items():
            before, values[name] = values.get(name), outputs[pair.output]
            if isinstance(before, np.ndarray):
                spare[name] = before

    def explain(self, error: InvalidInputError, sequence: str) -> InvalidInputError:
        """An error about the shapes of a run, with what to do where the state is what does not fit."""
        kept = [f"{name!r} of {list(value.shape)}" for name, value in self._values.get(sequence, {}).items()]
        if not kept or "expected shape" not in str(error):
            return error
        return InvalidInputError(
            f"{error}; the runs before have left the state {', '.join(kept)}: reset_state() lets a sequence begin anew"
        )


class StateView(MutableMapping[str, np.ndarray]):
    """The state of one sequence by the names of its inputs; values are copies, and can be set."""

    def __init__(self, state: RunState | None, sequence: str) -> None:
        self._state, self._sequence = state, sequence

    def __getitem__(self, name: str) -> np.ndarray:
        """What the next run begins with; InvalidInputError where its shape follows from the first run."""
        value: Any = self._checked(name).value(name, self._sequence)
        if value is None:
            raise InvalidInputError(f"state {name!r} has no value yet: its shape follows from the first run; set it")
        return value.to_host() if hasattr(value, "to_host") else value.copy()

    def __setitem__(self, name: str, value: Any) -> None:
        self._checked(name).set(name, value, self._sequence)

    def __delitem__(self, name: str) -> None:
        raise InvalidInputError(f"state {name!r} cannot be deleted; reset_state() lets a sequence begin anew")

    def __iter__(self) -> Iterator[str]:
        return iter(() if self._state is None else self._state.pairs)

    def __len__(self) -> int:
        return 0 if self._state is None else len(self._state.pairs)

    def _checked(self, name: str) -> RunState:
        if self._state is None or name not in self._state.pairs:
            known = ", ".join(map(repr, self)) or "none"
            raise InvalidInputError(f"the engine has no state {name!r}; its states are {known} (compile(state=..))")
        return self._state


def shapes_of(arrays: Sequence[Any]) -> tuple[Shape, ...]:
    """The shapes of arrays, and of what stays on a device."""
    return tuple([array.shape for array in arrays])
