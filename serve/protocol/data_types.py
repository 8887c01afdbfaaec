"""What the protocol calls the types of elements."""

from __future__ import annotations

from mlirt.errors import InvalidInputError

PROTOCOL_NAMES = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "bfloat16": "BF16",
    "float32": "FP32",
    "float64": "FP64",
}


def protocol_name(dtype: str) -> str:
    """The protocol's name of a type of ours; InvalidInputError for one that it has no name for."""
    if dtype not in PROTOCOL_NAMES:
        raise InvalidInputError(f"the Open Inference Protocol has no name for elements of type {dtype}")
    return PROTOCOL_NAMES[dtype]
