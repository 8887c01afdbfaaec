"""What server and worker process say to each other: a JSON header, then the bytes of arrays, on a socket.

Both ends are the same installation on the same machine, and the socket has no name that others could open.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlirt.runtime.data_types import numpy_dtype

Array = np.ndarray[Any, np.dtype[Any]]
_LENGTH = struct.Struct("<I")
_MAX_BUFFERS = 64
"""Buffers of one system call; the kernel takes 1024 at most."""


@dataclass(frozen=True)
class Message:
    """Words and arrays, both by name."""

    words: Mapping[str, Any]
    arrays: Mapping[str, Array] = field(default_factory=dict[str, Array])


def send(end: socket.socket, message: Message) -> None:
    """Write a message; OSError where nobody reads any more."""
    arrays = {name: np.ascontiguousarray(array) for name, array in message.arrays.items()}
    tensors = [[name, array.dtype.name, message.arrays[name].shape] for name, array in arrays.items()]
    header = json.dumps({"words": message.words, "tensors": tensors}, separators=(",", ":")).encode()
    views = [array.reshape(-1).view(np.uint8).data for array in arrays.values() if array.nbytes]
    _send_all(end, [memoryview(_LENGTH.pack(len(header)) + header), *views])


def receive(end: socket.socket) -> Message:
    """Read a message; EOFError where the other side has ended."""
    length = _LENGTH.unpack(_read(end, np.empty(_LENGTH.size, np.uint8)).data)[0]
    header = json.loads(_read(end, np.empty(length, np.uint8)).tobytes())
    arrays = {name: np.empty(shape, numpy_dtype(dtype)) for name, dtype, shape in header["tensors"]}
    for array in arrays.values():
        if array.nbytes:
            _read(end, array.reshape(-1).view(np.uint8))
    return Message(header["words"], arrays)


def _send_all(end: socket.socket, views: Sequence[memoryview]) -> None:
    left = list(views)
    while left:
        sent = end.sendmsg(left[:_MAX_BUFFERS])
        while left and sent >= len(left[0]):
            sent -= len(left.pop(0))
        if left:
            left[0] = left[0][sent:]


def _read(end: socket.socket, into: Array) -> Array:
    view = into.data
    while view:
        count = end.recv_into(view)
        if not count:
            raise EOFError("the other process has ended")
        view = view[count:]
    return into
