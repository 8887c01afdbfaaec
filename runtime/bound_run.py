"""A run whose arrays are known beforehand: they are checked once, and a call costs the launches alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.device import Program
from mlirt.runtime.stop_request import StopRequest

if TYPE_CHECKING:
    from mlirt.runtime.context import ExecutionContext

Copy = tuple[np.ndarray, np.ndarray]
"""Where to, and from where."""


class BoundRun:
    """Calls read the inputs as they are then, and write the outputs into the same arrays again.

    Kernels read and write the arrays where they lie. `copies` of them are copied in each call: those that are not
    contiguous or not aligned as kernels need it, that share memory with others, and all on a GPU.
    """

    def __init__(
        self,
        context: ExecutionContext,
        program: Program,
        inputs: Sequence[np.ndarray],
        outputs: Mapping[str, np.ndarray],
        names: Sequence[str],
        number: np.ndarray | None,
    ) -> None:
        """`inputs` in the order of the plan; `outputs` the caller's; `number` becomes the number of the run."""
        self._context, self._program = context, program
        self._number = number
        self._arrays = [array if array.flags.c_contiguous else array.copy() for array in inputs]
        self._given = {number: outputs[name] for number, name in enumerate(names) if name in outputs}
        program.accept(self._given)
        program.upload(self._arrays)
        found = program.download()
        read = program.inputs
        self._stays = bool(read) or not inputs
        pairs = zip(read or self._arrays, inputs, strict=True)
        self._before: list[Copy] = [(used, given) for used, given in pairs if used is not given]
        self._downloads = not self._stays or program.copied_outputs > 0
        apart = [(given, found[i]) for i, given in self._given.items() if found[i] is not given]
        self._after: list[Copy] = [] if self._downloads else apart
        self.copies = len(self._before) + program.copied_outputs + len(apart) + (0 if self._stays else len(inputs))
        """How many arrays a call copies."""
        self.outputs: dict[str, np.ndarray] = {**dict(zip(names, found, strict=True)), **outputs}
        """Where results are after a call: the arrays that were given, and others for the rest."""
        self._cut = program.short_cut() if self._stays and not self._downloads else None
        if self._number is not None or self._before or self._after:
            self._cut = None

    def __call__(self, *, timeout: float | None = None) -> dict[str, np.ndarray]:
        """Run once; the outputs by name. `timeout`: as in `Engine.run`."""
        cut = self._cut
        if cut is None or timeout is not None:
            return self._run(None if timeout is None else StopRequest(timeout))
        lock = self._context.lock
        lock.acquire()
        try:
            if cut.session.tenant is not cut.tenancy:
                cut.enter()
            cut.execute()
        finally:
            lock.release()
        return self.outputs

    def _run(self, stop: StopRequest | None) -> dict[str, np.ndarray]:
        context, program = self._context, self._program
        with context.held(stop):
            if self._number is not None:
                self._number[...] = context.runs
            for target, source in self._before:
                target[...] = source
            program.stop = stop
            if not self._stays:
                program.accept(self._given)
                program.upload(self._arrays)
            program.execute()
            if (wrong := program.wrong_size()) is not None:
                raise InvalidInputError(f"the size {wrong[0]} is {wrong[1]} now; bind the arrays again, or use run")
            if self._downloads:
                self._fetch()
            for target, source in self._after:
                target[...] = source
            context.runs += 1
        return self.outputs

    def _fetch(self) -> None:
        for target, source in zip(self.outputs.values(), self._program.download(), strict=True):
            if target is not source:
                target[...] = source
