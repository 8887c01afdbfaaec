"""A client of the Open Inference Protocol that costs little: requests are bytes made before, answers are compared."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
        return text


@dataclass(frozen=True)
class Load:
    """Where to ask what, by how many connections."""

    port: int
    questions: Sequence[Question]
    callers: int


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
    outcome, asked = Outcome(), 0
    begun = time.perf_counter()

    async def call() -> None:
        nonlocal asked
        connection = _Connection(load.port)
        while (count is None or asked < count) and (seconds is None or time.perf_counter() - begun < seconds):
            question = load.questions[asked % len(load.questions)]
            before(asked)
            asked += 1
            await connection.ask(question, outcome, time.perf_counter())
        connection.close()

    await asyncio.gather(*(call() for _ in range(load.callers)))
    outcome.wall = time.perf_counter() - begun
    return outcome


async def ask_at_times(load: Load, times: Sequence[float]) -> Outcome:
    """Open loop: a request comes at each of these seconds, from which its latency counts, whatever became of others."""
    outcome = Outcome()
    free: asyncio.LifoQueue[_Connection] = asyncio.LifoQueue()
    for _ in range(load.callers):
        free.put_nowait(_Connection(load.port))
    begun = time.perf_counter()

    async def call(number: int) -> None:
        connection = await free.get()
        await connection.ask(load.questions[number % len(load.questions)], outcome, begun + times[number])
        free.put_nowait(connection)

    tasks: list[asyncio.Task[None]] = []
    for number, at in enumerate(times):
        left = begun + at - time.perf_counter()
        if left > 0:
            await asyncio.sleep(left)
        tasks.append(asyncio.create_task(call(number)))
    await asyncio.gather(*tasks)
    outcome.wall = time.perf_counter() - begun
    while not free.empty():
        free.get_nowait().close()
    return outcome


class _Connection:
    """Kept open from request to request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, question: Question, outcome: Outcome, since: float) -> None:
        """Ask, and note how it ended."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        try:
            writer.write(question.text)
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(_body_length(head))
        except (ConnectionError, asyncio.IncompleteReadError):
            self._streams = None
            outcome.lost += 1
            return
        seconds, status = time.perf_counter() - since, int(head[9:12])
        if status != 200:
            outcome.refused[status] += 1
            outcome.refused_seconds.append(seconds)
        elif question.is_answered_by(body):
            outcome.seconds.append(seconds)
        else:
            outcome.wrong += 1

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
