"""A run that comes down to one call: arrays are checked where they are used, and nothing else is looked at.

Most of what a run of a small network costs is Python, not kernels. What does not fit here as it is goes the long way.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mlirt.runtime.caller_arrays import OutputPlace, separate
from mlirt.runtime.cpu_job import ShortCut
from mlirt.runtime.lent_arrays import address_in_place, lent_with_address
from mlirt.runtime.python_callers import CALLERS
from mlirt.runtime.worker_choice import BRIEF_BESIDE_OTHERS, BRIEF_SECONDS

Tensor = tuple[str, "np.dtype[np.generic]"]
_TRIALS = 8


class ShortRun:
    """Runs one program on arrays that are right as they are."""

    def __init__(
        self,
        inputs: Sequence[Tensor],
        output_names: Sequence[str],
        cut: ShortCut,
        lock: threading.Lock,
        takes_over: Callable[[ShortRun], None],
    ) -> None:
        """`lock` is that of the context, whose memory the program uses. `takes_over` is told of a run after one of
        another program, while that lock is held.
        """
        places = zip(inputs, cut.shapes, cut.inputs, strict=True)
        self._inputs = [(name, dtype, shape, place.staged, place) for (name, dtype), shape, place in places]
        self._input_sizes = [dtype.itemsize * math.prod(shape) for _, dtype, shape, _, _ in self._inputs]
        self._outputs = [(name, place.staged, place) for name, place in zip(output_names, cut.outputs, strict=True)]
        self._large = [(name, place) for name, staged, place in self._outputs if staged is None]
        self._own = [(name, place) for name, _, place in self._outputs]
        self._by_name = {name: (place, place.dtype.itemsize * math.prod(place.shape)) for name, place in self._own}
        self._is_lent = False
        self._known = frozenset(output_names)
        self._count = len(self._inputs)
        self._session, self._tenancy, self._enter = cut.session, cut.tenancy, cut.enter
        self._lock = lock
        self._takes_over = takes_over
        self._execute: Callable[[], int] = cut.execute
        self._beside: Callable[[], int] = cut.beside
        self._brief = cut.brief
        self._trials = _TRIALS if cut.brief is not None else 0
        self._choice = cut.choice
        self._least = 1.0

    @property
    def is_brief(self) -> bool:
        """Whether others would gain nothing by running beside it."""
        execute = self._beside if CALLERS.are_many else self._execute
        return execute is self._brief or (self._choice is not None and self._choice.is_brief)

    def __call__(
        self, feeds: Mapping[str, np.ndarray], given: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray] | None:
        """The outputs, those of `given` in these arrays; None, with nothing done, where one does not fit as it is."""
        lock = self._lock
        if not lock.acquire(False):
            return None
        try:
            if len(feeds) != self._count:
                return None
            if given and (found := self._run_in_place(feeds, given)) is not None:
                return found
            kept: list[np.ndarray] = []
            for name, dtype, shape, staged, place in self._inputs:
                array, address = feeds[name], None
                if type(array) is not np.ndarray:
                    if not given and (found := address_in_place(array, dtype, shape)) and place.lend(found):
                        continue
                    lent = lent_with_address(array)
                    if lent is None:
                        return None
                    array, address = lent
                if array.dtype is not dtype or array.shape != shape:
                    return None
                if staged is not None:
                    if place.is_lent:
                        place.give_back()
                    staged[...] = array
                elif array.flags.c_contiguous:
                    kept.append(place.take(array, address))
                else:
                    return None
            addresses: dict[str, int | None] = {}
            arrays = _as_arrays(given, addresses) if given else None
            if not self._begin(arrays, addresses, kept):
                return None
            self._run()
            found = self._found(arrays)
            if given and arrays is not given:
                found.update(given)
            return found
        except (KeyError, TypeError):
            return None  # the names or what holds them are wrong, which the run proper says
        finally:
            lock.release()

    def _run_in_place(self, feeds: Mapping[str, np.ndarray], given: Mapping[str, object]) -> dict[str, Any] | None:
        """A run that reads and writes PyTorch's tensors where they lie; None where one is another thing, does not fit,
        or shares memory with an output. No array is made, which takes half as long as a small run.
        """
        written: list[tuple[OutputPlace, int, int]] = []
        for name, one in given.items():
            place, size = self._by_name[name]
            address = address_in_place(one, place.dtype, place.shape)
            if address is None or (written and _meets(written, address, size)):
                return None
            written.append((place, address, address + size))
        read: list[int] = []
        for (name, dtype, shape, _, _), size in zip(self._inputs, self._input_sizes, strict=True):
            address = address_in_place(feeds[name], dtype, shape)
            if address is None or _meets(written, address, size):
                return None
            read.append(address)
        for name, place in self._own:
            if name not in given:
                place.begin(None)
        self._is_lent = True
        for place, start, _ in written:
            if not place.lend(start):
                return None
        for (*_, place), address in zip(self._inputs, read, strict=True):
            if not place.lend(address):
                return None
        self._run()
        found: dict[str, Any] = {}
        for name, staged, place in self._outputs:
            one = given.get(name)
            found[name] = one if one is not None else place.array if staged is None else staged.copy()
        return found

    def _run(self) -> None:
        if self._session.tenant is not self._tenancy:
            self._enter()
            self._takes_over(self)
        if self._trials:
            self._try()
        elif CALLERS.are_many:
            self._beside()
        else:
            self._execute()

    def _begin(
        self,
        given: Mapping[str, np.ndarray] | None,
        addresses: Mapping[str, int | None],
        inputs: Sequence[np.ndarray],
    ) -> bool:
        """Choose where large outputs are written; False where an array of the caller does not fit."""
        if not given:
            for _, place in self._own if self._is_lent else self._large:
                place.begin(None)
            self._is_lent = False
            return True
        # Loops rather than generators: the whole run of a small network takes 4 us.
        known = self._known
        for name in given:
            if name not in known:
                return False
        for name, _, place in self._outputs:
            one = given.get(name)
            if one is not None and not place.fits(one):
                return False
        if self._is_lent:
            self._begin(None, {}, ())
        if not self._large:
            return True
        large = {number: given[name] for number, (name, _) in enumerate(self._large) if name in given}
        apart = separate(large, inputs) if large else large
        for number, (name, place) in enumerate(self._large):
            place.begin(apart.get(number), addresses.get(name))
        return True

    def _found(self, given: Mapping[str, np.ndarray] | None) -> dict[str, np.ndarray]:
        if not given:
            return {name: place.array if staged is None else staged.copy() for name, staged, place in self._outputs}
        found: dict[str, np.ndarray] = {}
        for name, staged, place in self._outputs:
            source, target = place.array if staged is None else staged, given.get(name)
            if target is None:
                target = source if staged is None else staged.copy()
            elif target is not source:
                target[...] = source
            found[name] = target
        return found

    def _try(self) -> None:
        """Time the first runs: other threads of Python need not go on beside one that takes less than to let them."""
        start = time.perf_counter()
        self._execute()
        self._least = min(self._least, time.perf_counter() - start)
        self._trials -= 1
        if not self._trials and self._brief is not None and self._least < BRIEF_SECONDS:
            self._execute = self._brief
            if self._least < BRIEF_BESIDE_OTHERS:
                self._beside = self._brief


def _meets(written: Sequence[tuple[OutputPlace, int, int]], address: int, size: int) -> bool:
    """Whether memory at an address has bytes of those that are written, from the first one to the end."""
    for _, start, end in written:
        if address < end and start < address + size:
            return True
    return False


def _as_arrays(given: Mapping[str, np.ndarray], addresses: dict[str, int | None]) -> Mapping[str, np.ndarray]:
    """Arrays of a caller, those of other libraries' tensors in their memory; what is none stays as it is.

    `addresses` takes those that are known.
    """
    arrays: dict[str, np.ndarray] = {}
    for name, one in given.items():
        if type(one) is not np.ndarray and (lent := lent_with_address(one)) is not None:
            arrays[name], addresses[name] = lent
        else:
            arrays[name] = one
    return arrays if addresses else given
