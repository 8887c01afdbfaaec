"""The response to a request for inference: JSON, and behind it the bytes of outputs that were asked for as bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mlirt.serve.protocol.data_types import protocol_name
from mlirt.serve.protocol.infer_request import InferRequest
from mlirt.serve.protocol.tensor_data import Array, to_bytes, to_json


def response_body(
    model: str, version: str, request: InferRequest, outputs: Mapping[str, Array]
) -> tuple[bytes, int | None]:
    """The body, and the length of its JSON; None where it is JSON alone."""
    listed: list[dict[str, Any]] = []
    tail: list[bytes] = []
    for name, is_binary in request.outputs.items():
        array = outputs[name]
        entry: dict[str, Any] = {"name": name, "datatype": protocol_name(array.dtype.name), "shape": list(array.shape)}
        if is_binary:
            tail.append(to_bytes(array))
            entry["parameters"] = {"binary_data_size": len(tail[-1])}
        else:
            entry["data"] = to_json(array)
        listed.append(entry)
    words: dict[str, Any] = {"model_name": model, "model_version": version, "outputs": listed}
    if request.identity:
        words["id"] = request.identity
    header = json.dumps(words, separators=(",", ":")).encode()
    return header + b"".join(tail), len(header) if tail else None
