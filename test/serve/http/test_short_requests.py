"""Requests that one read has whole: which they are, and that connections answer them in order among others."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import mlirt
from mlirt.serve.http import short_requests
from mlirt.serve.http.server import HttpServer, HttpSettings
from mlirt.serve.http.short_requests import parsed
from mlirt.serve.models.backend import ServeSettings, open_backend
from mlirt.serve.models.model import Model
from mlirt.serve.models.models import Models

BODY = b'{"inputs": []}'
PLAIN = b"POST /v2/models/net/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 14\r\n\r\n" + BODY


def test_a_plain_request_is_short() -> None:
    request = parsed(PLAIN.replace(b"Host: a", b"Host: a\r\ninference-header-content-length:  7 "))
    assert request is not None
    assert (request.model, request.version, request.json_length, request.body) == ("net", "", "7", BODY)
    versioned = parsed(PLAIN.replace(b"net/", b"net/versions/2/"))
    assert versioned is not None
    assert versioned.version == "2"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"POST", b"GET"),
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"/infer", b"/ready"),
        (b"net/", b"n%65t/"),
        (b"/infer ", b"/infer?x=1 "),
        (b"Host: a", b"Transfer-Encoding: chunked"),
        (b"Host: a", b"Content-Encoding: gzip"),
        (b"Host: a", b"Expect: 100-continue"),
        (b"Host: a", b"Connection: close"),
        (b"Host: a", b"Content-Length: 14"),
        (b"Host: a", b"Host : a"),
        (b"Host: a", b" folded"),
        (b"Host: a", b"Host: a\x00b"),
        (b"Content-Length: 14", b"Content-Length: 13"),
        (b"Content-Length: 14", b"Content-Length: 15"),
        (b"Content-Length: 14", b"Content-Length: +14"),
        (b"Content-Length: 14", b"Host: b"),
        (b"Host: a", b"X: " + b"y" * 9000),
    ],
)
def test_others_are_not(old: bytes, new: bytes) -> None:
    assert parsed(PLAIN) is not None
    assert parsed(PLAIN.replace(old, new, 1)) is None


def _network() -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "net", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Models]:
    path = tmp_path_factory.mktemp("plans") / "net.plan"
    mlirt.compile(_network(), "cpu").save(path)
    models = Models([Model("net", lambda: open_backend(str(path), ServeSettings()))])
    yield models
    models.close()


@pytest.fixture(scope="module")
def server(models: Models) -> Iterator[HttpServer]:
    with HttpServer(models, HttpSettings(port=0)) as server:
        yield server


def _question(number: int) -> bytes:
    x = np.full((1, 3), number, np.float32)
    words = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": x.ravel().tolist()}]}
    body = json.dumps(words).encode()
    return b"POST /v2/models/net/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def _responses(connection: socket.socket, count: int) -> list[tuple[int, dict[str, object]]]:
    found: list[tuple[int, dict[str, object]]] = []
    data = b""
    while len(found) < count:
        head, end, rest = data.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]) if end else 0
        if end and len(rest) >= length:
            found.append((int(head.split(b" ")[1]), json.loads(rest[:length])))
            data = rest[length:]
            continue
        more = connection.recv(1 << 16)
        assert more, f"the connection ended behind {len(found)} responses"
        data += more
    return found


def _answer(response: tuple[int, dict[str, object]]) -> list[float]:
    assert response[0] == 200
    (output,) = cast("list[dict[str, list[float]]]", response[1]["outputs"])
    return output["data"]


def _connection(server: HttpServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), 30)


def test_requests_that_come_together_are_answered_in_order(server: HttpServer) -> None:
    with _connection(server) as connection:
        connection.sendall(b"".join(map(_question, range(20))))
        assert [_answer(one)[0] for one in _responses(connection, 20)] == [-float(number) for number in range(20)]


def test_short_requests_and_others_share_a_connection(server: HttpServer) -> None:
    with _connection(server) as connection:
        for number in range(4):
            connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n")
            assert _responses(connection, 1) == [(200, {"live": True})]
            connection.sendall(_question(number))
            assert _answer(_responses(connection, 1)[0])[0] == -number


def test_a_request_in_pieces_is_one(server: HttpServer) -> None:
    with _connection(server) as connection:
        text = _question(5)
        for start in range(0, len(text), 40):
            connection.sendall(text[start : start + 40])
        assert _answer(_responses(connection, 1)[0])[0] == -5.0


def test_errors_of_short_requests_are_those_of_others(server: HttpServer) -> None:
    texts = {
        404: _question(0).replace(b"/net/", b"/other/"),
        400: _question(0).replace(b"FP32", b"FP64"),
    }
    for status, text in texts.items():
        with _connection(server) as one, _connection(server) as other:
            one.sendall(text)
            other.sendall(text.replace(b"Host: a", b"Host: a\r\nConnection: close"))
            found = _responses(one, 1)
            assert found == _responses(other, 1)
            assert found[0][0] == status


def test_who_does_not_read_gets_all_in_the_end(server: HttpServer) -> None:
    """Backpressure: while a client does not read, no further requests of its connection are taken."""
    count = 4000
    with _connection(server) as connection:
        sender = threading.Thread(target=connection.sendall, args=(_question(1) * count,))
        sender.start()
        assert len(_responses(connection, count)) == count
        sender.join(30)


def test_connections_without_requests_end(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_requests, "IDLE_SECONDS", 0.1)
    with HttpServer(models, HttpSettings(port=0)) as server, _connection(server) as connection:
        connection.sendall(_question(1))
        _responses(connection, 1)
        connection.settimeout(10)
        assert connection.recv(1) == b""
