"""Asks a server over HTTP and gRPC by Triton's own client, in a process of its own: both have the protocol's messages.

`python triton_client.py HTTP_PORT GRPC_PORT` prints what came, as JSON.
"""

# The client is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException


def answers(kind: Any, port: str) -> dict[str, Any]:
    """What one kind of client gets."""
    client = kind.InferenceServerClient(f"127.0.0.1:{port}")
    metadata = client.get_model_metadata("dense")
    if not isinstance(metadata, dict):
        metadata = {"inputs": [{"name": metadata.inputs[0].name, "datatype": metadata.inputs[0].datatype}]}
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
    return {
        "live": client.is_server_live(),
        "ready": client.is_server_ready(),
        "model ready": client.is_model_ready("dense"),
        "input": [metadata["inputs"][0]["name"], metadata["inputs"][0]["datatype"]],
        "y": _infer(kind, client, x).as_numpy("y").tolist(),
        "error": _error(kind, client, x),
    }


def _infer(kind: Any, client: Any, x: Any, **options: Any) -> Any:
    tensor = kind.InferInput("x", list(x.shape), "FP32")
    tensor.set_data_from_numpy(x, **({"binary_data": options.pop("binary")} if "binary" in options else {}))
    return client.infer("dense", [tensor], outputs=[kind.InferRequestedOutput("y")], request_id="7", **options)


def _error(kind: Any, client: Any, x: Any) -> str:
    try:
        _infer(kind, client, np.concatenate([x, x], axis=1))
    except InferenceServerException as error:
        return str(error.message())
    return "none"


def main(http_port: str, grpc_port: str) -> None:
    """Print what both kinds get, and what the HTTP client gets by JSON and packed bodies."""
    client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{http_port}")
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
    by_json = _infer(tritonclient.http, client, x, binary=False).as_numpy("y").tolist()
    packed = _infer(tritonclient.http, client, x, request_compression_algorithm="gzip").as_numpy("y").tolist()
    found = {"http": answers(tritonclient.http, http_port), "grpc": answers(tritonclient.grpc, grpc_port)}
    print(json.dumps({**found, "json": by_json, "packed": packed}))


if __name__ == "__main__":
    main(*sys.argv[1:])
