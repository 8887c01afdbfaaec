"""What the server answers to each path of the Open Inference Protocol."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from mlirt.errors import MlirtError, OverloadError, UnavailableError
from mlirt.serve.http.body_budget import BodyBudget
from mlirt.serve.http.errors import ForbiddenError, SlowClientError, status_of
from mlirt.serve.http.metrics import CONTENT_TYPE, Metrics
from mlirt.serve.http.short_requests import CLIENT_HAS_GONE, LARGE
from mlirt.serve.http.traces import request_span
from mlirt.serve.models.model import Model
from mlirt.serve.models.models import Models
from mlirt.serve.protocol.infer_request import HEADER_LENGTH, InferRequest, header_length, read_request
from mlirt.serve.protocol.infer_response import response_body
from mlirt.serve.protocol.json_fields import shown
from mlirt.serve.protocol.metadata import model_metadata, server_metadata

_LOG = logging.getLogger("mlirt.serve")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Handlers:
    """Answers for models. `allow_reload`: whether clients may load and unload them."""

    def __init__(self, models: Models, budget: BodyBudget, read_seconds: float, *, allow_reload: bool) -> None:
        self._models = models
        self._budget = budget
        self._read_seconds = read_seconds
        self._allow_reload = allow_reload
        self.metrics = Metrics(models)

    def routes(self) -> list[web.RouteDef]:
        """All paths."""
        found = [
            web.get("/v2", self.server),
            web.get("/v2/health/live", self.live),
            web.get("/v2/health/ready", self.ready),
            web.get("/metrics", self.measured),
            web.post("/v2/repository/index", self.index),
            web.post("/v2/repository/models/{model}/load", self.load),
            web.post("/v2/repository/models/{model}/unload", self.unload),
        ]
        for path in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
            found += [web.get(path, self.model), web.get(f"{path}/ready", self.model_ready)]
            found += [web.post(f"{path}/infer", self.infer)]
        return found

    async def server(self, _: web.Request) -> web.Response:
        return web.json_response(server_metadata())

    async def live(self, _: web.Request) -> web.Response:
        return web.json_response({"live": True})

    async def ready(self, _: web.Request) -> web.Response:
        is_ready = self._models.are_ready
        return web.json_response({"ready": is_ready}, status=200 if is_ready else 503)

    async def measured(self, _: web.Request) -> web.Response:
        return web.Response(body=self.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    async def model(self, request: web.Request) -> web.Response:
        model = self._model(request)
        return web.json_response(model_metadata(model.name, model.version, model.signature))

    async def model_ready(self, request: web.Request) -> web.Response:
        model = self._model(request)
        return web.json_response({"name": model.name, "ready": model.is_ready}, status=200 if model.is_ready else 503)

    async def index(self, _: web.Request) -> web.Response:
        states = [
            {"name": one.name, "version": one.version, "state": "READY" if one.is_ready else "UNAVAILABLE"}
            for one in self._models
        ]
        return web.json_response(states)

    async def load(self, request: web.Request) -> web.Response:
        """Open the model's own file again; what a client sends beside the name is not looked at."""
        model = self._changed_model(request)
        await asyncio.to_thread(model.reload)
        return web.json_response({})

    async def unload(self, request: web.Request) -> web.Response:
        model = self._changed_model(request)
        await asyncio.to_thread(model.unload)
        return web.json_response({})

    async def infer(self, request: web.Request) -> web.StreamResponse:
        begun, status, waited = time.perf_counter(), 500, 0.0
        model = self._model(request)
        with request_span(model.name, request.headers) as attributes:
            try:
                with model.backend.batcher.admitted(), self._budget.hold(request.content_length):
                    asked = await self._asked(request, model)
                    answer = model.submit(asked.feeds, timeout=asked.timeout, loop=asyncio.get_running_loop())
                    outputs = await asyncio.wrap_future(answer)
                    waited = answer.waited
                    attributes |= {"mlirt.batch_rows": answer.batch_rows, "mlirt.queue_seconds": waited}
                    body, length = await _by_thread(
                        sum(one.nbytes for one in outputs.values()),
                        lambda: response_body(model.name, model.version, asked, outputs),
                    )
                status = 200
            except asyncio.CancelledError:
                status = CLIENT_HAS_GONE
                raise
            except MlirtError as error:
                status = status_of(error)
                raise
            except web.HTTPException as error:
                status = error.status
                raise
            finally:
                self.metrics.answered(model.name, status, time.perf_counter() - begun, waited)
        return _response(body, length)

    async def _asked(self, request: web.Request, model: Model) -> InferRequest:
        length = header_length(request.headers.get(HEADER_LENGTH))
        try:
            async with asyncio.timeout(self._read_seconds):
                body = await request.read()
        except TimeoutError:
            raise SlowClientError(f"the body did not come within {self._read_seconds:g} s") from None
        return await _by_thread(len(body), lambda: read_request(body, length, model.signature))

    def _model(self, request: web.Request) -> Model:
        return self._models.get(request.match_info["model"], request.match_info.get("version", ""))

    def _changed_model(self, request: web.Request) -> Model:
        if not self._allow_reload:
            raise ForbiddenError(
                "clients may not load or unload models of this server: start it with --allow-reload, or send it SIGHUP"
            )
        return self._model(request)


async def _by_thread(size: int, work: Callable[[], Any]) -> Any:
    """Do small work at once, and large work where it keeps no others from being answered."""
    return work() if size < LARGE else await asyncio.to_thread(work)


def _response(body: bytes, length: int | None) -> web.Response:
    if length is None:
        return web.Response(body=body, content_type="application/json")
    return web.Response(body=body, headers={HEADER_LENGTH: str(length), "Content-Type": "application/octet-stream"})


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Each error as {"error": one line}, which is what clients of the protocol show."""
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge as error:
        return _error(413, f"the body is too large: {error.text or error.reason}")
    except web.HTTPException as error:
        return _error(error.status, f"{request.method} {shown(request.path)}: {error.reason}")
    except (OverloadError, UnavailableError) as error:
        return _error(status_of(error), str(error), {"Retry-After": "1"})
    except MlirtError as error:
        return _error(status_of(error), str(error))
    except Exception as error:
        if isinstance(error, ConnectionError):
            raise
        _LOG.exception("a request failed")
        return _error(500, f"internal error: {type(error).__name__} (the server's log has more)")


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"error": " ".join(message.split())}, status=status, headers=headers)
