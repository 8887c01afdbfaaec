"""The HTTP server: a coroutine for who has an event loop, a thread for who has none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

from aiohttp import web

from mlirt.serve.http import short_requests
from mlirt.serve.http.body_budget import BodyBudget
from mlirt.serve.http.handlers import Handlers, errors_as_json
from mlirt.serve.http.short_requests import Connection, Service
from mlirt.serve.http.traces import is_traced
from mlirt.serve.models.models import Models

_MEBI = 1 << 20
_NEVER = 1e7
_BACKLOG = 1024
"""Connections that wait to be taken, which come all at once where clients start together."""


@dataclass(frozen=True)
class HttpSettings:
    """Where the server listens, and what it takes."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes one that is free."""
    max_body_mb: float = 64.0
    """MiB of one body, unpacked where it is compressed."""
    max_bodies_mb: float = 512.0
    """MiB of all bodies that are being answered."""
    read_seconds: float = 30.0
    """How long a body may take to come."""
    close_seconds: float = 30.0
    """How long requests that are being answered have when the server is closed."""
    allow_reload: bool = False
    """Whether clients may load and unload models."""


def application(handlers: Handlers, settings: HttpSettings) -> web.Application:
    """The application of aiohttp."""
    app = web.Application(client_max_size=int(settings.max_body_mb * _MEBI), middlewares=[errors_as_json])
    app.add_routes(handlers.routes())
    return app


@asynccontextmanager
async def serving(models: Models, settings: HttpSettings) -> AsyncGenerator[int]:
    """Serve until the block ends; its value is the port. Then health checks fail, and open requests are answered."""
    budget = BodyBudget(int(settings.max_body_mb * _MEBI), int(settings.max_bodies_mb * _MEBI))
    handlers = Handlers(models, budget, settings.read_seconds, allow_reload=settings.allow_reload)
    traced = is_traced()  # a request with a span is aiohttp's: short ones have none
    runner = web.AppRunner(
        application(handlers, settings),
        access_log=None,
        handler_cancellation=True,
        keepalive_timeout=short_requests.IDLE_SECONDS if traced else _NEVER,  # `Connection` closes those that are idle
        shutdown_timeout=settings.close_seconds,
    )
    await runner.setup()
    service, inner = Service(models, budget, handlers.metrics), runner.server
    assert inner is not None

    def connection() -> asyncio.Protocol:
        return inner() if traced else Connection(service, inner())

    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, settings.host, settings.port, backlog=_BACKLOG)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        models.is_closing = True
        server.close()
        await service.close(settings.close_seconds)
        await runner.cleanup()


class HttpServer:
    """The server in a thread of its own, from `with` to its end; `models` are the caller's to close."""

    def __init__(self, models: Models, settings: HttpSettings | None = None) -> None:
        self._models = models
        self._settings = settings or HttpSettings(port=0)
        self._started = threading.Event()
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._error: BaseException | None = None
        self.port = 0
        self._thread = threading.Thread(target=self._run, name="mlirt-http", daemon=True)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{self._settings.host}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            raise self._error
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._error = error
            self._started.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with serving(self._models, self._settings) as self.port:
            self._started.set()
            await self._stop.wait()
