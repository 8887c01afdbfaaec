"""The dynamic batcher: requests of any callers that wait at the same time are run together.

Nothing waits for a batch to fill while the engine is idle, unless `Limits.delay_ms` says so: what comes while a run
goes on is the next batch, so batches grow with the load.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Self

import numpy as np

from mlirt.errors import DeadlineError, InvalidInputError, MlirtError, OverloadError, UnavailableError, out_of_memory
from mlirt.serve.batching.batch_arrays import Memory, joined, split
from mlirt.serve.batching.brief_runs import BriefRuns
from mlirt.serve.batching.limits import Limits
from mlirt.serve.batching.request import Answer, Array, Outputs, Request
from mlirt.serve.batching.request_check import RequestCheck
from mlirt.serve.batching.request_queue import RequestQueue, late
from mlirt.serve.batching.row_check import rows_are_independent
from mlirt.serve.batching.signature import Signature
from mlirt.serve.batching.use import BatcherUse, UseCounter

Run = Callable[[Mapping[str, Array], "float | None"], Mapping[str, Array]]
"""Outputs by name for inputs by name and the seconds that it may take; called from several threads at once."""


class Batcher:
    """Answers requests of many threads and coroutines by runs of one network.

    run: what runs a batch. signature: its inputs and outputs. limits: sizes of requests, batches and the queue.
    runs_at_once: how many batches may run at the same time, as `streams` of an engine or replicas.
    batch: whether requests are joined along the first dimension; None joins them where the inputs and outputs share
    that dimension and a trial finds that no row of an output depends on another row.
    may_run_in_loop: whether brief runs may be made by a caller's event loop (see `submit`); not where a run may have
    to wait for something else than its own work, as for a process that has ended.
    memory: gives the arrays in which requests are joined; None for a `run` that takes `JoinedArrays`.
    answered: is told the answers of each batch, with outputs or an error, by the thread that ran it: for many small
    requests that costs less than a callback of each. Requests that come into no batch (refused, late in the queue) are
    not among them.
    """

    def __init__(
        self,
        run: Run,
        signature: Signature,
        limits: Limits | None = None,
        *,
        runs_at_once: int = 1,
        batch: bool | None = None,
        may_run_in_loop: bool = False,
        memory: Memory | None = np.empty,
        answered: Callable[[Sequence[Answer]], None] | None = None,
    ) -> None:
        self.signature = signature
        self.limits = limits or Limits()
        self.joins = _joins(run, signature, self.limits, batch)
        """Whether requests are joined."""
        self._run = run
        self._check = RequestCheck(signature, self.limits, batches=self.joins)
        self._queue = RequestQueue(self.limits, self._most_rows)
        self._use = UseCounter()
        self._brief = BriefRuns()
        self._turn = threading.Lock()
        """Held while a batch runs, where one runs at a time."""
        self._admission = threading.Lock()
        self._admitted = 0
        self._most_admitted = self.limits.max_queue + runs_at_once * self._check.max_rows
        self._memory = memory
        self._answered = answered
        self._may_run_in_loop = may_run_in_loop and runs_at_once == 1 and not self.limits.delay_ms
        self._threads = [
            threading.Thread(target=self._work, name=f"mlirt-batch-{number}", daemon=True)
            for number in range(runs_at_once)
        ]
        for thread in self._threads:
            thread.start()

    def submit(
        self,
        feeds: Mapping[str, Array],
        *,
        timeout: float | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> Answer:
        """Let a request wait for its turn; `result()` of what is returned has its outputs.

        loop: the running event loop of a caller that is a coroutine. Where nothing runs and a run is brief, the loop
        runs the batch itself, with all that its other coroutines submit until then: that costs less than two changes
        of thread.

        Raises at once `InvalidInputError` for inputs that cannot be run, `OverloadError` where too many requests wait,
        `UnavailableError` after `close`. The answer fails with `DeadlineError` where `timeout` seconds have passed from
        now on. The arrays are read until the answer is there.
        """
        try:
            request = self._check(feeds, timeout)
            in_loop = loop is not None and self._may_run_in_loop and self._brief.is_brief(request.size)
            self._queue.put(request, wakes=not in_loop)
        except MlirtError as error:
            self._use.request("refused" if isinstance(error, OverloadError | UnavailableError) else "invalid")
            raise
        if loop is not None and in_loop:
            loop.call_soon(self._run_in_loop)
        return request.answer

    def submit_all(
        self, feeds: Sequence[Mapping[str, Array]], *, timeout: float | None = None, tags: Sequence[object] = ()
    ) -> list[Answer]:
        """Let requests that came together be joined. Nothing is raised: what is wrong with one is its answer's.

        tags: one for each request, which its answer has, or none.
        """
        requests: list[Request] = []
        answers: list[Answer] = []
        for one, tag in zip_longest(feeds, tags):
            try:
                requests.append(self._check(one, timeout))
                answers.append(requests[-1].answer)
            except InvalidInputError as error:
                self._use.request("invalid")
                answers.append(_failed(error))
            answers[-1].tag = tag
        self._use.request("refused", self._queue.put_all(requests))
        return answers

    @contextmanager
    def admitted(self) -> Generator[None]:
        """While a server reads, runs and answers one request; raises `OverloadError` before any of it is read.

        As many are admitted as may wait and run: a server that is late has the rest in its sockets, where no queue sees
        them.
        """
        with self._admission:
            if self._admitted >= self._most_admitted:
                self._use.request("refused")
                raise OverloadError(
                    f"{self._admitted} requests are being answered; expected fewer than {self._most_admitted}: "
                    "send the request again later"
                )
            self._admitted += 1
        try:
            self._check_room()
            yield
        finally:
            with self._admission:
                self._admitted -= 1

    def _check_room(self) -> None:
        try:
            self._queue.check_room()
        except OverloadError:
            self._use.request("refused")
            raise

    def run(self, feeds: Mapping[str, Array], *, timeout: float | None = None) -> Outputs:
        """`submit`, and wait for the outputs."""
        return self.submit(feeds, timeout=timeout).result()

    async def run_async(self, feeds: Mapping[str, Array], *, timeout: float | None = None) -> Outputs:
        """`submit` for coroutines; a task that is cancelled takes its request out of the queue."""
        return await asyncio.wrap_future(self.submit(feeds, timeout=timeout, loop=asyncio.get_running_loop()))

    @property
    def max_rows(self) -> int:
        """The most rows of a batch: those of the limits, or of the profiles where that is less."""
        return self._check.max_rows

    @property
    def use(self) -> BatcherUse:
        """What it has done so far."""
        return self._use.now(len(self._queue))

    def close(self, *, drain: bool = True) -> None:
        """Take no more requests, and return when the last is answered; without `drain` those that wait get an error."""
        self._queue.close()
        if not drain:
            self._queue.fail_all(UnavailableError("the request was not run: the server is being closed"))
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _most_rows(self, request: Request) -> int:
        return self._check.most_rows({name: array.shape for name, array in request.feeds.items()})

    def _work(self) -> None:
        while requests := self._queue.take():
            if self._may_run_in_loop:
                with self._turn:
                    self._answer(requests)
            else:
                self._answer(requests)

    def _run_in_loop(self) -> None:
        """Run what waits, if that is brief; the thread takes what is more, and what comes while it runs a batch."""
        if not self._turn.acquire(blocking=False):
            return
        try:
            if not self._brief.is_brief(self._queue.size):
                self._queue.wake()
            elif requests := self._queue.take_now():
                self._answer(requests)
        finally:
            self._turn.release()
        if len(self._queue):
            self._queue.wake()

    def _answer(self, requests: Sequence[Request]) -> None:
        """Run requests together. Where that fails each is run alone: one must not spoil the others' answers."""
        try:
            answers = self._outputs_of(requests)
        except Exception as error:
            if len(requests) > 1:
                for request in requests:
                    self._answer([request])
                return
            self._fail(requests[0], error)
            self._tell(requests)
            return
        now, in_time = time.monotonic(), 0
        for request, outputs in zip(requests, answers, strict=True):
            if request.deadline < now:
                self._fail(request, late(request, "when it was done"))
            else:
                in_time += 1
                request.answer.set_result(outputs)
        self._use.request("ok", in_time)
        self._tell(requests)

    def _outputs_of(self, requests: Sequence[Request]) -> list[Outputs]:
        rows = [request.rows for request in requests]
        total = sum(rows)
        padded = self._padded_rows(requests[0], total)
        begun = time.monotonic()
        for request in requests:
            request.answer.waited, request.answer.batch_rows = begun - request.came, total
        deadline = max(request.deadline for request in requests)
        timeout = None if deadline == float("inf") else max(0.0, deadline - begun)
        self._use.batch(total)
        feeds = joined([request.feeds for request in requests], total, padded, self._memory)
        started = time.perf_counter()
        outputs = self._run(feeds, timeout)
        self._brief.ran(sum(request.size for request in requests), time.perf_counter() - started)
        return list(split(outputs, rows, padded)) if self.joins else [dict(outputs)]

    def _padded_rows(self, request: Request, rows: int) -> int:
        if not self.joins:
            return rows
        return self._check.padded_rows(rows, {name: array.shape for name, array in request.feeds.items()})

    def _tell(self, requests: Sequence[Request]) -> None:
        if self._answered is not None:
            self._answered([request.answer for request in requests])

    def _fail(self, request: Request, error: Exception) -> None:
        shortage = out_of_memory("the request", error)
        self._use.request("late" if isinstance(error, DeadlineError) else "error")
        request.answer.set_exception(shortage or error)


def _failed(error: Exception) -> Answer:
    answer = Answer()
    answer.set_exception(error)
    return answer


def _joins(run: Run, signature: Signature, limits: Limits, batch: bool | None) -> bool:
    """Whether requests are joined: as told, else where it is certain that nobody can see it."""
    if batch and signature.batch_symbol is None:
        raise InvalidInputError(
            f"network {signature.name!r} cannot join requests: its inputs and outputs do not share a first dimension "
            "that is a name, such as image[n, 3, 8, 8] and scores[n, 10]"
        )
    if batch is None:
        can_join = signature.batch_symbol is not None and limits.max_batch > 1
        return can_join and rows_are_independent(run, signature) is True
    return batch
