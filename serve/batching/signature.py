"""What a network takes and gives, as a server must know it: tensors, profiles, and whether requests can be joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlirt.runtime.engine import Engine
from mlirt.runtime.engine_interface import TensorDescription
from mlirt.runtime.profile_ranges import ShapeRange


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs of a network, and the shapes that its profiles cover (all, where it has none)."""

    name: str
    inputs: tuple[TensorDescription, ...]
    outputs: tuple[TensorDescription, ...]
    profiles: tuple[Mapping[str, ShapeRange], ...] = ()

    @property
    def batch_symbol(self) -> str | None:
        """The name of the first dimension of all inputs and outputs; None where they do not share one."""
        first = {tensor.shape[0] if tensor.shape else None for tensor in (*self.inputs, *self.outputs)}
        symbol = first.pop() if len(first) == 1 else None
        if not isinstance(symbol, str) or not symbol.isidentifier():
            return None
        # A batch changes nothing but the number of rows: its name may be in no other dimension.
        others = (dim for tensor in (*self.inputs, *self.outputs) for dim in tensor.shape[1:])
        return None if any(isinstance(dim, str) and symbol in dim for dim in others) else symbol

    def to_record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "name": self.name,
            "inputs": [[one.name, one.dtype, list(one.shape)] for one in self.inputs],
            "outputs": [[one.name, one.dtype, list(one.shape)] for one in self.outputs],
            "profiles": [
                {name: [found.minimum, found.optimum, found.maximum] for name, found in profile.items()}
                for profile in self.profiles
            ],
        }


def signature_of(engine: Engine) -> Signature:
    """The signature of an engine."""
    return Signature(engine.name, engine.inputs, engine.outputs, engine.profiles)


def signature_from_record(record: Mapping[str, Any]) -> Signature:
    """What `Signature.to_record` has written."""
    return Signature(
        record["name"],
        _tensors(record["inputs"]),
        _tensors(record["outputs"]),
        tuple(
            {name: ShapeRange(*map(tuple, shapes)) for name, shapes in profile.items()}
            for profile in record["profiles"]
        ),
    )


def _tensors(records: Sequence[Any]) -> tuple[TensorDescription, ...]:
    return tuple(TensorDescription(name, dtype, tuple(shape)) for name, dtype, shape in records)
