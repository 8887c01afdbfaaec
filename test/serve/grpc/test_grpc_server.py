"""The gRPC server beside the HTTP server: clients that are not ours get from both what the engine gives."""

# gRPC and protobuf are not among the packages that are checked here: what comes from them has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingModuleSource=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlirt.runtime.engine import Engine

NEEDS = "needs the packages of mlirt[grpc]: make test-serve has them"
grpc = pytest.importorskip("grpc", reason=NEEDS)
pytest.importorskip("open_inference", reason=NEEDS)

from open_inference.grpc import protocol  # noqa: E402
from open_inference.grpc.service import GRPCInferenceServiceStub  # noqa: E402


@pytest.fixture(scope="module")
def ports(dense_plan: Path) -> Iterator[tuple[str, str]]:
    command = [
        sys.executable,
        "-m",
        "mlirt.tools.rt_serve",
        str(dense_plan),
        "--port=0",
        "--grpc-port=0",
        "--threads=1",
    ]
    process = subprocess.Popen([*command, "--max-batch=16", "--max-body-mb=1"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    words = process.stdout.readline().split()
    yield words[-3].rsplit(":", 1)[1], words[-1].rsplit(":", 1)[1]
    process.terminate()
    assert process.wait(30) == 0


@pytest.fixture(scope="module")
def stub(ports: tuple[str, str]) -> Iterator[Any]:
    with grpc.insecure_channel(f"127.0.0.1:{ports[1]}") as channel:
        yield GRPCInferenceServiceStub(channel)


def request(x: Any, **others: Any) -> Any:
    tensor = {"name": "x", "datatype": "FP32", "shape": list(x.shape)}
    return protocol.ModelInferRequest(model_name="dense", inputs=[tensor], raw_input_contents=[x.tobytes()], **others)


def test_triton_s_clients_get_what_the_engine_gives(ports: tuple[str, str], dense: Engine) -> None:
    pytest.importorskip("tritonclient.http", reason="needs tritonclient: make test-serve has it")
    script = Path(__file__).with_name("triton_client.py")
    done = subprocess.run([sys.executable, str(script), *ports], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
    expected = dense.run({"x": x})["y"].tolist()
    assert found["json"] == found["packed"] == expected
    for kind in ("http", "grpc"):
        assert found[kind] == {
            "live": True,
            "ready": True,
            "model ready": True,
            "input": ["x", "FP32"],
            "y": expected,
            "error": "axis 1 of input 'x' is 16; expected 8: [n, 8]",
        }


def test_numbers_inside_of_the_message_are_read_too(stub: Any, dense: Engine) -> None:
    x = np.ones((1, 8), np.float32)
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 8], "contents": {"fp32_contents": [1.0] * 8}}
    found = stub.ModelInfer(protocol.ModelInferRequest(model_name="dense", inputs=[tensor], id="3"))
    assert found.id == "3"
    assert found.raw_output_contents[0] == dense.run({"x": x})["y"].tobytes()


X = np.zeros((1, 8), np.float32)


@pytest.mark.parametrize(
    ("sent", "code", "message"),
    [
        (protocol.ModelInferRequest(model_name="other"), "NOT_FOUND", "there is no model 'other'"),
        (protocol.ModelInferRequest(model_name="dense"), "INVALID_ARGUMENT", "input 'x' is missing; expected x"),
        (request(np.zeros((1, 9), np.float32)), "INVALID_ARGUMENT", "axis 1 of input 'x' is 9; expected 8"),
        (request(X, outputs=[{"name": "z"}]), "INVALID_ARGUMENT", 'there is no output "z"; expected y'),
        (
            protocol.ModelInferRequest(
                model_name="dense",
                inputs=[{"name": "x", "datatype": "FP32", "shape": [1, -8]}],
                raw_input_contents=[b""],
            ),
            "INVALID_ARGUMENT",
            'shape[1] of input "x" is -8',
        ),
        (
            protocol.ModelInferRequest(
                model_name="dense",
                inputs=[{"name": "x", "datatype": "FP32", "shape": [1, 8]}],
                raw_input_contents=[b"1"],
            ),
            "INVALID_ARGUMENT",
            "input 'x' has 1 bytes of data; expected 32",
        ),
        (request(np.zeros((1 << 16, 8), np.float32)), "RESOURCE_EXHAUSTED", "larger than max"),
    ],
)
def test_a_wrong_request_has_a_code_and_one_line(stub: Any, sent: Any, code: str, message: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        stub.ModelInfer(sent)
    assert caught.value.code().name == code
    assert message in caught.value.details()
    assert "\n" not in caught.value.details()


def test_a_deadline_is_the_client_s(stub: Any) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        stub.ModelInfer(request(X, parameters={"timeout": {"int64_param": 0}}))
    assert caught.value.code().name == "DEADLINE_EXCEEDED"
