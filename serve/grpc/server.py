"""The gRPC server, on the event loop of the caller."""

# gRPC and protobuf are not among the packages that are checked here: what comes from them has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedBaseClass=false, reportMissingModuleSource=false

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

import grpc
from open_inference.grpc import protocol
from open_inference.grpc.service import GRPCInferenceServiceServicer, add_GRPCInferenceServiceServicer_to_server

from mlirt.errors import (
    DeadlineError,
    InvalidInputError,
    MlirtError,
    OutOfMemoryError,
    OverloadError,
    UnavailableError,
)
from mlirt.serve.grpc.tensor_contents import feeds_of
from mlirt.serve.models.models import Models, UnknownModelError
from mlirt.serve.protocol.data_types import protocol_name
from mlirt.serve.protocol.infer_request import checked_outputs
from mlirt.serve.protocol.metadata import model_metadata, server_metadata
from mlirt.serve.protocol.tensor_data import to_bytes

_LOG = logging.getLogger("mlirt.serve")
_CLOSE_SECONDS = 30.0
_CODES: tuple[tuple[type[Exception], str], ...] = (
    (UnknownModelError, "NOT_FOUND"),
    (InvalidInputError, "INVALID_ARGUMENT"),
    (OverloadError, "RESOURCE_EXHAUSTED"),
    (OutOfMemoryError, "RESOURCE_EXHAUSTED"),
    (UnavailableError, "UNAVAILABLE"),
    (DeadlineError, "DEADLINE_EXCEEDED"),
)
Method = Callable[["InferenceService", Any, Any], Awaitable[Any]]


@asynccontextmanager
async def serving(models: Models, host: str, port: int, max_body_mb: float = 64.0) -> AsyncGenerator[int]:
    """Serve until the block ends; its value is the port. Then requests that are being answered are finished."""
    size = int(max_body_mb * (1 << 20))
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", size),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ]
    )
    add_GRPCInferenceServiceServicer_to_server(InferenceService(models), server)
    try:
        bound = int(server.add_insecure_port(f"{host}:{port}"))
    except RuntimeError as error:
        raise InvalidInputError(f"gRPC cannot listen on {host}:{port}: {error}") from error
    await server.start()
    try:
        yield bound
    finally:
        models.is_closing = True
        await server.stop(_CLOSE_SECONDS)


def _told(method: Method) -> Method:
    """A method whose errors are statuses with one line."""

    @wraps(method)
    async def wrapped(self: InferenceService, request: Any, context: Any) -> Any:
        try:
            return await method(self, request, context)
        except MlirtError as error:
            code = next((name for kind, name in _CODES if isinstance(error, kind)), "INTERNAL")
            await context.abort(getattr(grpc.StatusCode, code), " ".join(str(error).split()))
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            _LOG.exception("a request failed")
            await context.abort(grpc.StatusCode.INTERNAL, f"internal error: {type(error).__name__}")

    return wrapped


class InferenceService(GRPCInferenceServiceServicer):
    """The six methods of the protocol."""

    def __init__(self, models: Models) -> None:
        self._models = models

    @_told
    async def ServerLive(self, request: Any, context: Any) -> Any:
        return protocol.ServerLiveResponse(live=True)

    @_told
    async def ServerReady(self, request: Any, context: Any) -> Any:
        return protocol.ServerReadyResponse(ready=self._models.are_ready)

    @_told
    async def ModelReady(self, request: Any, context: Any) -> Any:
        return protocol.ModelReadyResponse(ready=self._models.get(request.name, request.version).is_ready)

    @_told
    async def ServerMetadata(self, request: Any, context: Any) -> Any:
        words = server_metadata()
        return protocol.ServerMetadataResponse(
            name=words["name"], version=words["version"], extensions=["model_repository"]
        )

    @_told
    async def ModelMetadata(self, request: Any, context: Any) -> Any:
        model = self._models.get(request.name, request.version)
        return protocol.ModelMetadataResponse(**model_metadata(model.name, model.version, model.signature))

    @_told
    async def ModelInfer(self, request: Any, context: Any) -> Any:
        model = self._models.get(request.model_name, request.model_version)
        signature = model.signature
        feeds = feeds_of(request, signature)
        wanted = checked_outputs({one.name: True for one in request.outputs}, signature)
        answer = model.submit(feeds, timeout=_timeout(request, context))
        outputs = await asyncio.wrap_future(answer)
        names = list(wanted) or [one.name for one in signature.outputs]
        response = protocol.ModelInferResponse(model_name=model.name, model_version=model.version, id=request.id)
        for name in names:
            array = outputs[name]
            response.outputs.add(name=name, datatype=protocol_name(array.dtype.name), shape=list(array.shape))
            response.raw_output_contents.append(to_bytes(array))
        return response


def _timeout(request: Any, context: Any) -> float | None:
    """Seconds: the parameter `timeout` in microseconds, or what the client's deadline leaves."""
    if "timeout" in request.parameters:
        return max(0, int(request.parameters["timeout"].int64_param)) / 1e6
    left = context.time_remaining()
    return None if left is None or left > 1e9 else max(0.0, float(left))
