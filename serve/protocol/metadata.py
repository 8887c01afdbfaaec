"""What a server says of itself and of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.runtime.engine_interface import TensorDescription
from mlirt.serve.batching.signature import Signature
from mlirt.serve.protocol.data_types import protocol_name
from mlirt.version import __version__

EXTENSIONS = ("binary_tensor_data", "model_repository")
PLATFORM = "mlirt_plan"


def server_metadata() -> dict[str, Any]:
    """Name, version and extensions."""
    return {"name": "mlirt", "version": __version__, "extensions": list(EXTENSIONS)}


def model_metadata(name: str, version: str, signature: Signature) -> dict[str, Any]:
    """Inputs and outputs; a dimension that requests choose is -1."""
    return {
        "name": name,
        "versions": [version],
        "platform": PLATFORM,
        "inputs": tensors(signature.inputs),
        "outputs": tensors(signature.outputs),
    }


def tensors(listed: Sequence[TensorDescription]) -> list[dict[str, Any]]:
    """Name, type and shape of each."""
    return [
        {
            "name": tensor.name,
            "datatype": protocol_name(tensor.dtype),
            "shape": [dim if isinstance(dim, int) else -1 for dim in tensor.shape],
        }
        for tensor in listed
    ]
