"""Which outputs of a plan are the next run's inputs, and what the first run begins with.

In the manifest: `"state": [{"input": index, "output": index, "initial": section}]`; `initial` may be missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.record_kinds import index, section
from mlirt.runtime.record_schema import Fault, Scope, stored

if TYPE_CHECKING:
    from mlirt.atomic_file import Bytes
    from mlirt.runtime.manifest import Manifest, Tensor


@dataclass(frozen=True)
class StatePair:
    """An output that is an input of the next run."""

    input: int = field(metadata=stored(index("inputs")))
    output: int = field(metadata=stored(index("outputs")))
    initial: str | None = field(metadata=stored(section(), default=None))
    """What the input is in the first run; zeros without it."""

    def check(self, scope: Scope) -> None:
        """The output could be the input."""
        given = scope.inputs[self.input]
        fault = mismatch(given, scope.outputs[self.output])
        if fault or given.counts_runs:
            raise Fault(fault or "the number of the run is no state", ".output")


def check_pairs(pairs: "Sequence[StatePair]") -> None:
    """No input and no output is in two pairs."""
    inputs, outputs = {one.input for one in pairs}, {one.output for one in pairs}
    if min(len(inputs), len(outputs)) < len(pairs):
        raise Fault("an input or an output is in two pairs", ".state")


def mismatch(given: "Tensor", made: "Tensor") -> str:
    """Why an output cannot be an input of the next run; nothing where it can.

    A dimension of the input is what the output has, or a name: then the state may grow from run to run.
    """
    if (given.dtype, given.format) != (made.dtype, made.format):
        kinds = [f"{one.dtype}" if one.logical is None else f"{one.dtype} ({one.format})" for one in (given, made)]
        return f"{given.name!r} is {kinds[0]}, but {made.name!r} is {kinds[1]}"
    if len(given.shape) != len(made.shape):
        return f"{given.name!r} has {len(given.shape)} dimensions, but {made.name!r} has {len(made.shape)}"
    for axis, (wanted, length) in enumerate(zip(given.shape, made.shape, strict=True)):
        if wanted != length and not isinstance(wanted, str):
            return f"dimension {axis} of {given.name!r} is not what it is in {made.name!r}"
    return ""


def initial_arrays(manifest: "Manifest", sections: "Mapping[str, Bytes]") -> dict[str, np.ndarray]:
    """What the plan has for first runs, by input; a section of another size than the input is left out."""
    found: dict[str, np.ndarray] = {}
    for pair in manifest.state:
        tensor = manifest.inputs[pair.input]
        shape = [dim for dim in tensor.shape if isinstance(dim, int)]
        if pair.initial is not None and len(shape) == len(tensor.shape):
            content, dtype = bytes(sections[pair.initial]), numpy_dtype(tensor.dtype)
            if len(content) == prod(shape) * dtype.itemsize:
                found[tensor.name] = np.frombuffer(content, dtype).reshape(shape)
    return found
