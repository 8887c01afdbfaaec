"""Runs whose lengths grow a little from one to the next, by one program: native code follows the lengths.

A decoder with a cache of keys and values has other shapes with each word. Its kernels take lengths as parameters, so
that the table of kernels, the places in the arena and who runs what stay as they are. What does not fit here as it is
goes the long way.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlirt.runtime.caller_arrays import aligned_copy, separate
from mlirt.runtime.cpu_job import ShortCut
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.host_memory import ALIGNMENT, address_of
from mlirt.runtime.lent_arrays import lent_with_address
from mlirt.runtime.manifest import Manifest, Tensor
from mlirt.runtime.plan_lengths import PlanLengths
from mlirt.runtime.python_callers import CALLERS
from mlirt.runtime.stop_request import StopRequest

Shape = tuple[int, ...]
_NONE_GIVEN: Mapping[str, np.ndarray] = {}
_MAX_GROWTH = 16
"""By how much lengths grow at most from run to run; others come again more often, and have a program of their own."""
_FREE = 3
"""References to memory that nobody else has: of the list, of the variable and of the argument."""


class GrowingMemory:
    """Arrays for one output whose size grows: two blocks with some room, of which the caller has one at a time."""

    def __init__(self, dtype: np.dtype[np.generic]) -> None:
        self._dtype = dtype
        self._wholes: list[np.ndarray] = []
        self.address = 0
        """Where the last array lies."""

    def fits(self, given: np.ndarray, shape: Shape) -> bool:
        """Whether an array of a caller may be this output."""
        return given.dtype == self._dtype and given.shape == shape and given.flags.writeable

    def array(self, shape: Shape, size: int) -> np.ndarray:
        """An uninitialised array of `size` bytes that nobody else has."""
        wholes = self._wholes
        for whole in wholes:
            if whole.nbytes >= size + ALIGNMENT and sys.getrefcount(whole) == _FREE:
                break
        else:
            whole = np.empty(size + size // 4 + ALIGNMENT, np.uint8)
            wholes.append(whole)
            if len(wholes) > 2:
                del wholes[0]
        first = address_of(whole)
        start = -first % ALIGNMENT
        self.address = first + start
        return np.ndarray(shape, self._dtype, whole, start)


@dataclass(frozen=True)
class Growth:
    """What a growing run drives: a program whose parameters are its own, and the instructions that change them."""

    lengths: PlanLengths
    native: Callable[[int, int, int, int], int]
    """`mlirt_lengths`."""
    cut: ShortCut
    stoppable: Callable[[StopRequest], int]
    """Runs all rows; less than 0 where it was asked to stop."""
    parameters: np.ndarray
    arena: Callable[[], np.ndarray]
    """The addresses of the buffers, of which those in the arena may move."""
    is_arena: np.ndarray
    bases: np.ndarray
    """The addresses of the buffers at first."""
    room: np.ndarray
    """The bytes that each owner of memory in the arena may have."""


def have_grown(manifest: Manifest, before: Sequence[Shape], now: Sequence[Shape]) -> bool:
    """Whether shapes are those of the run before but for lengths that are a little larger."""
    pairs = [(before[one.input][one.axis], now[one.input][one.axis]) for one in manifest.symbols]
    return any(last < length for last, length in pairs) and all(
        last <= length <= last + _MAX_GROWTH for last, length in pairs
    )


class GrowingRun:
    """Runs on arrays that are right as they are and no shorter than those of the run before."""

    def __init__(
        self,
        growth: Growth,
        manifest: Manifest,
        lock: threading.Lock,
        takes_over: Callable[[GrowingRun, tuple[Shape, ...]], None],
    ) -> None:
        """`lock` is that of the context. `takes_over` is told of runs on other lengths, while it is held."""
        lengths, inputs = growth.lengths, manifest.inputs
        self._growth, self._native = growth, growth.native
        self._lock, self._takes_over = lock, takes_over
        cut = growth.cut
        self._session, self._tenancy, self._enter = cut.session, cut.tenancy, cut.enter
        self._execute, self._beside = cut.execute, cut.beside
        aligns = [max(manifest.buffers[one.buffer].align, 1) for one in inputs]
        self._inputs = [
            (one.name, numpy_dtype(one.dtype), align, lengths.shapes[i], i)
            for i, (one, align) in enumerate(zip(inputs, aligns, strict=True))
        ]
        self._firsts = list(lengths.given)
        self._ranks = [len(lengths.given[i]) for i in self._firsts]
        self._numbers = lengths.numbers.copy()
        self._numbers[list(lengths.slots)] = growth.room
        self._owned = np.array([(i, number) for i, number in enumerate(lengths.bases) if number >= 0], np.intp)
        self._set_bases(growth.bases)
        dims = [number for numbers in lengths.given.values() for number in numbers]
        self._dims = _words_of(self._numbers, min(dims, default=0), len(dims))
        self._addresses = _words_of(self._numbers, lengths.arrays[0], len(lengths.arrays))
        self._outputs, self._kinds = _kinds_of(lengths.output_dims, manifest.outputs)
        self._output_numbers = np.array([number for numbers, _, _ in self._kinds for number in numbers], np.intp)
        self._found: list[tuple[Shape, int]] = []
        self._lengths: list[int] = []
        """Those of the run before."""
        self._is_bound = False
        self._stop: StopRequest | None = None
        where = growth.parameters.ctypes.data
        self._of_lengths = _call(lengths.lengths_code, self._numbers, where)
        self._calls: dict[int, tuple[int, int, int, int]] = {}
        self._of_arrays = _call(lengths.arrays_code, self._numbers, where)

    @property
    def is_brief(self) -> bool:
        """Others may run beside it."""
        return False

    def follow(self, shapes: Sequence[Shape]) -> None:
        """Another program has run last, on such shapes."""
        self._lengths = [length for i in self._firsts for length in shapes[i]]
        self._is_bound = False

    def __call__(
        self,
        feeds: Mapping[str, np.ndarray],
        given: Mapping[str, np.ndarray] | None = None,
        stop: StopRequest | None = None,
    ) -> dict[str, np.ndarray] | None:
        """The outputs, those of `given` in these arrays; None, with nothing done, where one does not fit as it is.

        A run that is asked to `stop` raises what the request says.
        """
        lock = self._lock
        if not lock.acquire(False):
            return None
        try:
            self._stop = stop
            if len(feeds) != len(self._inputs):
                return None
            shapes: list[Shape] = []
            kept: list[np.ndarray] = []
            addresses: list[int] = []
            for name, dtype, align, first, number in self._inputs:
                array, address = feeds[name], None
                if type(array) is not np.ndarray:
                    lent = lent_with_address(array)
                    if lent is None:
                        return None
                    array, address = lent
                shape = array.shape
                if array.dtype is not dtype or (first != number and shape != shapes[first]):
                    return None
                if not array.flags.c_contiguous:
                    array, address = np.ascontiguousarray(array), None
                if address is None:
                    address = address_of(array)
                if address % align:
                    array = aligned_copy(array, align)
                    address = address_of(array)
                shapes.append(shape)
                kept.append(array)
                addresses.append(address)
            if self._session.tenant is not self._tenancy:
                self._return()
            if not self._bind(shapes):
                return None
            if not given:
                return self._run(addresses, _NONE_GIVEN)
            arrays = self._fitting(given)
            return None if arrays is None else self._into(given, arrays, separate(arrays, kept), addresses)
        except (KeyError, TypeError):
            return None  # the names or what holds them are wrong, which the run proper says
        finally:
            lock.release()

    def _return(self) -> None:
        """Take the memory over from another program."""
        self._enter()
        self._set_bases(self._growth.arena(), self._growth.is_arena)
        self._is_bound = False

    def _set_bases(self, addresses: np.ndarray, which: np.ndarray | None = None) -> None:
        owned = self._owned if which is None else self._owned[which[self._owned[:, 0]]]
        self._numbers[owned[:, 1]] = addresses[owned[:, 0]]

    def _bind(self, shapes: list[Shape]) -> bool:
        """Let the parameters follow lengths that have not become much larger; False where they are others."""
        lengths: list[int] = []
        for i, rank in zip(self._firsts, self._ranks, strict=True):
            if len(shapes[i]) != rank:
                return False
            lengths += shapes[i]
        if lengths == self._lengths and self._is_bound:
            return True
        before = self._lengths
        if len(before) != len(lengths):
            return False
        changed, bit = 0, 1
        for length, last in zip(lengths, before, strict=True):
            if length != last:
                if not last < length <= last + _MAX_GROWTH:
                    return False
                changed |= bit
            bit += bit
        call = self._call_for(changed) if self._is_bound else self._of_lengths
        self._is_bound = False
        self._dims[:] = lengths
        if self._native(*call):
            return False
        self._is_bound, self._lengths = True, lengths
        self._found = self._shapes_found()
        self._takes_over(self, tuple(shapes))
        return True

    def _call_for(self, changed: int) -> tuple[int, int, int, int]:
        """What native code is called with where some lengths have changed since it was called last."""
        found = self._calls.get(changed)
        if found is None:
            code = self._growth.lengths.following(changed)
            found = self._calls[changed] = _call(code, self._numbers, self._of_lengths[3])
        return found

    def _shapes_found(self) -> list[tuple[Shape, int]]:
        """The shapes of the kinds of outputs, and their bytes."""
        found: list[tuple[Shape, int]] = []
        dims = iter(self._numbers[self._output_numbers].tolist())
        for numbers, squeezed, width in self._kinds:
            shape = tuple([next(dims) for _ in numbers])
            size = width
            for length in shape:
                size *= length
            found.append((tuple(one for one in shape if one != 1) if squeezed else shape, size))
        return found

    def _fitting(self, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
        """The arrays of the caller for outputs; None where one does not fit, or there is no such output."""
        found: dict[str, np.ndarray] = {}
        for name, kind, memory in self._outputs:
            if name in given:
                one: object = given[name]
                lent = (one, None) if type(one) is np.ndarray else lent_with_address(one)
                if lent is None or not memory.fits(lent[0], self._found[kind][0]):
                    return None
                found[name] = lent[0]
        return found if len(found) == len(given) else None

    def _into(
        self,
        given: Mapping[str, np.ndarray],
        arrays: Mapping[str, np.ndarray],
        apart: Mapping[str, np.ndarray],
        addresses: list[int],
    ) -> dict[str, np.ndarray]:
        """Run into the arrays of a caller: kernels write those that lie `apart`, others take copies."""
        written = {
            name: one for name, one in apart.items() if one.flags.c_contiguous and not address_of(one) % ALIGNMENT
        }
        found = self._run(addresses, written)
        for name, array in arrays.items():
            if name not in written:
                array[...] = found[name]
        return {name: given.get(name, array) for name, array in found.items()}

    def _run(self, addresses: list[int], given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        kinds = self._found
        outputs: dict[str, np.ndarray] = {}
        for name, kind, memory in self._outputs:
            if name in given:
                outputs[name] = given[name]
                addresses.append(address_of(given[name]))
                continue
            outputs[name] = memory.array(*kinds[kind])
            addresses.append(memory.address)
        self._addresses[:] = addresses
        self._native(*self._of_arrays)
        if self._stop is not None:
            self._run_until(self._stop)
        elif CALLERS.are_many:
            self._beside()
        else:
            self._execute()
        return outputs

    def _run_until(self, stop: StopRequest) -> None:
        stop.check()
        stopped = self._growth.stoppable(stop)
        if stopped < 0:
            raise stop.error(stopped)


def _kinds_of(
    dims: Sequence[Sequence[int]], outputs: Sequence[Tensor]
) -> tuple[list[tuple[str, int, GrowingMemory]], list[tuple[tuple[int, ...], bool, int]]]:
    """Each output with its kind and memory, and the kinds: the numbers of lengths, whether squeezed, and bytes."""
    kinds: dict[tuple[tuple[int, ...], bool, int], int] = {}
    found: list[tuple[str, int, GrowingMemory]] = []
    for numbers, one in zip(dims, outputs, strict=True):
        dtype = numpy_dtype(one.dtype)
        kind = kinds.setdefault((tuple(numbers), one.squeezed, dtype.itemsize), len(kinds))
        found.append((one.name, kind, GrowingMemory(dtype)))
    return found, list(kinds)


def _words_of(numbers: np.ndarray, first: int, count: int) -> ctypes.Array[ctypes.c_int64]:
    """Some of the numbers as words that a list can be written to."""
    return (ctypes.c_int64 * count).from_buffer(numbers, 8 * first)  # pyright: ignore[reportArgumentType]


def _call(code: np.ndarray, numbers: np.ndarray, parameters: int) -> tuple[int, int, int, int]:
    """What native code is called with."""
    return code.ctypes.data, len(code), numbers.ctypes.data, parameters
