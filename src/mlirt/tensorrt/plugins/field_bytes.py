"""Fields as bytes: JSON, with the numbers of each in base64."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.plugins.fields import PluginField, PluginFieldCollection, PluginFieldType


def bytes_of(fields: Iterable[PluginField]) -> bytes:
    """The bytes that `fields_of` reads."""
    return json.dumps([_record(field) for field in fields]).encode()


def fields_of(content: bytes) -> PluginFieldCollection:
    """The fields that `bytes_of` has written; raises `ValueError`, or `KeyError`, for other bytes."""
    return PluginFieldCollection(_field(record) for record in json.loads(content))


def _record(field: PluginField) -> dict[str, Any]:
    record: dict[str, Any] = {"name": field.name, "type": field.type.name}
    data = field.data
    if isinstance(data, Dims):
        return record | {"dims": list(data)}
    if isinstance(data, bytes):
        return record | {"bytes": base64.b64encode(data).decode()}
    if data is not None:
        content = base64.b64encode(data.tobytes()).decode()
        return record | {"dtype": data.dtype.name, "shape": list(data.shape), "bytes": content}
    return record


def _field(record: dict[str, Any]) -> PluginField:
    import numpy as np

    data: Any = None
    if "dims" in record:
        data = Dims(record["dims"])
    elif "bytes" in record:
        data = base64.b64decode(record["bytes"])
        if "dtype" in record:
            data = np.frombuffer(data, np.dtype(record["dtype"])).reshape(record["shape"])
    return PluginField(record["name"], data, PluginFieldType[record["type"]])
