"""Between the load generator and a system: queries become batches, rows of outputs become responses.

A query that comes as a whole (SingleStream, MultiStream, Offline) is cut into batches. Queries of the Server scenario
come one by one and are gathered, in the same way for every system.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from mlirt.serve.batching.batch_arrays import Memory, joined
from mlperf.lengths import LONG_STEP, joined_by_length, length_of, padded_length
from mlperf.samples import SampleLibrary
from mlperf.systems import Array, Outputs, System
from mlperf.workloads import Arrays

Rows = Sequence[Array] | Array
"""The bytes of each sample's answer: arrays, or the rows of one."""
Complete = Callable[[Sequence[int], Rows], None]
"""Tells the load generator the answers of samples: their ids, and the bytes of each."""


def memory_of_batches(system: System) -> Memory | None:
    """What samples are joined in; None for a system that joins them itself."""
    return None if system.joins_arrays else system.host_array


class Driver(Protocol):
    """Answers queries."""

    failure: Exception | None
    """Why the first batch failed that did; its samples were answered with nothing."""

    def issue(self, ids: Sequence[int], indices: Sequence[int]) -> None:
        """Take a query: the ids of its samples, and their indices in the library."""
        ...

    def flush(self) -> None:
        """Nothing more will come: run what waits."""
        ...

    def close(self) -> None:
        """Wait for what runs."""
        ...


class WholeQueries:
    """Cuts a query into batches of `rows`, the last one padded where the network's batch is fixed."""

    def __init__(self, library: SampleLibrary, system: System, complete: Complete, rows: int, is_fixed: bool) -> None:
        self._library, self._system, self._complete = library, system, complete
        self._rows, self._is_fixed = rows, is_fixed
        self._threads = ThreadPoolExecutor(system.runs_at_once, thread_name_prefix="batch")
        self.failure: Exception | None = None

    def issue(self, ids: Sequence[int], indices: Sequence[int]) -> None:
        if len(ids) <= self._rows:
            self._answer(ids, indices)  # by the thread that asks: nobody else has to be woken
            return
        for start in range(0, len(ids), self._rows):
            batch = slice(start, start + self._rows)
            self._threads.submit(self._answer, ids[batch], indices[batch])

    def flush(self) -> None:
        """All is on its way."""

    def close(self) -> None:
        self._threads.shutdown()

    def _answer(self, ids: Sequence[int], indices: Sequence[int]) -> None:
        try:
            samples = [self._library[index] for index in indices]
            outputs = self._system.run(self._batch(samples, self._rows if self._is_fixed else len(ids)))
            self._complete(ids, self._answers(outputs, samples))
        except Exception as error:
            self.failure = self.failure or error
            self._complete(ids, [_NOTHING] * len(ids))

    def _batch(self, samples: Sequence[Arrays], rows: int) -> Mapping[str, Array]:
        return joined(samples, len(samples), rows, memory_of_batches(self._system))

    def _answers(self, outputs: Outputs, samples: Sequence[Arrays]) -> Rows:
        return answers(outputs, len(samples))


class QueriesByLength(WholeQueries):
    """Sorts a query by the lengths of its samples, longest first, so that those of a batch differ little.

    Zeros pad the shorter ones of a batch, to a length that `padded_length` tells; answers are as long as their samples.
    """

    def __init__(self, library: SampleLibrary, system: System, complete: Complete, rows: int, most: int) -> None:
        """`most`: the longest that a batch may be."""
        super().__init__(library, system, complete, rows, is_fixed=True)
        self._most = most

    def issue(self, ids: Sequence[int], indices: Sequence[int]) -> None:
        order = sorted(range(len(ids)), key=lambda k: length_of(self._library[indices[k]]), reverse=True)
        super().issue([ids[k] for k in order], [indices[k] for k in order])

    def _batch(self, samples: Sequence[Arrays], rows: int) -> Mapping[str, Array]:
        length = padded_length(max(map(length_of, samples)), self._most)
        return joined_by_length(samples, rows, length, self._system.host_array)

    def _answers(self, outputs: Outputs, samples: Sequence[Arrays]) -> Rows:
        return _of_lengths(outputs, list(map(length_of, samples)))


class GatheredQueries:
    """Gathers queries: a batch is what came while the last one ran, or within `delay`.

    A query is a pair of numbers until its batch begins, and answers are told by batches: at tens of thousands a second
    there is time for no object of each, nor for a future.
    """

    def __init__(
        self, library: SampleLibrary, system: System, complete: Complete, sizes: Sequence[int], delay: float
    ) -> None:
        """`sizes`: of batches; another number of rows is padded to the next one, see `rows_to_take`."""
        self._library, self._system, self._complete = library, system, complete
        self._sizes, self._delay = sorted(sizes), delay
        self._memory = memory_of_batches(system)
        self._changed = threading.Condition(threading.Lock())
        self._waiting: dict[int, deque[_Query]] = {}
        self._is_closed = False
        self.failure: Exception | None = None
        self._threads = [
            threading.Thread(target=self._work, name=f"batch-{number}", daemon=True)
            for number in range(system.runs_at_once)
        ]
        for thread in self._threads:
            thread.start()

    def issue(self, ids: Sequence[int], indices: Sequence[int]) -> None:
        came = time.monotonic()
        keys = [self._key(index) for index in indices]
        with self._changed:
            for number, index, key in zip(ids, indices, keys, strict=True):
                group = self._waiting.get(key)
                if group is None:
                    group = self._waiting[key] = deque()
                group.append((number, index, came))
            self._changed.notify(len(ids))

    def flush(self) -> None:
        """What waits is run as soon as it may."""

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while found := self._taken():
            ids, indices = [one[0] for one in found], [one[1] for one in found]
            try:
                rows = next(size for size in self._sizes if size >= len(found))
                feeds = joined([self._feeds(index) for index in indices], len(found), rows, self._memory)
                self._complete(ids, self._rows(indices, self._system.run(feeds)))
            except Exception as error:
                self.failure = self.failure or error
                self._complete(ids, [_NOTHING] * len(ids))

    def _taken(self) -> list[_Query]:
        """The queries of the next batch, as soon as there are any; none once it is closed and all are taken."""
        with self._changed:
            while True:
                if not self._waiting:
                    if self._is_closed:
                        return []
                    self._changed.wait()
                    continue
                key, group = min(self._waiting.items(), key=_came)
                if self._delay and not self._is_closed and len(group) < self._sizes[-1]:
                    seconds = group[0][2] + self._delay - time.monotonic()
                    if seconds > 0:
                        self._changed.wait(seconds)
                        continue
                found = [group.popleft() for _ in range(rows_to_take(len(group), self._sizes))]
                if not group:
                    del self._waiting[key]
                return found

    def _key(self, index: int) -> int:
        """What is equal among the samples of a batch."""
        return 0

    def _feeds(self, index: int) -> Arrays:
        return self._library[index]

    def _rows(self, indices: Sequence[int], outputs: Outputs) -> Rows:
        return answers(outputs, len(indices))


_Query = tuple[int, int, float]
"""The id, the index of the sample, and when it came."""


def _came(group: tuple[int, deque[_Query]]) -> float:
    return group[1][0][2]


def rows_to_take(waiting: int, sizes: Sequence[int]) -> int:
    """How many of those that wait the next batch takes: all that fit, unless more than a quarter of it were padding.

    The rest is first in the next batch. `sizes` rise.
    """
    if waiting >= sizes[-1]:
        return sizes[-1]
    above = next(size for size in sizes if size >= waiting)
    below = max((size for size in sizes if size <= waiting), default=waiting)
    return waiting if 4 * (above - waiting) <= above else below


class GatheredByLength(GatheredQueries):
    """Batches of samples whose lengths are padded to the same one, with zeros; answers are as long as their samples."""

    def __init__(
        self,
        library: SampleLibrary,
        system: System,
        complete: Complete,
        sizes: Sequence[int],
        delay: float,
        most: int,
    ) -> None:
        """`most`: the longest that a sample may be."""
        self._most, self._host_array = most, system.host_array
        self._padded: dict[int, tuple[int, Arrays]] = {}
        super().__init__(library, system, complete, sizes, delay)

    def _key(self, index: int) -> int:
        return self._of(index)[0]

    def _feeds(self, index: int) -> Arrays:
        return self._of(index)[1]

    def _of(self, index: int) -> tuple[int, Arrays]:
        """A sample's padded length, and the sample padded to it."""
        found = self._padded.get(index)
        if found is None:
            sample = self._library[index]
            length = padded_length(length_of(sample), self._most, LONG_STEP)
            found = self._padded[index] = length, joined_by_length([sample], 1, length, self._host_array)
        return found

    def _rows(self, indices: Sequence[int], outputs: Outputs) -> Rows:
        lengths = [length_of(self._library[index]) for index in indices]
        return _of_lengths(outputs, lengths)


def _of_lengths(outputs: Outputs, lengths: Sequence[int]) -> list[Array]:
    """The bytes of rows that are as long as their samples."""
    return [
        answers({name: array[k : k + 1, :length] for name, array in outputs.items()}, 1)[0]
        for k, length in enumerate(lengths)
    ]


def answers(outputs: Outputs, count: int) -> Array:
    """The bytes of the first `count` rows of the outputs, one output behind the other: [count, bytes]."""
    arrays = [np.ascontiguousarray(array) for array in outputs.values()]
    flat = [array.reshape(len(array), -1).view(np.uint8) for array in arrays]
    whole = flat[0] if len(flat) == 1 else np.concatenate(flat, 1)
    return whole[:count]


_NOTHING: Array = np.empty(0, np.uint8)


def respond(loadgen: Any, ids: Sequence[int], rows: Rows) -> None:
    """`Complete` for the load generator, which has read the bytes when it returns."""
    response = loadgen.QuerySampleResponse
    if isinstance(rows, np.ndarray):
        start, step, size = rows.ctypes.data, rows.strides[0], rows[0].nbytes
        found = [response(number, start + k * step, size) for k, number in enumerate(ids)]
    else:
        pairs = zip(ids, rows, strict=True)
        found = [response(number, row.__array_interface__["data"][0], row.nbytes) for number, row in pairs]
    loadgen.QuerySamplesComplete(found)
