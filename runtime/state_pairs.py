"""Which outputs of a plan are the next run's inputs, and what the first run begins with.

In the manifest: `"state": [{"input": index, "output": index, "initial": section}]`; `initial` may be missing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.json_record import JsonRecord

if TYPE_CHECKING:
    from mlirt.atomic_file import Bytes
    from mlirt.runtime.manifest import Manifest, Tensor

_FIELDS = ("input", "output", "initial")
_MANY = 1 << 16


@dataclass(frozen=True)
class StatePair:
    """An input that is what the output was in the run before, and the section with what it is in the first run."""

    input: int
    output: int
    initial: str | None


def parse_state(
    top: JsonRecord, inputs: "Sequence[Tensor]", outputs: "Sequence[Tensor]", sections: Collection[str]
) -> tuple[StatePair, ...]:
    """The pairs of a manifest; raises `PlanError` where an output could not be the input."""
    found: list[StatePair] = []
    for i, raw in enumerate(top.items("state", _MANY, [])):
        record = JsonRecord(raw, f"state[{i}]", _FIELDS)
        pair = StatePair(
            record.index("input", len(inputs), "inputs"),
            record.index("output", len(outputs), "outputs"),
            record.optional_text("initial") if record.get("initial", None) is not None else None,
        )
        if any(one.input == pair.input or one.output == pair.output for one in found):
            raise record.error("input", "an input or an output is in two pairs")
        fault = mismatch(inputs[pair.input], outputs[pair.output])
        if fault or inputs[pair.input].counts_runs:
            raise record.error("output", fault or "the number of the run is no state")
        if pair.initial is not None and pair.initial not in sections:
            raise record.error("initial", f"there is no section {pair.initial[:40]!r}")
        found.append(pair)
    return tuple(found)


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
