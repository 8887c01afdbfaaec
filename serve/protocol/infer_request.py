"""A request for inference, read from the body that a client has sent; all that is wrong with it is one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlirt.errors import InvalidInputError
from mlirt.runtime.engine_interface import TensorDescription
from mlirt.serve.batching.signature import Signature
from mlirt.serve.protocol.data_types import protocol_name
from mlirt.serve.protocol.json_fields import (
    Fields,
    as_fields,
    count_of,
    flag_of,
    list_field,
    read_json,
    shown,
    text_field,
)
from mlirt.serve.protocol.tensor_data import Array, from_bytes, from_json

HEADER_LENGTH = "Inference-Header-Content-Length"
"""The field of HTTP that says how many bytes of a body are JSON."""
_MAX_RANK = 32


@dataclass(frozen=True)
class InferRequest:
    """What a client wants to be computed."""

    feeds: Mapping[str, Array]
    outputs: Mapping[str, bool]
    """The outputs to send, each with whether as bytes."""
    identity: str = ""
    timeout: float | None = None
    """Seconds."""


def header_length(text: str | None) -> int | None:
    """What the field `HEADER_LENGTH` says; None where it is not there. Raises `InvalidInputError` for no number."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise InvalidInputError(f"{HEADER_LENGTH} is {shown(text)}; expected a whole number")
    return int(text)


def read_request(body: bytes, json_length: int | None, signature: Signature) -> InferRequest:
    """Read JSON of `json_length` bytes (None: all) and the bytes of tensors behind it; raises `InvalidInputError`."""
    if json_length is not None and not 0 < json_length <= len(body):
        raise InvalidInputError(f"{HEADER_LENGTH} is {json_length}; expected 1 to the body's length, {len(body)}")
    header = read_json(body[:json_length], "the body of the request")
    if not header:
        raise InvalidInputError('the body of the request is empty; expected a JSON object with "inputs"')
    binary = _Binary(memoryview(body)[len(body) if json_length is None else json_length :])
    feeds = _feeds(header, binary, signature)
    parameters = as_fields(header.get("parameters", {}), "parameters of the request")
    identity: object = header.get("id", "")
    if not isinstance(identity, str):
        raise InvalidInputError(f"id of the request is {shown(identity)}; expected a text")
    return InferRequest(feeds, _outputs(header, parameters, signature), identity, timeout_of(parameters))


def timeout_of(parameters: Fields) -> float | None:
    """Seconds, from the parameter `timeout` in microseconds."""
    value = parameters.get("timeout")
    return None if value is None else count_of(value, "parameter timeout of the request, in microseconds,") / 1e6


def known_input(name: str, datatype: str, signature: Signature) -> TensorDescription:
    """The input of this name; InvalidInputError where there is none, or it has another type."""
    tensor = next((one for one in signature.inputs if one.name == name), None)
    if tensor is None:
        names = ", ".join(one.name for one in signature.inputs)
        raise InvalidInputError(f"there is no input {shown(name)}; expected {names}")
    expected = protocol_name(tensor.dtype)
    if datatype != expected:
        raise InvalidInputError(f"datatype of input {name!r} is {shown(datatype)}; expected {expected}")
    return tensor


def checked_outputs(names: Mapping[str, bool], signature: Signature) -> Mapping[str, bool]:
    """The outputs that are asked for; all where none is."""
    known = [one.name for one in signature.outputs]
    for name in names:
        if name not in known:
            raise InvalidInputError(f"there is no output {shown(name)}; expected {', '.join(known)}")
    return names


class _Binary:
    """The bytes behind the JSON, from which inputs take theirs in their order."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def take(self, name: str, size: int) -> memoryview:
        left = len(self._data) - self._at
        if size > left:
            raise InvalidInputError(f"binary_data_size of input {name!r} is {size}; {left} bytes are left in the body")
        self._at += size
        return self._data[self._at - size : self._at]

    def check_end(self) -> None:
        left = len(self._data) - self._at
        if left:
            raise InvalidInputError(f"{left} bytes are left behind the data of the last input; expected none")


def _feeds(header: Fields, binary: _Binary, signature: Signature) -> Mapping[str, Array]:
    feeds: dict[str, Array] = {}
    for number, one in enumerate(list_field(header, "inputs", "the request")):
        fields = as_fields(one, f"inputs[{number}]")
        name = text_field(fields, "name", f"inputs[{number}]")
        if name in feeds:
            raise InvalidInputError(f"input {shown(name)} is given twice")
        feeds[name] = _array(name, fields, binary, signature)
    binary.check_end()
    return feeds


def _array(name: str, fields: Fields, binary: _Binary, signature: Signature) -> Array:
    what = f"input {shown(name)}"
    tensor = known_input(name, text_field(fields, "datatype", what), signature)
    lengths = list_field(fields, "shape", what)
    if "shape" not in fields or len(lengths) > _MAX_RANK:
        raise InvalidInputError(f"shape of {what} is {shown(fields.get('shape'))}; expected a list of lengths")
    shape = [count_of(length, f"shape[{axis}] of {what}") for axis, length in enumerate(lengths)]
    parameters = as_fields(fields.get("parameters", {}), f"parameters of {what}")
    if "shared_memory_region" in parameters:
        raise InvalidInputError(f"{what} lies in shared memory, which this server does not read; send its data")
    size = parameters.get("binary_data_size")
    if size is None:
        return from_json(name, fields.get("data"), tensor.dtype, shape)
    if "data" in fields:
        raise InvalidInputError(f"{what} has both data and binary_data_size; expected one of them")
    return from_bytes(name, binary.take(name, count_of(size, f"binary_data_size of {what}")), tensor.dtype, shape)


def _outputs(header: Fields, parameters: Fields, signature: Signature) -> Mapping[str, bool]:
    usual = flag_of(parameters.get("binary_data_output", False), "parameter binary_data_output of the request")
    found: dict[str, bool] = {}
    for number, one in enumerate(list_field(header, "outputs", "the request")):
        fields = as_fields(one, f"outputs[{number}]")
        name = text_field(fields, "name", f"outputs[{number}]")
        own = as_fields(fields.get("parameters", {}), f"parameters of output {shown(name)}")
        for word in ("classification", "shared_memory_region"):
            if own.get(word):
                raise InvalidInputError(f"output {shown(name)} has the parameter {word}, which is not supported here")
        found[name] = flag_of(own.get("binary_data", usual), f"binary_data of output {shown(name)}")
    return checked_outputs(found, signature) or {one.name: usual for one in signature.outputs}
