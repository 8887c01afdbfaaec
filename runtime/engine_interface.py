"""What every engine offers, whatever it runs on, and how its inputs and outputs are described."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mlirt.runtime.expressions import to_text
from mlirt.runtime.layer_times import Profile
from mlirt.runtime.manifest import Tensor


@dataclass(frozen=True)
class TensorDescription:
    """A public input or output: a dimension is a number, or the text of its formula ("n", "(2*h)+1")."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}[{', '.join(map(str, self.shape))}]"


class EngineLike(Protocol):
    """What `mlirt.compile` returns for every target: the engine here, or the reference interpreter of the builder."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> tuple[TensorDescription, ...]: ...

    @property
    def outputs(self) -> tuple[TensorDescription, ...]: ...

    @property
    def layers(self) -> tuple[Mapping[str, object], ...]: ...

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]: ...

    def profile(self, feeds: Mapping[str, np.ndarray], *, runs: int = 1) -> Profile: ...

    def save(self, path: str | os.PathLike[str]) -> None: ...


def description_of(tensor: Tensor) -> TensorDescription:
    """The description of an input or output of a plan."""
    shape = tuple(dim if isinstance(dim, int) else to_text(dim) for dim in tensor.known_shape)
    return TensorDescription(tensor.name, tensor.dtype, shape)
