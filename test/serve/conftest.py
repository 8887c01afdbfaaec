"""The engine that the tests of serving share, and its plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from dense_network import dense_network

import mlirt
from mlirt.runtime.engine import Engine


@pytest.fixture(scope="session")
def dense() -> Engine:
    """The engine of the network."""
    engine = mlirt.compile(dense_network(), "cpu", threads=1)
    assert isinstance(engine, Engine)
    return engine


@pytest.fixture(scope="session")
def dense_plan(dense: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its plan file."""
    path = tmp_path_factory.mktemp("plans") / "dense.plan"
    dense.save(path)
    return path
