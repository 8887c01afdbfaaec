"""Between the load generator and a system: queries become batches, rows of outputs become responses.

A query that comes as a whole (SingleStream, MultiStream, Offline) is cut into batches. Queries of the Server scenario
come one by one: the batcher of mlirt.serve gathers them, for every system.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from mlirt.serve.batching.batch_arrays import Memory, joined
from mlirt.serve.batching.batcher import Batcher
from mlirt.serve.batching.limits import Limits
from mlirt.serve.batching.request import Answer
from mlirt.serve.batching.signature import Signature
from mlperf.lengths import LONG_STEP, joined_by_length, length_of, padded_length
from mlperf.samples import SampleLibrary
from mlperf.systems import Array, Outputs, System
from mlperf.workloads import Arrays

Complete = Callable[[Sequence[int], Sequence[Array]], None]
"""Tells the load generator the answers of samples: their ids, and the bytes of each."""
_MANY = 1 << 22
_MANY_MIB = float(1 << 16)


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

    def _answers(self, outputs: Outputs, samples: Sequence[Arrays]) -> list[Array]:
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

    def _answers(self, outputs: Outputs, samples: Sequence[Arrays]) -> list[Array]:
        lengths = map(length_of, samples)
        return [
            answers({name: array[k : k + 1, :length] for name, array in outputs.items()}, 1)[0]
            for k, length in enumerate(lengths)
        ]


class GatheredQueries:
    """Lets the batcher gather queries: a batch is as large as what came while the last one ran, or within `delay`."""

    def __init__(
        self,
        library: SampleLibrary,
        system: System,
        complete: Complete,
        signature: Signature,
        sizes: Sequence[int],
        delay: float,
    ) -> None:
        """`sizes`: numbers of rows that batches have; `delay`: for how many seconds a batch's first query waits."""
        self._library, self._complete = library, complete
        limits = Limits(max(sizes), 1e3 * delay, _MANY, _MANY_MIB, max_request_mb=_MANY_MIB, batch_sizes=tuple(sizes))

        def run(feeds: Mapping[str, Array], timeout: float | None) -> Outputs:
            return system.run(feeds)

        self.batcher = Batcher(
            run,
            signature,
            limits,
            runs_at_once=system.runs_at_once,
            batch=True,
            memory=memory_of_batches(system),
            answered=self._answered,
        )
        self.failure: Exception | None = None
        self._failing = threading.Lock()

    def issue(self, ids: Sequence[int], indices: Sequence[int]) -> None:
        self.batcher.submit_all([self._feeds(index) for index in indices], tags=list(zip(ids, indices, strict=True)))

    def flush(self) -> None:
        """What waits is run as soon as it may."""

    def close(self) -> None:
        self.batcher.close()

    def _answered(self, found: Sequence[Answer]) -> None:
        rows: list[Array] = []
        for answer in found:
            error = answer.exception()
            if error is None:
                rows.append(self._row(answer.tag[1], answer.result()))
                continue
            with self._failing:
                self.failure = self.failure or (error if isinstance(error, Exception) else RuntimeError(str(error)))
            rows.append(_NOTHING)
        self._complete([answer.tag[0] for answer in found], rows)

    def _feeds(self, index: int) -> Arrays:
        return self._library[index]

    def _row(self, index: int, outputs: Outputs) -> Array:
        return _bytes_of(outputs)


class GatheredByLength(GatheredQueries):
    """Batches of samples whose lengths are padded to the same one, with zeros; answers are as long as their samples."""

    def __init__(
        self,
        library: SampleLibrary,
        system: System,
        complete: Complete,
        signature: Signature,
        sizes: Sequence[int],
        delay: float,
        most: int,
    ) -> None:
        """`most`: the longest that a sample may be."""
        super().__init__(library, system, complete, signature, sizes, delay)
        self._most, self._host_array = most, system.host_array
        self._padded: dict[int, Arrays] = {}

    def _feeds(self, index: int) -> Arrays:
        found = self._padded.get(index)
        if found is None:
            sample = self._library[index]
            length = padded_length(length_of(sample), self._most, LONG_STEP)
            found = self._padded[index] = joined_by_length([sample], 1, length, self._host_array)
        return found

    def _row(self, index: int, outputs: Outputs) -> Array:
        length = length_of(self._library[index])
        return answers({name: array[:, :length] for name, array in outputs.items()}, 1)[0]


def _bytes_of(outputs: Outputs) -> Array:
    """The outputs of one sample, one behind the other."""
    if len(outputs) == 1:
        return np.ascontiguousarray(next(iter(outputs.values()))).reshape(-1)
    return answers(outputs, 1)[0]


def answers(outputs: Outputs, count: int) -> list[Array]:
    """The bytes of each of the first `count` rows of the outputs, one output behind the other."""
    arrays = [np.ascontiguousarray(array) for array in outputs.values()]
    flat = [array.reshape(len(array), -1).view(np.uint8) for array in arrays]
    whole = flat[0] if len(flat) == 1 else np.concatenate(flat, 1)
    return list(whole[:count])


_NOTHING: Array = np.empty(0, np.uint8)


def respond(loadgen: Any, ids: Sequence[int], rows: Sequence[Array]) -> None:
    """`Complete` for the load generator, which has read the bytes when it returns."""
    loadgen.QuerySamplesComplete(
        [
            loadgen.QuerySampleResponse(number, row.__array_interface__["data"][0], row.nbytes)
            for number, row in zip(ids, rows, strict=True)
        ]
    )
