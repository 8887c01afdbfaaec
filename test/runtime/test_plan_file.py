"""The plan container: exact round trips, a valid safetensors section, and no damage that is not refused in one line."""

import hashlib
import json
import random
import struct
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlirt.errors import InvalidInputError, MlirtError, PlanError
from mlirt.runtime import plan_file, safetensors_section
from mlirt.runtime.manifest import FloatArgument
from mlirt.runtime.plan_file import make_plan, plan_bytes, read_plan, write_plan
from mlirt.runtime.shape_binding import bind_shapes

Maker = Callable[[], Any]
reuse_fixtures = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def file_of(parts: Any) -> bytes:
    return plan_bytes(parts.manifest, parts.sections, parts.weights)


def test_round_trip_from_bytes_and_from_a_file(tiny: Maker, tmp_path: Path) -> None:
    parts = tiny()
    data = file_of(parts)
    write_plan(tmp_path / "a.plan", parts.manifest, parts.sections, parts.weights)
    assert (tmp_path / "a.plan").read_bytes() == data
    for source in (data, bytearray(data), memoryview(data), tmp_path / "a.plan", str(tmp_path / "a.plan")):
        plan = read_plan(source)
        assert {name: bytes(body) for name, body in plan.sections.items() if name != "extents"} == parts.sections
        assert plan.manifest_json == json.loads(json.dumps(parts.manifest))
        np.testing.assert_array_equal(plan.weights["w"], parts.weights["w"])
        assert not plan.weights["w"].flags.writeable


def test_the_same_plan_gives_the_same_bytes(tiny: Maker) -> None:
    assert file_of(tiny()) == file_of(tiny())


def test_weights_are_a_safetensors_file_with_aligned_tensors(tiny: Maker, tmp_path: Path) -> None:
    deserialize: Any = import_module("safetensors").deserialize

    parts = tiny()
    parts.weights |= {
        "a": np.arange(5, dtype=np.int8),
        "b": np.ones((3, 2), np.float16),
        "empty": np.zeros((0, 4), np.float64),
        "flag": np.array([True, False]),
        "scalar": np.array(7, np.int64),
        "bf": np.arange(3).astype(ml_dtypes.bfloat16),
        "strided": np.arange(10, dtype=np.uint16)[::2],
    }
    write_plan(tmp_path / "a.plan", parts.manifest, parts.sections, parts.weights)
    data = (tmp_path / "a.plan").read_bytes()
    plan = read_plan(tmp_path / "a.plan")
    for key, array in parts.weights.items():
        np.testing.assert_array_equal(plan.weights[key], array)
        assert plan.weights[key].shape == array.shape
        assert plan.weights[key].ctypes.data % 64 == 0 or not array.size
    rows = {row[0]: row for row in json.loads(data[64 : 64 + struct.unpack_from("<Q", data, 24)[0]])}
    _, offset, size, _ = rows["weights"]
    stored = dict(deserialize(data[offset : offset + size]))
    for key, array in parts.weights.items():
        assert bytes(stored[key]["data"]) == array.tobytes()
        assert stored[key]["shape"] == list(array.shape)


def test_numbers_that_are_not_finite_survive(tiny: Maker) -> None:
    parts = tiny()
    parts.manifest["launches"][0]["args"][3] = {"float": float("-inf")}
    plan = read_plan(file_of(parts))
    assert plan.manifest.launches[0].args[3] == FloatArgument(float("-inf"))


def test_a_failed_save_leaves_nothing(tiny: Maker, tmp_path: Path) -> None:
    parts = tiny()
    (tmp_path / "a.plan").write_bytes(b"old")
    with pytest.raises(PlanError, match="a plan cannot hold elements"):
        write_plan(tmp_path / "a.plan", parts.manifest, parts.sections, parts.weights | {"c": np.ones(2, complex)})
    with pytest.raises(PlanError, match="reserved"):
        write_plan(tmp_path / "a.plan", parts.manifest, parts.sections | {"weights": b""}, parts.weights)
    assert (tmp_path / "a.plan").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.plan"]


@reuse_fixtures
@given(st.data())
def test_any_changed_byte_is_noticed(tiny: Maker, data: st.DataObject) -> None:
    changed = bytearray(file_of(tiny()))
    at = data.draw(st.integers(0, len(changed) - 1))
    changed[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(PlanError) as caught:
        read_plan(changed)
    assert "\n" not in str(caught.value)


@reuse_fixtures
@given(st.data())
def test_any_truncation_or_extension_is_noticed(tiny: Maker, data: st.DataObject) -> None:
    whole = file_of(tiny())
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(PlanError):
        read_plan(cut)
    with pytest.raises(PlanError):
        read_plan(whole + data.draw(st.binary(min_size=1, max_size=99)))


@given(st.binary(max_size=300))
def test_noise_is_no_plan(noise: bytes) -> None:
    for source in (noise, plan_file.MAGIC + noise):
        with pytest.raises(PlanError):
            read_plan(source)


def redigested(whole: bytes, replacements: dict[str, bytes]) -> bytes:
    """The file with other section bodies and right digests: what a hostile writer would make."""
    index_bytes = struct.unpack_from("<Q", whole, 24)[0]
    bodies = {row[0]: whole[row[1] : row[1] + row[2]] for row in json.loads(whole[64 : 64 + index_bytes])}
    bodies |= replacements
    rows: list[list[object]] = []
    out = b""
    reserved = 64 * (-(-(80 + 200 * len(bodies)) // 64)) - 64
    for name, body in bodies.items():
        out += bytes(-len(out) % 64)
        rows.append([name, 64 + reserved + len(out), len(body), hashlib.sha256(body).hexdigest()])
        out += body
    index = json.dumps(rows).encode().ljust(reserved)
    header = struct.pack("<8sQQQ32s", whole[:8], 1, 64 + reserved + len(out), reserved, hashlib.sha256(index).digest())
    return header + index + out


def test_redigesting_alone_changes_nothing(tiny: Maker) -> None:
    whole = file_of(tiny())
    assert read_plan(redigested(whole, {})).manifest == read_plan(whole).manifest


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["n", "arena", "main", "scale.o", "weights", "float32", "ptr"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def mutate(value: Any, rng: random.Random, new: Any) -> Any:
    """`value` with one place, somewhere in the tree, replaced by `new` or removed."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        copy: dict[str, Any] = dict(value)  # pyright: ignore[reportUnknownArgumentType]
        key = rng.choice(sorted(copy))
        if rng.random() < 0.1:
            del copy[key]
        else:
            copy[key] = mutate(copy[key], rng, new)
        return copy
    if isinstance(value, list) and value and rng.random() < 0.9:
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        at = rng.randrange(len(items))
        if rng.random() < 0.1:
            del items[at]
        else:
            items[at] = mutate(items[at], rng, new)
        return items
    return new


@settings(reuse_fixtures, max_examples=400)
@given(st.randoms(use_true_random=False), junk, st.integers(0, 9))
def test_a_redigested_manifest_is_refused_or_meaningful(tiny: Maker, rng: random.Random, new: Any, n: int) -> None:
    """Whatever the manifest says, loading and binding shapes end in a plan or in a one-line error of ours."""
    parts = tiny()
    manifest = mutate(parts.manifest, rng, new)
    data = redigested(file_of(parts), {"manifest": json.dumps(manifest).encode()})
    message = ""
    try:
        plan = read_plan(data)
        bound = bind_shapes(plan.manifest, [(n, 4)] * len(plan.manifest.inputs))
        message = "" if len(bound.launches) == len(plan.manifest.launches) else "launches\nlost"
    except MlirtError as error:
        message = str(error)
    assert "\n" not in message


@settings(reuse_fixtures, max_examples=200)
@given(st.data())
def test_a_redigested_weights_section_is_refused_or_within_bounds(tiny: Maker, data: st.DataObject) -> None:
    parts = tiny()
    whole = file_of(parts)
    plan = read_plan(whole)
    section = bytearray(b"".join(bytes(piece) for piece in plan_file.safetensors_section.pieces(parts.weights)))
    for _ in range(data.draw(st.integers(1, 3))):
        section[data.draw(st.integers(0, min(len(section), 120) - 1))] = data.draw(st.integers(0, 255))
    with suppress(PlanError):
        plan = read_plan(redigested(whole, {"weights": bytes(section)}))
        assert plan.weights["w"].nbytes >= 32


@pytest.mark.parametrize("text", [b"", b"[", b"[" * 100_000, b"null", b"[]", b"7" * 6000, b'"x"', b"\xff"])
def test_a_manifest_that_is_no_table(tiny: Maker, text: bytes) -> None:
    with pytest.raises(PlanError):
        read_plan(redigested(file_of(tiny()), {"manifest": text}))


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot open the plan file"):
        read_plan(tmp_path / "none.plan")
    with pytest.raises(PlanError, match="cannot open the plan file"):
        read_plan(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(PlanError, match="is empty"):
        read_plan(tmp_path / "empty")


def test_other_objects_are_no_plans() -> None:
    other: Any = None
    with pytest.raises(InvalidInputError, match="the path of a plan file or its bytes, but it is NoneType"):
        read_plan(other)


def test_a_place_where_no_file_can_be(tiny: Maker, tmp_path: Path) -> None:
    parts = tiny()
    for path, why in ((tmp_path, "Is a directory"), (tmp_path / "no" / "a.plan", "No such file or directory")):
        with pytest.raises(InvalidInputError) as caught:
            write_plan(path, parts.manifest, parts.sections, parts.weights)
        assert str(caught.value) == f"cannot write the plan file {path}: {why}"
    assert not list(tmp_path.iterdir())


def test_a_newer_format_is_named(tiny: Maker) -> None:
    parts = tiny()
    parts.manifest["format"] = 3
    with pytest.raises(PlanError, match="format version 3, this mlirt reads version 2; please rebuild"):
        file_of(parts)


def test_how_weights_are_stored_is_found_once_for_a_plan(tiny: Maker) -> None:
    """A build writes its plan to the cache, and a caller may save it, or a later build takes it from there."""
    parts = tiny()
    plan = make_plan(parts.manifest, parts.sections, parts.weights)
    with mock.patch.object(safetensors_section, "compact_form", wraps=safetensors_section.compact_form) as found:
        first, second = (b"".join(bytes(piece) for piece in plan.pieces()) for _ in range(2))
        assert found.call_count == len(plan.weights) > 0
        again = b"".join(bytes(piece) for piece in read_plan(first).pieces())
        assert found.call_count == len(plan.weights)
    assert first == second == again == file_of(parts)
