"""What the engine asks of a device: a place for code and weights, contexts with their memory, programs that run."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

from mlirt.runtime.cpu_job import ShortCut
from mlirt.runtime.growing_run import Growth
from mlirt.runtime.lent_memory import ContextMemory
from mlirt.runtime.shape_binding import ShapeBinder, ShapeBinding
from mlirt.runtime.stop_request import StopRequest
from mlirt.runtime.symbol_values import Shape

NONE_KEPT: Mapping[int, Any] = {}

Around = Callable[[int], AbstractContextManager[object]]
"""What surrounds a launch that is run alone, by its number."""


def no_ranges(launch: int) -> AbstractContextManager[object]:
    """Nothing."""
    return nullcontext()


WrongSize = tuple[str, int]
"""A symbol that only the run tells, and what it turned out to be."""


@dataclass(frozen=True)
class RunTimes:
    """When the stages of one run began and ended, in milliseconds of one clock (trtexec's terms).

    On the CPU "h2d" is binding the inputs, "d2h" reading the outputs, and enqueueing is what comes before the kernels.
    """

    start_enqueue: float
    end_enqueue: float
    start_h2d: float
    end_h2d: float
    start_compute: float
    end_compute: float
    start_d2h: float
    end_d2h: float


@dataclass(frozen=True)
class DeviceTensor:
    """A tensor where a device has it, valid until the next run."""

    address: int
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        return prod(self.shape)


class Program(Protocol):
    """A plan bound to shapes and memory of one context; calls come one at a time, under the context's lock."""

    timed: bool
    """Whether the next runs keep the time stamps that `device_times` returns."""

    stop: StopRequest | None
    """What the next run looks at between launches; a device that cannot stop a run begins none that is late."""

    @property
    def held_bytes(self) -> int:
        """About the memory, of the host and of the device, that goes with the program."""
        ...

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the outputs, in the order of the plan."""
        ...

    def accept(self, given: Mapping[int, np.ndarray]) -> None:
        """Let the next upload have outputs, by number, written into arrays of the caller, as far as that can be.

        `download` returns these arrays for those outputs. They fit in type and shape.
        """
        ...

    def upload(self, inputs: Sequence[np.ndarray], *, stays: bool = False) -> None:
        """Make `inputs` (contiguous, of the right type and shape) available to the kernels.

        stays: whether nobody changes them until the run is over.
        """
        ...

    @property
    def inputs(self) -> Sequence[np.ndarray]:
        """The arrays that kernels read since the last upload; none where they read memory of a device."""
        ...

    def execute(self) -> None:
        """Run the kernels, or put them on the device's queue."""
        ...

    def short_cut(self) -> ShortCut | None:
        """What a run comes down to after an upload, where that is one call; else None."""
        ...

    @property
    def copied_outputs(self) -> int:
        """How many outputs `download` copies; where there are none, it need not be called."""
        ...

    def run_at(self, inputs: Sequence[int], outputs: Sequence[int], stream: int, number: int | None) -> bool:
        """Queue a run on a caller's memory of the device, in the order of a stream; False for one without streams.

        `number` is that of the run, where the network asks for it.
        """
        ...

    def wrong_size(self) -> WrongSize | None:
        """Wait, and return the size that stopped the last run because it was taken for another; None where all held.

        Raises InvalidInputError where a check of the network found an input that makes no sense.
        """
        ...

    def download(self, kept: Mapping[int, Any] = NONE_KEPT) -> list[Any]:
        """Wait, and return the outputs in arrays that belong to the caller.

        Those that are `kept`, by number, stay where the device has its memory; a value of it may be what stayed before,
        whose memory is free to be written to. `upload` takes them as inputs.
        """
        ...

    def outputs_in_place(self) -> list[DeviceTensor]:
        """Wait, and return where the outputs lie."""
        ...

    def wait(self) -> None:
        """Return when the device has done all that was asked."""
        ...

    def device_times(self) -> tuple[float, float, float, float, float, float] | None:
        """Start and end of h2d, compute and d2h of the last run by the device's clock; None where the host's counts."""
        ...

    def profile(self, around: Around = no_ranges) -> list[float]:
        """Run the launches one by one, each inside of `around` its number; the milliseconds of each."""
        ...


class Session(Protocol):
    """The memory of one execution context."""

    tenant: object
    """The program that has used it last; None where somebody else may have."""

    def prepare(self, binding: ShapeBinding, *, copies_small: bool = True) -> Program:
        """Make the program for one set of shapes; `copies_small`: small arrays may be copied where that is quicker."""
        ...

    def growth(self, binder: ShapeBinder, shapes: Sequence[Shape], before: Sequence[Shape]) -> Growth | None:
        """A program for lengths that go on growing, from `before` to `shapes`; None where each needs its own."""
        ...

    def outgrown_bytes(self) -> int:
        """What programs hold of blocks that the context has larger ones of by now."""
        ...

    def set_input_consumed_event(self, event: int | None) -> bool:
        """Record an event of the device in each run once its inputs are read; False for a device without events."""
        ...


class Device(Protocol):
    """Code and weights of one plan, ready on one device."""

    parts: int
    """How many parts of a launch are under way at once at most, each with scratch of its own."""

    def enter(self) -> int | None:
        """Make the device current in this thread; what is returned tells `leave` which one was."""
        ...

    def leave(self, before: int | None) -> None:
        """Make the device current again that was."""
        ...

    @property
    def decides(self) -> bool:
        """Whether the device goes through branches and loops without the host."""
        ...

    def host_array(self, shape: Sequence[int], dtype: np.dtype[np.generic]) -> np.ndarray:
        """An uninitialised array for an input, in the host's memory from which it gets to kernels soonest."""
        ...

    def session(self, memory: ContextMemory | None = None) -> Session:
        """A new context's memory; that of the device unless it is given."""
        ...
