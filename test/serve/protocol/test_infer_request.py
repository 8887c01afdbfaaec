"""Requests of the Open Inference Protocol are read strictly: JSON, nested JSON, bytes, and what strangers may send."""

from __future__ import annotations

import json
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirt.errors import InvalidInputError
from mlirt.runtime.engine_interface import TensorDescription
from mlirt.serve.batching.signature import Signature
from mlirt.serve.protocol.data_types import PROTOCOL_NAMES
from mlirt.serve.protocol.infer_request import read_request
from mlirt.serve.protocol.infer_response import response_body

TWO = Signature(
    "two",
    (TensorDescription("x", "float32", ("n", 2)), TensorDescription("k", "int8", ("n",))),
    (TensorDescription("y", "float32", ("n", 2)),),
)
X = {"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [1, 2.5, 3, 4]}
K = {"name": "k", "datatype": "INT8", "shape": [2], "data": [7, -8]}


def body(*inputs: dict[str, Any], **others: Any) -> bytes:
    return json.dumps({"inputs": inputs, **others}).encode()


def with_(tensor: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in {**tensor, **changes}.items() if value is not ...}


def test_numbers_in_a_row_and_nested_ones_are_the_same() -> None:
    row = read_request(body(X, K, id="7"), None, TWO)
    nested = read_request(body(with_(X, data=[[1, 2.5], [3, 4]]), K), None, TWO)
    assert row.feeds["x"].tolist() == nested.feeds["x"].tolist() == [[1, 2.5], [3, 4]]
    assert row.feeds["x"].dtype == np.float32
    assert row.feeds["k"].tolist() == [7, -8]
    assert (row.identity, row.outputs, row.timeout) == ("7", {"y": False}, None)


def test_bytes_follow_the_json_in_the_order_of_the_inputs() -> None:
    x, k = np.arange(4, dtype=np.float32).reshape(2, 2), np.array([1, -1], np.int8)
    header = body(
        with_(X, data=..., parameters={"binary_data_size": 16}),
        with_(K, data=..., parameters={"binary_data_size": 2}),
        parameters={"binary_data_output": True, "timeout": 1_500_000},
    )
    found = read_request(header + x.tobytes() + k.tobytes(), len(header), TWO)
    assert np.array_equal(found.feeds["x"], x)
    assert np.array_equal(found.feeds["k"], k)
    assert (found.outputs, found.timeout) == ({"y": True}, 1.5)


@pytest.mark.parametrize("dtype", PROTOCOL_NAMES)
def test_each_type_comes_back_from_json_and_from_bytes(dtype: str) -> None:
    array = np.array([0, 1, 1], getattr(ml_dtypes, dtype, dtype))
    one = TensorDescription("x", dtype, ("n",))
    data = [False, True, True] if dtype == "bool" else [0, 1, 1]
    for is_binary in (False, True):
        asked = body(
            {"name": "x", "datatype": PROTOCOL_NAMES[dtype], "shape": [3], "data": data},
            parameters={"binary_data_output": is_binary},
        )
        request = read_request(asked, None, Signature("one", (one,), (one,)))
        assert request.feeds["x"].dtype == array.dtype
        sent, length = response_body("one", "1", request, {"x": array})
        entry = json.loads(sent[:length])["outputs"][0]
        if is_binary:
            assert sent[length:] == array.tobytes()
            del entry["parameters"], entry["shape"]
            again = {**entry, "shape": [3], "parameters": {"binary_data_size": array.nbytes}}
            header = body(again)
            back = read_request(header + array.tobytes(), len(header), Signature("one", (one,), (one,)))
            assert np.array_equal(back.feeds["x"], array)
        else:
            assert entry["data"] == [0, 1, 1]


HOSTILE: list[tuple[bytes, str]] = [
    (b"", "the body of the request is empty"),
    (b"{", "is no JSON"),
    (b"\xff\xfe{", "is no JSON"),
    (b"[1]", r"is \[1\]; expected a JSON object"),
    (b"[" * 100_000, "is no JSON"),
    (b'{"inputs": [], "x": ' + b"9" * 5_000 + b"}", "is no JSON"),
    (b'{"inputs": 5}', "inputs of the request is 5; expected a list"),
    (b'{"inputs": [5]}', r"inputs\[0\] is 5; expected a JSON object"),
    (body(with_(X, name=...)), r"name of inputs\[0\] is null; expected a text"),
    (body(with_(X, name="z")), 'there is no input "z"; expected x, k'),
    (body(X, X), 'input "x" is given twice'),
    (body(with_(X, datatype="FP64")), "datatype of input 'x' is \"FP64\"; expected FP32"),
    (body(with_(X, datatype="BYTES")), "expected FP32"),
    (body(with_(X, datatype=[])), r'datatype of input "x" is \[\]; expected a text'),
    (body(with_(X, shape=...)), 'shape of input "x" is null; expected a list of lengths'),
    (body(with_(X, shape=[2, -2])), r'shape\[1\] of input "x" is -2; expected a whole number from 0 on'),
    (body(with_(X, shape=[2, True])), r'shape\[1\] of input "x" is true'),
    (body(with_(X, shape=[2, 1.5])), r'shape\[1\] of input "x" is 1.5'),
    (body(with_(X, shape=[1] * 99)), "expected a list of lengths"),
    (body(with_(X, shape=[10**18, 10**18])), "input 'x' has 4 elements; expected 10{36} for shape"),
    (body(with_(X, shape=[2, 3])), r"input 'x' has 4 elements; expected 6 for shape \[2, 3\]"),
    (body(with_(X, data=...)), "data of input 'x' is null; expected a list of numbers"),
    (body(with_(X, data="1234")), "expected a list of numbers"),
    (body(with_(X, data=[1, 2, 3, "4" * 100])), "has a text among its elements; expected float32"),
    (body(with_(X, data=[1, 2, 3, None])), "has null among its elements"),
    (body(with_(X, data=[1, 2, 3, True])), "has true or false among its elements"),
    (body(with_(X, data=[1, 2, 3, 1e39])), r"input 'x' has the element 1e\+39; expected what float32 can hold"),
    (body(with_(X, data=[1, 2, 3, 10**400])), "has elements that are no float32"),
    (body(with_(X, data=[[1, 2], [3]])), r"is not nested as its shape \[2, 2\], on axis 1"),
    (body(with_(X, data=[[1, 2], 3, 4])), "is not nested as its shape"),
    (body(with_(X, data=[[[1, 2], [3, 4]]])), "input 'x' has 2 elements; expected 4"),
    (body(with_(K, data=[7, 200])), "input 'k' has the element 200; expected what int8 can hold"),
    (body(with_(K, data=[7, 1.5])), "has a float among its elements; expected int8"),
    (body(with_(K, data=[7, 10**30])), "has elements that are no int8"),
    (body(with_(X, parameters=3)), 'parameters of input "x" is 3; expected a JSON object'),
    (body(with_(X, data=..., parameters={"binary_data_size": 16})), "is 16; 0 bytes are left in the body"),
    (body(with_(X, data=..., parameters={"binary_data_size": -1})), "is -1; expected a whole number"),
    (body(with_(X, data=..., parameters={"binary_data_size": 0})), "has 0 bytes of data; expected 16"),
    (body(with_(X, parameters={"binary_data_size": 0})), "has both data and binary_data_size"),
    (body(with_(X, parameters={"shared_memory_region": "r"})), "lies in shared memory"),
    (body(X, K, outputs=[{"name": "z"}]), 'there is no output "z"; expected y'),
    (body(X, K, outputs=[{"name": "y", "parameters": {"classification": 3}}]), "parameter classification"),
    (body(X, K, outputs=[{"name": "y", "parameters": {"binary_data": 1}}]), "expected true or false"),
    (body(X, K, parameters={"timeout": -5}), "in microseconds, is -5"),
    (body(X, K, id=5), "id of the request is 5; expected a text"),
]


@pytest.mark.parametrize(("sent", "message"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_wrong_request_is_one_line_that_names_what_is_wrong(sent: bytes, message: str) -> None:
    begun = time.monotonic()
    with pytest.raises(InvalidInputError, match=message) as caught:
        read_request(sent, None, TWO)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert time.monotonic() - begun < 1


@pytest.mark.parametrize("length", [0, -1, 10**9])
def test_the_length_of_the_json_is_within_the_body(length: int) -> None:
    with pytest.raises(InvalidInputError, match="expected 1 to the body's length"):
        read_request(body(X, K), length, TWO)


def test_bytes_that_nobody_reads_are_an_error() -> None:
    header = body(X, K)
    with pytest.raises(InvalidInputError, match="3 bytes are left behind the data of the last input"):
        read_request(header + b"abc", len(header), TWO)
