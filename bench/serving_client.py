"""A client of the Open Inference Protocol that costs little: requests are bytes made before, answers are compared."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import uvloop

Array = np.ndarray[Any, np.dtype[Any]]


class Question:
    """A request for y of x as bytes, and what the answer must be."""

    def __init__(self, model: str, x: Array, y: Array) -> None:
        words = {
            "inputs": [
                {"name": "x", "datatype": "FP32", "shape": x.shape, "parameters": {"binary_data_size": x.nbytes}}
            ],
            "parameters": {"binary_data_output": True},
        }
        header = json.dumps(words).encode()
        head = (
            f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: localhost\r\n"
            f"Inference-Header-Content-Length: {len(header)}\r\nContent-Length: {len(header) + x.nbytes}\r\n\r\n"
        )
        self.text = head.encode() + header + x.tobytes()
        self._y = y

    def is_answered_by(self, body: bytes) -> bool:
        """Whether the body ends with what the engine gives, but for the rounding of another batch's kernels."""
        found = np.frombuffer(body[-self._y.nbytes :], self._y.dtype)
        return bool(np.allclose(found, self._y.ravel(), rtol=1e-4, atol=1e-5))


@dataclass
class Outcome:
    """Seconds of the right answers, and how many were none."""

    seconds: list[float] = field(default_factory=list[float])
    wrong: int = 0
    lost: int = 0
    """Connections that ended without an answer."""
    refused: Counter[int] = field(default_factory=Counter[int])
    refused_seconds: list[float] = field(default_factory=list[float])
    late: list[float] = field(default_factory=list[float])
    """Seconds from when a request was due until the client sent it: what the client itself adds to the latencies."""
    wall: float = 0.0

    @property
    def rate(self) -> float:
        """Right answers in a second."""
        return len(self.seconds) / self.wall

    def percentile(self, share: float) -> float:
        """Milliseconds."""
        return float(np.percentile(self.seconds, share)) * 1e3 if self.seconds else float("nan")

    def add(self, other: Outcome) -> None:
        """Take what another part of the test has found."""
        self.seconds += other.seconds
        self.wrong += other.wrong
        self.lost += other.lost
        self.refused += other.refused
        self.refused_seconds += other.refused_seconds
        self.late += other.late
        self.wall += other.wall

    def __str__(self) -> str:
        text = f"{self.rate:7.0f}/s  p50 {self.percentile(50):7.2f}  p99 {self.percentile(99):7.2f} ms"
        if self.wrong:
            text += f"  wrong {self.wrong}"
        if self.lost:
            text += f"  lost {self.lost}"
        if self.refused:
            late = float(np.percentile(self.refused_seconds, 99)) * 1e3
            text += f"  refused {dict(self.refused)} (p99 {late:.2f} ms)"
        if self.late:
            text += f"  (sent late p99 {float(np.percentile(self.late, 99)) * 1e3:.2f} ms)"
        return text


@dataclass(frozen=True)
class Load:
    """Where to ask what, by how many connections."""

    port: int
    questions: Sequence[Question]
    callers: int


def run(load: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Put a load on the server; the client's own loop is a fast one, as both share the machine."""
    return uvloop.run(load)


def ask_alone(port: int, questions: Sequence[Question]) -> Outcome:
    """Ask each question once, by one connection without an event loop."""
    outcome = Outcome()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for question in questions:
            begun = time.perf_counter()
            connection.sendall(question.text)
            found = connection.recv(1 << 16)
            while (length := _length(found)) is None or len(found) < length:
                found += connection.recv(1 << 16)
            outcome.seconds.append(time.perf_counter() - begun)
            outcome.wrong += not question.is_answered_by(found)
    outcome.wall = sum(outcome.seconds)
    return outcome


def _length(found: bytes) -> int | None:
    """Of head and body, once the head is there."""
    head, end, _ = found.partition(b"\r\n\r\n")
    return len(head) + 4 + _body_length(head) if end else None


def _body_length(head: bytes) -> int:
    return int(head.lower().split(b"\r\ncontent-length:")[1].split(b"\r\n")[0])


async def ask_in_turn(
    load: Load,
    *,
    seconds: float | None = None,
    count: int | None = None,
    before: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Closed loop: each caller asks again when it has its answer, for so many seconds, or `count` times in all."""
    run, asked = _Run(), 0
    begun = time.perf_counter()

    async def call() -> None:
        nonlocal asked
        connection = _Connection(load.port)
        while (count is None or asked < count) and (seconds is None or time.perf_counter() - begun < seconds):
            question = load.questions[asked % len(load.questions)]
            before(asked)
            asked += 1
            await connection.ask(question, run, time.perf_counter())
        connection.close()

    await asyncio.gather(*(call() for _ in range(load.callers)))
    return run.outcome(time.perf_counter() - begun)


async def ask_at_times(load: Load, times: Sequence[float]) -> Outcome:
    """Open loop: a request comes at each of these seconds, from which its latency counts, whatever became of others."""
    run = _Run()
    free = [_Connection(load.port) for _ in range(load.callers)]
    begun = time.perf_counter()

    async def call(number: int) -> None:
        connection = free.pop() if free else _Connection(load.port)
        run.late.append(time.perf_counter() - begun - times[number])
        await connection.ask(load.questions[number % len(load.questions)], run, begun + times[number])
        free.append(connection)

    tasks: list[asyncio.Task[None]] = []
    for number, at in enumerate(times):
        left = begun + at - time.perf_counter()
        if left > 0:
            await asyncio.sleep(left)
        tasks.append(asyncio.create_task(call(number)))
    await asyncio.gather(*tasks)
    wall = time.perf_counter() - begun
    for connection in free:
        connection.close()
    return run.outcome(wall)


@dataclass
class _Run:
    """What came, as it came: answers are compared once the load has ended."""

    answers: list[tuple[Question, int, bytes, float]] = field(
        default_factory=list["tuple[Question, int, bytes, float]"]
    )
    lost: int = 0
    late: list[float] = field(default_factory=list[float])

    def outcome(self, wall: float) -> Outcome:
        """All answers, compared."""
        found = Outcome(lost=self.lost, late=self.late, wall=wall)
        for question, status, body, seconds in self.answers:
            if status != 200:
                found.refused[status] += 1
                found.refused_seconds.append(seconds)
            elif question.is_answered_by(body):
                found.seconds.append(seconds)
            else:
                found.wrong += 1
        return found


class _Connection(asyncio.Protocol):
    """Kept open from request to request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._transport: asyncio.Transport | None = None
        self._found = b""
        self._answered: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._found += data
        length = _length(self._found)
        if length is not None and len(self._found) >= length and self._answered is not None:
            self._answered.set_result(self._found)
            self._found, self._answered = b"", None

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport, self._found = None, b""
        if self._answered is not None:
            self._answered.set_exception(exc or ConnectionResetError())
            self._answered = None

    async def ask(self, question: Question, run: _Run, since: float) -> None:
        """Ask, and note how it ended."""
        loop = asyncio.get_running_loop()
        try:
            if self._transport is None:
                await loop.create_connection(lambda: self, "127.0.0.1", self._port)
            assert self._transport is not None
            answered = self._answered = loop.create_future()
            self._transport.write(question.text)
            found = await answered
        except OSError:
            run.lost += 1
            return
        run.answers.append((question, int(found[9:12]), found, time.perf_counter() - since))

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.close()
