"""A deployment for Ray Serve: replicas that Ray scales, each with a batcher, speaking the Open Inference Protocol.

    from mlirt.serve.ray.deployment import application

    ray.serve.run(application("net.plan", max_replicas=8), route_prefix="/net")

Then `POST /net/v2/models/net/infer` answers, and `handle.infer.remote({"x": array})` within the cluster.
"""

# Ray is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray import serve
from starlette.requests import Request
from starlette.responses import Response

from mlirt.errors import MlirtError, UnavailableError
from mlirt.serve.batching.limits import Limits
from mlirt.serve.batching.request import Array, Outputs
from mlirt.serve.http.errors import status_of
from mlirt.serve.models.backend import Backend, ServeSettings, open_backend
from mlirt.serve.models.model import Model
from mlirt.serve.models.models import UnknownModelError
from mlirt.serve.protocol.infer_request import HEADER_LENGTH, header_length, read_request
from mlirt.serve.protocol.infer_response import response_body
from mlirt.serve.protocol.metadata import model_metadata


class EngineReplica:
    """One replica. Its plan is the deployment's `user_config["plan"]`: Ray changes it without losing a request."""

    def __init__(self, name: str, settings: ServeSettings) -> None:
        self._name, self._settings = name, settings
        self._plan = ""
        self._model: Model | None = None

    async def reconfigure(self, config: Mapping[str, Any]) -> None:
        """Ray calls it at the start, and when `user_config` was changed."""
        self._plan = str(config["plan"])
        if self._model is None:
            self._model = await asyncio.to_thread(Model, self._name, self._opened)
        else:
            await asyncio.to_thread(self._model.reload)

    async def infer(self, feeds: Mapping[str, Array], timeout: float | None = None) -> Outputs:
        """Outputs by name, for callers in the cluster."""
        return await asyncio.wrap_future(self._loaded.submit(feeds, timeout=timeout))

    async def __call__(self, request: Request) -> Response:
        """The Open Inference Protocol for one model."""
        try:
            return await self._answer(request)
        except MlirtError as error:
            text = json.dumps({"error": " ".join(str(error).split())})
            return Response(text, status_of(error), media_type="application/json")

    def check_health(self) -> None:
        """Ray replaces a replica that raises."""
        if not self._loaded.is_ready:
            raise UnavailableError(f"model {self._name!r} does not answer")

    @property
    def _loaded(self) -> Model:
        if self._model is None:
            raise UnavailableError(f"model {self._name!r} is not loaded yet")
        return self._model

    def _opened(self) -> Backend:
        return open_backend(self._plan, self._settings)

    async def _answer(self, request: Request) -> Response:
        model, path = self._loaded, request.url.path
        place = f"/v2/models/{model.name}"
        if path.endswith(("/v2/health/live", "/v2/health/ready", f"{place}/ready")):
            return Response(json.dumps({"ready": model.is_ready}), 200 if model.is_ready else 503)
        if path.endswith(place):
            words = model_metadata(model.name, model.version, model.signature)
            return Response(json.dumps(words), media_type="application/json")
        if not path.endswith(f"{place}/infer"):
            raise UnknownModelError(f"there is nothing at {path!r}; expected {place}/infer")
        return await self._inferred(request, model)

    async def _inferred(self, request: Request, model: Model) -> Response:
        length = header_length(request.headers.get(HEADER_LENGTH))
        asked = read_request(await request.body(), length, model.signature)
        outputs = await self.infer(asked.feeds, asked.timeout)
        body, length = response_body(model.name, model.version, asked, outputs)
        if length is None:
            return Response(body, media_type="application/json")
        return Response(body, headers={HEADER_LENGTH: str(length)}, media_type="application/octet-stream")


def application(
    plan: str,
    *,
    name: str | None = None,
    limits: Limits | None = None,
    min_replicas: int = 1,
    max_replicas: int = 4,
    requests_per_replica: int = 16,
    threads: int = 1,
    gpus: float = 0,
) -> Any:
    """An application for `ray.serve.run`. `plan`: a file that all machines see, as on a shared file system.

    Ray starts and ends replicas so that each has `requests_per_replica` requests in the mean; a replica takes four
    times as many, others wait in Ray's proxy. threads: the processors of a replica. gpus: its GPUs, for a CUDA plan.
    """
    # The engine has a process of its own, in which Ray's store and its libraries take no addresses: machine code refers
    # to its constants by 32 bits, and linking it fails where no room is left near it.
    settings = ServeSettings(limits or Limits(), replicas=1, threads=threads)
    scaling = {
        "min_replicas": min_replicas,
        "max_replicas": max_replicas,
        "target_ongoing_requests": requests_per_replica,
    }
    name = name or Path(plan).stem
    deployment = serve.deployment(
        EngineReplica,
        name=name,
        autoscaling_config=scaling,
        max_ongoing_requests=4 * requests_per_replica,
        user_config={"plan": plan},
        ray_actor_options={"num_cpus": threads, "num_gpus": gpus},
        health_check_period_s=5,
    )
    return deployment.bind(name, settings)
