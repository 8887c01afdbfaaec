"""Requests for inference that come whole are answered by callbacks of their connection; all others are aiohttp's.

A request is short where one read of the socket has all of it and its head is plain: HTTP/1.1, a length, nothing that
is encoded, expected or upgraded. What is unusual or wrong in a head is left to aiohttp, which says so in its own words;
a connection changes between both only while it has no request under way.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from typing import Any, cast

from mlirt.errors import MlirtError
from mlirt.serve.batching.request import Answer
from mlirt.serve.http.body_budget import BodyBudget
from mlirt.serve.http.errors import status_of
from mlirt.serve.http.metrics import Metrics
from mlirt.serve.models.models import Models
from mlirt.serve.protocol.infer_request import HEADER_LENGTH, InferRequest, header_length, read_request
from mlirt.serve.protocol.infer_response import response_body

_LOG = logging.getLogger("mlirt.serve")
MAX_HEAD = 8190
"""Bytes of a head, as aiohttp takes them of a line."""
IDLE_SECONDS = 75.0
"""After so long without a request a connection is closed."""
LARGE = 1 << 18
"""Bytes of outputs from which on a thread writes them, so that other requests do not wait for it."""
CLIENT_HAS_GONE = 499
_PATH = re.compile(rb"/v2/models/([A-Za-z0-9_.\-]+)(?:/versions/([A-Za-z0-9_.\-]+))?/infer")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\x20-\x7e\t]*)")
_LEFT_TO_OTHERS = frozenset({b"transfer-encoding", b"content-encoding", b"expect", b"upgrade"})
_ONCE = frozenset({b"content-length", HEADER_LENGTH.lower().encode()})
_MAX_DIGITS = 18
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 413: "Request Entity Too Large"} | {
    429: "Too Many Requests",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


@dataclass(frozen=True)
class ShortRequest:
    """What a short request says: the model, and its body with the length of its JSON as the head has it."""

    model: str
    version: str
    json_length: str | None
    body: bytes


def parsed(data: bytes) -> ShortRequest | None:
    """The request in what was read; None where it is not short."""
    if not data.startswith(b"POST /v2/models/"):
        return None
    end = data.find(b"\r\n\r\n", 0, MAX_HEAD)
    if end < 0:
        return None
    first, *lines = data[:end].split(b"\r\n")
    words = first.split(b" ")
    path = _PATH.fullmatch(words[1]) if len(words) == 3 and words[2] == b"HTTP/1.1" else None
    if path is None:
        return None
    found: dict[bytes, bytes] = {}
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field is None:
            return None
        name, value = field[1].lower(), field[2].rstrip(b" \t")
        if name in _LEFT_TO_OTHERS or (name == b"connection" and value.lower() != b"keep-alive"):
            return None
        if name in _ONCE:
            if name in found:
                return None
            found[name] = value
    length = found.get(b"content-length", b"")
    if not length.isdigit() or len(length) > _MAX_DIGITS or end + 4 + int(length) != len(data):
        return None
    said = found.get(HEADER_LENGTH.lower().encode())
    json_length = None if said is None else said.decode("ascii")
    return ShortRequest(path[1].decode(), (path[2] or b"").decode(), json_length, data[end + 4 :])


class Service:
    """What connections share: the models, the bytes that may be held, the counts, and the connections themselves."""

    def __init__(self, models: Models, budget: BodyBudget, metrics: Metrics) -> None:
        self.models, self.budget, self.metrics = models, budget, metrics
        self.connections: set[Connection] = set()
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self._date = 0, ""

    def head(self, status: int, length: int, content: str, json_length: int | None = None) -> bytes:
        """The head of a response."""
        second = int(time.time())
        if self._date[0] != second:
            self._date = second, formatdate(second, usegmt=True)
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}", f"Content-Type: {content}"]
        if json_length is not None:
            lines.append(f"{HEADER_LENGTH}: {json_length}")
        if status in (429, 503):
            lines.append("Retry-After: 1")
        lines += [f"Content-Length: {length}", f"Date: {self._date[1]}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def call(self, action: Callable[[], None]) -> None:
        """Let the event loop do something soon, whichever thread asks."""
        if threading.get_ident() == self.thread:
            self.loop.call_soon(action)
        elif not self.loop.is_closed():
            self.loop.call_soon_threadsafe(action)

    async def close(self, seconds: float) -> None:
        """Wait for what is being answered, for so long, then end the connections."""
        until = self.loop.time() + seconds
        while any(one.is_answering for one in self.connections) and self.loop.time() < until:
            await asyncio.sleep(0.01)
        for one in list(self.connections):
            one.close()


class Connection(asyncio.Protocol):
    """One connection: short requests are answered here, one after the other, and `inner` has all else."""

    def __init__(self, service: Service, inner: Any) -> None:
        self._service, self._inner = service, inner
        self._transport: asyncio.Transport | None = None
        self._answer: Answer | None = None
        self._waiting: list[bytes] = []
        self._is_used = self._is_full = False
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.is_answering = False
        """Whether a short request is under way."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._service.connections.add(self)
        self._inner.connection_made(transport)
        self._last = self._service.loop.time()
        self._timer = self._service.loop.call_later(IDLE_SECONDS, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        self._service.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._answer is not None:
            self._answer.cancel()
        self._transport, self._waiting = None, []
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._last = self._service.loop.time()
        if self.is_answering or (self._is_full and self._is_inner_idle()):
            self._waiting.append(data)
            if self._transport is not None:
                self._transport.pause_reading()
            return
        request = parsed(data) if self._is_inner_idle() else None
        if request is None:
            self._is_used = True
            self._inner.data_received(data)
        else:
            self._begin(request)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._is_full = True
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._is_full = False
        self._inner.resume_writing()
        self._go_on()

    def close(self) -> None:
        """End it."""
        if self._transport is not None:
            self._transport.close()

    def _is_inner_idle(self) -> bool:
        """Whether aiohttp has answered all that it was given; it has no public word for that."""
        busy = object()
        return not self._is_used or (
            getattr(self._inner, "_current_request", busy) is None and not getattr(self._inner, "_messages", busy)
        )

    def _close_if_idle(self) -> None:
        left = self._last + IDLE_SECONDS - self._service.loop.time()
        if left <= 0 and not self.is_answering and self._is_inner_idle():
            self.close()
        else:
            self._timer = self._service.loop.call_later(max(left, 1.0), self._close_if_idle)

    def _begin(self, request: ShortRequest) -> None:
        service, begun, held = self._service, time.perf_counter(), ExitStack()
        self.is_answering = True
        end = partial(self._end, request, begun, held)
        try:
            model = service.models.get(request.model, request.version)
            end = partial(self._end, request, begun, held, model.name)
            held.enter_context(model.backend.batcher.admitted())
            held.enter_context(service.budget.hold(len(request.body)))
            asked = read_request(request.body, header_length(request.json_length), model.signature)
            answer = self._answer = model.submit(asked.feeds, timeout=asked.timeout, loop=service.loop)
        except Exception as error:
            end(error=error)
            return
        answer.add_done_callback(
            lambda _: service.call(partial(self._answered, answer, asked, model.name, model.version, end))
        )

    def _answered(
        self, answer: Answer, asked: InferRequest, model: str, version: str, end: Callable[..., None]
    ) -> None:
        if answer.cancelled():
            end(status=CLIENT_HAS_GONE)
            return
        error = answer.exception()
        if error is not None:
            end(error=error, waited=answer.waited)
            return
        outputs = answer.result()
        if sum(one.nbytes for one in outputs.values()) < LARGE:
            end(*response_body(model, version, asked, outputs), waited=answer.waited)
            return
        written = self._service.loop.run_in_executor(None, response_body, model, version, asked, outputs)
        written.add_done_callback(lambda made: end(*made.result(), waited=answer.waited))

    def _end(
        self,
        request: ShortRequest,
        begun: float,
        held: ExitStack,
        model: str = "",
        body: bytes = b"",
        json_length: int | None = None,
        *,
        error: BaseException | None = None,
        status: int = 200,
        waited: float = 0.0,
    ) -> None:
        """Send the response, and take what came behind the request."""
        held.close()
        self._answer = None
        content = "application/json" if json_length is None else "application/octet-stream"
        if error is not None:
            status, said = _told(error)
            body, content = json.dumps({"error": said}).encode(), "application/json; charset=utf-8"
        self._service.metrics.answered(model or request.model, status, time.perf_counter() - begun, waited)
        self.is_answering = False
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.write(self._service.head(status, len(body), content, json_length) + body)
        self._go_on()

    def _go_on(self) -> None:
        """Take what came while a request was answered, or while the client did not read."""
        if self._waiting and self._transport is not None and not self.is_answering and not self._is_full:
            data, self._waiting = b"".join(self._waiting), []
            self._transport.resume_reading()
            self.data_received(data)


def _told(error: BaseException) -> tuple[int, str]:
    """The status of an error, and the line that the client is told; the log has more of one that nobody expected."""
    if isinstance(error, MlirtError):
        return status_of(error), " ".join(str(error).split())
    _LOG.error("a request failed", exc_info=error)
    return 500, f"internal error: {type(error).__name__} (the server's log has more)"
