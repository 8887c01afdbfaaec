"""Ray Serve: the protocol over HTTP, calls by a handle, a changed plan without loss, a killed replica; Ray Data."""

# Ray is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import numpy as np
import pytest
from dense_network import dense_network

import mlirt
from mlirt.runtime.engine import Engine

ray: Any = pytest.importorskip("ray", reason="needs the packages of mlirt[ray]: make test-serve has them")
X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)


# Ray gives its proxy 5 seconds to start, which a busy machine with two cores does not always keep.
os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "90")
os.environ.setdefault("RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S", "90")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    from ray import serve

    support = Path(__file__).parents[2] / "support"
    environment = {"PYTHONPATH": os.pathsep.join([str(support), os.environ.get("PYTHONPATH", "")])}
    ray.init(num_cpus=3, include_dashboard=False, runtime_env={"env_vars": environment})
    yield
    serve.shutdown()
    ray.shutdown()


def post(url: str, body: bytes) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, method="POST"), timeout=60) as response:
            return response.status, json.loads(response.read())
    except HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.usefixtures("cluster")
def test_a_deployment_answers_the_protocol_and_changes_its_plan(
    dense: Engine, dense_plan: Path, tmp_path: Path
) -> None:
    from ray import serve

    from mlirt.serve.ray.deployment import application

    serve.start(http_options={"port": 8217})
    handle = serve.run(application(str(dense_plan), max_replicas=1), name="dense", route_prefix="/net")
    expected = dense.run({"x": X})["y"]
    assert np.array_equal(handle.infer.remote({"x": X}).result()["y"], expected)
    url = "http://127.0.0.1:8217/net/v2/models/dense"
    data = {"name": "x", "datatype": "FP32", "shape": [3, 8], "data": X.ravel().tolist()}
    status, found = post(f"{url}/infer", json.dumps({"inputs": [data]}).encode())
    assert status == 200
    assert np.array_equal(np.array(found["outputs"][0]["data"], np.float32).reshape(3, 4), expected)
    assert post(f"{url}/infer", b"{") == (400, {"error": post(f"{url}/infer", b"{")[1]["error"]})
    assert post(f"{url}x/infer", b"{}")[0] == 404
    with urllib.request.urlopen(url) as response:
        assert json.loads(response.read())["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 8]}]

    other = tmp_path / "dense.plan"
    mlirt.compile(dense_network(0.5), "cpu", threads=1).save(other)
    answers = [handle.infer.remote({"x": X}) for _ in range(50)]
    handle = serve.run(application(str(other), max_replicas=1), name="dense", route_prefix="/net")
    assert all(answer.result()["y"].shape == (3, 4) for answer in answers)
    assert not np.allclose(handle.infer.remote({"x": X}).result()["y"], expected)


@pytest.mark.usefixtures("cluster")
def test_rows_of_parquet_get_outputs(dense: Engine, dense_plan: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from mlirt.serve.ray.predictor import Predictor

    x = np.random.default_rng(8).uniform(-1, 1, (100, 8)).astype(np.float32)
    pq.write_table(pa.table({"id": list(range(100)), "x": list(x)}), tmp_path / "rows.parquet")
    rows = ray.data.read_parquet(str(tmp_path / "rows.parquet"))
    found = rows.map_batches(Predictor, fn_constructor_args=(str(dense_plan),), batch_size=16, concurrency=1).take_all()
    by_id = {row["id"]: row["y"] for row in found}
    assert np.allclose(np.stack([by_id[number] for number in range(100)]), dense.run({"x": x})["y"], atol=1e-6)
