"""The bytes of a plan file stay those that its digests were checked of."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_plan import Parts

from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime import plan_file, plan_source
from mlirt.runtime.engine import load
from mlirt.runtime.plan_file import plan_bytes, read_plan, write_plan

Maker = Callable[[], Parts]


def written(tiny: Maker, folder: Path) -> Path:
    parts = tiny()
    write_plan(folder / "a.plan", parts.manifest, parts.sections, parts.weights)
    return folder / "a.plan"


@pytest.mark.parametrize("content", [b"", b"\xff" * 100_000])
def test_a_small_file_may_change_while_an_engine_runs(tiny: Maker, tmp_path: Path, content: bytes) -> None:
    path = written(tiny, tmp_path)
    engine, x = load(path), {"x": np.ones((3, 4), np.float32)}
    want = engine.run(x)["y"].copy()
    path.write_bytes(content)
    assert (engine.run(x)["y"] == want).all()


def test_a_large_file_must_not_change_while_it_is_read(
    tiny: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tiny, tmp_path)
    monkeypatch.setattr(plan_source, "MAX_READ_BYTES", 0)
    read_plan(path)
    parse = plan_file.parse_manifest

    def touch(*given: object) -> object:
        os.utime(path, ns=(1, 1))
        return parse(*given)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(plan_file, "parse_manifest", touch)
    with pytest.raises(PlanError, match="was written to while it was read"):
        read_plan(path)


@pytest.mark.parametrize("path", ["", "a\0b", "missing"])
def test_paths_that_are_none(tiny: Maker, path: str) -> None:
    with pytest.raises(PlanError, match="cannot open the plan file"):
        load(path)
    if path != "missing":
        parts = tiny()
        with pytest.raises(InvalidInputError, match="cannot write the plan file"):
            write_plan(path, parts.manifest, parts.sections, parts.weights)


def test_a_list_that_is_no_array(tiny: Maker) -> None:
    parts = tiny()
    engine = load(plan_bytes(parts.manifest, parts.sections, parts.weights))
    with pytest.raises(InvalidInputError, match="input 'x': expected an array of float32, got what is none"):
        engine.run({"x": [[1.0], [1.0, 2.0]]})  # pyright: ignore[reportArgumentType]


def test_the_version_is_under_the_digest(tiny: Maker) -> None:
    parts = tiny()
    data = bytearray(plan_bytes(parts.manifest, parts.sections, parts.weights))
    for version in (1, 2):
        data[8] = version
        with pytest.raises(PlanError, match="the digest of the index does not match"):
            read_plan(bytes(data))


def test_no_file_is_mapped_where_nobody_could_replace_it(
    tiny: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under Windows: the engine goes on with what it has read."""
    path = written(tiny, tmp_path)
    monkeypatch.setattr(plan_source, "MAX_READ_BYTES", 0)
    assert plan_source.open_source(path).state
    assert plan_source.large_file(path) is not None
    monkeypatch.setattr(plan_source, "_MAPS", False)
    assert not plan_source.open_source(path).state
    assert plan_source.large_file(path) is None
    engine, x = load(path), {"x": np.ones((3, 4), np.float32)}
    want = engine.run(x)["y"].copy()
    path.write_bytes(b"something else")
    assert (engine.run(x)["y"] == want).all()
