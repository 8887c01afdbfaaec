"""Tensors in messages of the protocol: as bytes beside them, or as numbers inside of them."""

# gRPC and protobuf are not among the packages that are checked here: what comes from them has no type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.serve.batching.signature import Signature
from mlirt.serve.protocol.infer_request import known_input
from mlirt.serve.protocol.json_fields import count_of, shown
from mlirt.serve.protocol.tensor_data import Array, from_bytes

_CONTENTS = {
    "bool": "bool_contents",
    "int8": "int_contents",
    "int16": "int_contents",
    "int32": "int_contents",
    "int64": "int64_contents",
    "uint8": "uint_contents",
    "uint16": "uint_contents",
    "uint32": "uint_contents",
    "uint64": "uint64_contents",
    "float32": "fp32_contents",
    "float64": "fp64_contents",
}


def feeds_of(request: Any, signature: Signature) -> dict[str, Array]:
    """The inputs of a ModelInferRequest by name; `InvalidInputError` names the one that is wrong."""
    raw: Sequence[bytes] = request.raw_input_contents
    if raw and len(raw) != len(request.inputs):
        raise InvalidInputError(
            f"there are {len(raw)} raw_input_contents for {len(request.inputs)} inputs; expected one for each, or none"
        )
    feeds: dict[str, Array] = {}
    for number, tensor in enumerate(request.inputs):
        if tensor.name in feeds:
            raise InvalidInputError(f"input {shown(tensor.name)} is given twice")
        feeds[tensor.name] = _array(tensor, raw[number] if raw else None, signature)
    return feeds


def _array(tensor: Any, raw: bytes | None, signature: Signature) -> Array:
    known = known_input(tensor.name, tensor.datatype, signature)
    shape = [count_of(int(one), f"shape[{axis}] of input {shown(known.name)}") for axis, one in enumerate(tensor.shape)]
    if raw is not None:
        if tensor.HasField("contents"):
            raise InvalidInputError(f"input {known.name!r} has both contents and raw_input_contents; expected one")
        return from_bytes(known.name, memoryview(raw), known.dtype, shape)
    kind = _CONTENTS.get(known.dtype)
    if kind is None:
        raise InvalidInputError(f"input {known.name!r} is {known.dtype}; expected it in raw_input_contents")
    numbers = getattr(tensor.contents, kind)
    if len(numbers) != math.prod(shape):
        raise InvalidInputError(
            f"input {known.name!r} has {len(numbers)} elements in {kind}; expected {math.prod(shape)} for {shape}"
        )
    wide = np.array(numbers, dtype=_wide_dtype(kind))
    found = wide.astype(known.dtype)
    if not np.array_equal(found, wide, equal_nan=found.dtype.kind == "f"):
        raise InvalidInputError(f"input {known.name!r} has elements that {known.dtype} cannot hold")
    return found.reshape(shape)


def _wide_dtype(kind: str) -> str:
    wide = {"bool_contents": "bool", "int_contents": "int32", "uint_contents": "uint32", "fp32_contents": "float32"}
    return wide.get(kind, {"int64_contents": "int64", "uint64_contents": "uint64"}.get(kind, "float64"))
