"""A caller's say in which tactic each layer gets, as TensorRT's IAlgorithmSelector has it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from mlirt.errors import InvalidInputError
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.run_enums import TensorFormat

_T = TypeVar("_T")


@dataclass(frozen=True)
class AlgorithmVariant:
    """Numbers for a tactic's file and for its choice, the same in every build: equal names have equal numbers."""

    implementation: int
    tactic: int


@dataclass(frozen=True)
class AlgorithmIOInfo:
    """How a tensor of a layer lies in memory; `dtype` is None for a type that TensorRT has no name for.

    Strides, in elements, are those at the usual sizes. HWC is any order with the channels innermost.
    """

    tensor_format: TensorFormat
    dtype: DataType | None
    strides: Dims

    @property
    def components_per_element(self) -> int:
        """Channels that lie together as a vector: 1 where there are no vectors."""
        digits = "".join(letter for letter in self.tensor_format.name.removeprefix("DLA_") if letter.isdigit())
        return int(digits or 1)

    @property
    def vectorized_dim(self) -> int:
        """The dimension whose elements make vectors: the channels, or -1."""
        return 1 if self.components_per_element > 1 else -1


@dataclass(frozen=True)
class Algorithm:
    """A way to compute a layer: the tactic's file and choice, milliseconds, and bytes of memory beside the tensors.

    `timing_msec` is measured, or estimated where nothing was measured; negative where there is neither, 0 where nothing
    is launched. `tensors` are the layer's inputs, then its outputs.
    """

    name: str
    timing_msec: float
    memory: int | Callable[[], int]
    """The bytes, or what finds them out, which takes as long as to lower the layer."""
    tensors: tuple[AlgorithmIOInfo, ...] = ()

    @property
    def workspace_size(self) -> int:
        """Bytes of memory beside the tensors."""
        return self.memory if isinstance(self.memory, int) else self.memory()

    @property
    def algorithm_variant(self) -> AlgorithmVariant:
        """What tells this algorithm from others, in this build and the next."""
        file, _, choice = self.name.partition(":")
        return AlgorithmVariant(_number(file), _number(choice))

    def get_algorithm_io_info(self, index: int) -> AlgorithmIOInfo:
        """How an input or output of the layer lies in memory; the outputs follow the inputs."""
        return _at(self.tensors, index, self.name)


@dataclass(frozen=True)
class AlgorithmContext:
    """A layer: its name, and the types of what it reads, constants apart, and writes as the IR prints them.

    `shapes` are the smallest, usual and largest shape of each input, then of each output.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    shapes: tuple[tuple[Dims, Dims, Dims], ...] = ()

    @property
    def num_inputs(self) -> int:
        return len(self.inputs)

    @property
    def num_outputs(self) -> int:
        return len(self.outputs)

    def get_shape(self, index: int) -> tuple[Dims, Dims, Dims]:
        """The smallest, usual and largest shape of an input or output; the outputs follow the inputs."""
        return _at(self.shapes, index, self.name)


class AlgorithmSelector(Protocol):
    """What a build asks."""

    def select_algorithms(self, context: AlgorithmContext, choices: Sequence[Algorithm]) -> Sequence[int]:
        """The indices of the choices that are allowed; the builder takes the fastest of them, none means any."""
        ...

    def report_algorithms(self, contexts: Sequence[AlgorithmContext], choices: Sequence[Algorithm]) -> None:
        """Told what was taken for each layer, once all is decided."""
        ...


def _number(text: str) -> int:
    """Of 63 bits; 0 for no text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1 if text else 0


def _at(items: Sequence[_T], index: int, name: str) -> _T:
    if not 0 <= index < len(items):
        raise InvalidInputError(f"{name} has {len(items)} inputs and outputs, there is no number {index}")
    return items[index]
