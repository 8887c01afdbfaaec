"""The HTTP server answers the Open Inference Protocol, refuses what it cannot answer, and reloads without loss."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dense_network import dense_network

import mlirt
from mlirt.runtime.engine import Engine
from mlirt.serve.batching.limits import Limits
from mlirt.serve.models.backend import ServeSettings, open_backend
from mlirt.serve.models.model import Model
from mlirt.serve.models.models import Models

pytest.importorskip("aiohttp", reason="needs the packages of mlirt[serve]")
from mlirt.serve.http.server import HttpServer, HttpSettings

SETTINGS = HttpSettings(port=0, max_body_mb=1, allow_reload=True, read_seconds=1.0)


class Client:
    """One connection; answers are status and JSON."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        self.connection.request(method, path, body, headers or {})
        response = self.connection.getresponse()
        self.headers = response.headers
        text = response.read()
        length = response.headers.get("Inference-Header-Content-Length")
        self.tail = text[int(length) :] if length else b""
        return response.status, json.loads(text[: int(length)] if length else text)

    def infer(self, x: np.ndarray[Any, np.dtype[Any]], **others: Any) -> tuple[int, Any]:
        data = {"name": "x", "datatype": "FP32", "shape": list(x.shape), "data": x.ravel().tolist()}
        return self.send("POST", "/v2/models/dense/infer", json.dumps({"inputs": [data], **others}).encode())


@pytest.fixture(scope="module")
def models(dense_plan: Path) -> Iterator[Models]:
    settings = ServeSettings(Limits(max_batch=16), threads=1)
    models = Models([Model("dense", lambda: open_backend(str(dense_plan), settings))])
    yield models
    models.close()


@pytest.fixture(scope="module")
def server(models: Models) -> Iterator[HttpServer]:
    with HttpServer(models, SETTINGS) as server:
        yield server


@pytest.fixture
def client(server: HttpServer) -> Client:
    return Client(server.port)


def test_health_and_metadata(client: Client) -> None:
    assert client.send("GET", "/v2/health/live") == (200, {"live": True})
    assert client.send("GET", "/v2/health/ready") == (200, {"ready": True})
    assert client.send("GET", "/v2")[1]["extensions"] == ["binary_tensor_data", "model_repository"]
    assert client.send("GET", "/v2/models/dense/ready") == (200, {"name": "dense", "ready": True})
    assert client.send("GET", "/v2/models/dense/versions/1") == (
        200,
        {
            "name": "dense",
            "versions": ["1"],
            "platform": "mlirt_plan",
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 8]}],
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 4]}],
        },
    )


def test_json_and_bytes_give_what_the_engine_gives(client: Client, dense: Engine) -> None:
    x = np.random.default_rng(1).uniform(-1, 1, (3, 8)).astype(np.float32)
    expected = dense.run({"x": x})["y"]
    status, found = client.infer(x, id="one")
    assert (status, found["id"], found["model_name"], found["model_version"]) == (200, "one", "dense", "1")
    assert np.array_equal(np.array(found["outputs"][0]["data"], np.float32).reshape(3, 4), expected)
    status, found = client.infer(x, parameters={"binary_data_output": True})
    assert found["outputs"][0]["parameters"] == {"binary_data_size": 48}
    assert client.tail == expected.tobytes()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("POST", "/v2/models/dense/infer", b"{", 400, "is no JSON"),
        ("POST", "/v2/models/dense/infer", b'{"inputs": []}', 400, "input 'x' is missing; expected x"),
        ("POST", "/v2/models/other/infer", b"{}", 404, "there is no model 'other'; expected one of dense"),
        ("POST", "/v2/models/dense/versions/9/infer", b"{}", 404, "has no version '9'; expected 1"),
        ("GET", "/v2/models/dense/infer", None, 405, "Method Not Allowed"),
        ("GET", "/elsewhere", None, 404, "Not Found"),
        (
            "POST",
            "/v2/models/dense/infer",
            b" " * (1 << 21),
            413,
            "has 2097152 bytes; expected at most 1048576",
        ),
    ],
)
def test_a_wrong_request_has_a_status_and_one_line(
    client: Client, method: str, path: str, body: bytes | None, status: int, message: str
) -> None:
    found, answer = client.send(method, path, body)
    assert found == status
    assert message in answer["error"]
    assert "\n" not in answer["error"]
    assert client.send("GET", "/v2/health/live")[0] == 200


def test_wrong_shapes_are_named(client: Client) -> None:
    status, answer = client.infer(np.zeros((1, 9), np.float32))
    assert (status, answer["error"]) == (400, "axis 1 of input 'x' is 9; expected 8: [n, 8]")
    assert client.infer(np.zeros((17, 8), np.float32)) == (
        400,
        {"error": "axis 0 of input 'x' is 17; expected 1 to 16 (n)"},
    )


@pytest.mark.parametrize("length", ["x", "-1", "1e3", "99999", "9" * 40])
def test_a_wrong_length_of_the_json_is_an_error(client: Client, length: str) -> None:
    headers = {"Inference-Header-Content-Length": length}
    status, answer = client.send("POST", "/v2/models/dense/infer", b"{}", headers)
    assert status == 400
    assert "Inference-Header-Content-Length is" in answer["error"]


def test_a_packed_body_is_limited_by_what_it_unpacks_to(client: Client) -> None:
    import gzip

    bomb = gzip.compress(b" " * (8 << 20) + b"{}")
    status, answer = client.send("POST", "/v2/models/dense/infer", bomb, {"Content-Encoding": "gzip"})
    assert status == 413, answer


def test_a_body_that_does_not_come_is_given_up(server: HttpServer) -> None:
    slow = Client(server.port)
    slow.connection.putrequest("POST", "/v2/models/dense/infer")
    slow.connection.putheader("Content-Length", "100")
    slow.connection.endheaders(b"{")
    response = slow.connection.getresponse()
    assert response.status == 408
    assert "did not come within 1 s" in json.loads(response.read())["error"]
    slow.connection.close()
    seen = Client(server.port)
    seen.connection.request("GET", "/metrics")
    text = seen.connection.getresponse().read().decode()
    assert 'mlirt_request_seconds_count{model="dense",status="408"}' in text


def test_metrics_count_requests_batches_and_times(client: Client) -> None:
    client.infer(np.zeros((2, 8), np.float32))
    client.connection.request("GET", "/metrics")
    text = client.connection.getresponse().read().decode()
    assert 'mlirt_requests_total{model="dense",outcome="ok"}' in text
    assert 'mlirt_batch_rows_bucket{le="2",model="dense"}' in text
    assert 'mlirt_request_seconds_count{model="dense",status="200"}' in text
    assert 'mlirt_model_ready{model="dense"} 1.0' in text


def test_a_reload_loses_no_request(server: HttpServer, models: Models, dense: Engine) -> None:
    x = np.random.default_rng(2).uniform(-1, 1, (1, 8)).astype(np.float32)
    expected = dense.run({"x": x})["y"].ravel().tolist()
    statuses: list[int] = []
    ends = threading.Event()

    def ask() -> None:
        client = Client(server.port)
        while not ends.is_set():
            status, found = client.infer(x)
            statuses.append(status if found.get("outputs", [{}])[0].get("data") == expected else 0)

    callers = [threading.Thread(target=ask) for _ in range(3)]
    for caller in callers:
        caller.start()
    reloads = models.get("dense").reloads
    for _ in range(5):
        assert Client(server.port).send("POST", "/v2/repository/models/dense/load", b"{}") == (200, {})
    ends.set()
    for caller in callers:
        caller.join()
    assert models.get("dense").reloads == reloads + 5
    assert len(statuses) > 20
    assert set(statuses) == {200}


def test_an_unloaded_model_is_unavailable_until_it_is_loaded(client: Client) -> None:
    assert client.send("POST", "/v2/repository/models/dense/unload")[0] == 200
    assert client.infer(np.zeros((1, 8), np.float32)) == (503, {"error": "model 'dense' is not loaded"})
    assert client.headers["Retry-After"] == "1"
    assert client.send("GET", "/v2/health/ready")[0] == 503
    assert client.send("POST", "/v2/repository/index")[1] == [{"name": "dense", "version": "1", "state": "UNAVAILABLE"}]
    assert client.send("POST", "/v2/repository/models/dense/load")[0] == 200
    assert client.infer(np.zeros((1, 8), np.float32))[0] == 200


def test_overload_is_refused_quickly(dense_plan: Path) -> None:
    settings = ServeSettings(Limits(max_batch=1, max_queue=1), threads=1)
    model = Model("dense", lambda: open_backend(str(dense_plan), settings))
    entered, gate = threading.Event(), threading.Event()
    batcher = model.backend.batcher
    run = batcher._run  # pyright: ignore[reportPrivateUsage]

    def slow(*arguments: Any) -> Any:
        entered.set()
        gate.wait(30)
        return run(*arguments)

    batcher._run = slow  # pyright: ignore[reportPrivateUsage]
    models = Models([model])
    x = np.zeros((1, 8), np.float32)
    with HttpServer(models, SETTINGS) as server:
        waiting = [threading.Thread(target=Client(server.port).infer, args=(x,)) for _ in range(2)]
        waiting[0].start()
        assert entered.wait(10)
        waiting[1].start()
        while batcher.use.waiting < 1:
            time.sleep(0.005)
        client = Client(server.port)
        begun = time.monotonic()
        status, answer = client.infer(x)
        assert time.monotonic() - begun < 0.5
        assert (status, client.headers["Retry-After"]) == (429, "1")
        assert answer["error"].startswith("2 requests are being answered; expected fewer than 2")
        gate.set()
        for caller in waiting:
            caller.join()
    models.close()


def test_reloading_is_for_who_runs_the_server(models: Models) -> None:
    with HttpServer(models) as server:
        status, answer = Client(server.port).send("POST", "/v2/repository/models/dense/unload")
    models.is_closing = False
    assert status == 403
    assert "--allow-reload" in answer["error"]


def test_rt_serve_serves_a_model_with_replicas_and_ends_when_told(tmp_path: Path) -> None:
    path = tmp_path / "dense.plan"
    mlirt.compile(dense_network(), "cpu", threads=1).save(path)
    command = [sys.executable, "-m", "mlirt.tools.rt_serve", str(path), "--port=0", "--replicas=1", "--threads=1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("rt-serve: dense at http://127.0.0.1:")
        client = Client(int(line.rsplit(":", 1)[1]))
        before = client.infer(np.ones((1, 8), np.float32))[1]["outputs"][0]["data"]
        mlirt.compile(dense_network(0.5), "cpu", threads=1).save(path)
        process.send_signal(signal.SIGHUP)
        until = time.monotonic() + 30
        while client.infer(np.ones((1, 8), np.float32))[1]["outputs"][0]["data"] == before:
            assert time.monotonic() < until
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and _runs(pid, str(path))]


def _runs(pid: str, plan: str) -> bool:
    try:
        return plan in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except OSError:
        return False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.plan"], "missing.plan"),
        (["a/b=c.plan", "--port=99999"], "expected a port from 0 to 65535"),
        (["x.plan", "--limit=h"], "expected lengths such as h=512,w=512"),
        (["x.plan", "--streams=2", "--replicas=2"], "streams are those of an engine in this process"),
        (["a=x.plan", "a=y.plan"], "two models have the same name"),
    ],
)
def test_wrong_flags_are_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlirt.tools.rt_serve import main

    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
