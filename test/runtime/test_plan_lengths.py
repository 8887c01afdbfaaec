"""Lengths that grow, followed by native code: it writes what binding the shapes would write, or goes no further."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_plan import compiled_sections, with_contracts

from mlirt.runtime.control_rows import rows_of
from mlirt.runtime.cpu_job import follower
from mlirt.runtime.cpu_table import TableLayout
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.object_linker import LinkedCode
from mlirt.runtime.plan_file import make_plan
from mlirt.runtime.plan_lengths import PlanLengths
from mlirt.runtime.shape_binding import ShapeBinder, ShapeBinding
from mlirt.runtime.worker_pool import LENGTHS

Maker = Callable[[], Any]
_CODE = LinkedCode({"main": memoryview(compiled_sections()["main"])}, [("main", LENGTHS)])
_FOLLOW = follower(_CODE.addresses["main", LENGTHS])
_FIRST = 4
wild = st.sampled_from(
    [16, 256, "n", ["-", "n", 2], ["//", 64, "n"], ["-", 64, "n"], ["%", "n", 5], ["*", "n", 2**28], -3]
)
bytes_of_all = st.sampled_from([["*", "n", 16], 4096, ["max", ["*", "n", 16], 300], ["+", ["*", "n", 32], 64]])
some_bytes = st.sampled_from([["*", "n", 8], "n", ["-", 64, "n"], ["//", 64, "n"], ["max", "n", 9], 16])
offset = st.sampled_from([0, 0, "n", ["%", "n", 5], ["*", 4, ["-", "n", 4]], ["//", 64, "n"]])
number = st.sampled_from([["*", "n", 4], "n", ["%", "n", 5], ["//", 64, "n"], ["*", "n", ["-", "n", 2]], 0])


def mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What fits as a rule, and now and then something else."""
    return st.integers(0, 15).flatmap(lambda draw: usual if draw else wild)


relation = st.sampled_from(["equal", "equal_or_one", "at_least", "multiple"])


class Follower:
    """The parameters of one plan, which follow its length."""

    def __init__(self, manifest: Manifest) -> None:
        self.binder = ShapeBinder(manifest)
        binding = self.binder.bind([(_FIRST, 4)])
        self.layout = TableLayout.of(manifest, binding, rows_of(binding.program, binding), is_shared=True)
        found = self.binder.lengths(self.layout.spots)
        self.bases = np.arange(1, len(manifest.buffers) + 1, dtype=np.int64) << 32
        self.kernels = np.zeros(len(manifest.kernels), np.int64)
        self.lengths: PlanLengths | None = found
        if found is None:
            return
        self.numbers = found.numbers.copy()
        owned = [(root, at) for root, at in enumerate(found.bases) if at >= 0]
        for root, at in owned:
            self.numbers[at] = self.bases[root]
        self.numbers[list(found.slots)] = 1 << 40
        self.parameters = self.filled(binding)

    def filled(self, binding: ShapeBinding) -> np.ndarray:
        """The parameters by the way of all shapes."""
        return self.layout.filled(binding, self.kernels, self.bases, 0, binding.rewritten)[1]

    def follow(self, n: int, changed: int | None = None) -> int:
        """Let the parameters follow; 0 where they do."""
        found = self.lengths
        assert found is not None
        self.numbers[list(found.given[0])] = n, 4
        code = found.lengths_code if changed is None else found.following(changed)
        where = self.numbers.ctypes.data, self.parameters.ctypes.data
        stopped = _FOLLOW(code.ctypes.data, len(code), *where)
        if not stopped:
            _FOLLOW(found.arrays_code.ctypes.data, len(found.arrays_code), *where)
        return stopped


def plain(parts: Any) -> Any:
    """z lies in the arena, from where it would have to be copied."""
    del parts.manifest["outputs"][1:]
    return parts


def manifest_of(parts: Any) -> Manifest:
    return make_plan(parts.manifest, parts.sections, parts.weights).manifest


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data())
def test_what_is_written_is_what_binding_writes(tiny: Maker, data: st.DataObject) -> None:
    parts = plain(tiny())
    buffers, made, kernels = (parts.manifest[key] for key in ("buffers", "launches", "kernels"))
    kernels[0]["args"][2] = data.draw(st.sampled_from(["i32", "i64"]))
    kernels[0]["written"] = data.draw(st.sampled_from([[1], []]))
    buffers[1]["bytes"] = data.draw(mostly(bytes_of_all))
    for source in (1, 5):
        view = {"bytes": data.draw(mostly(some_bytes)), "view_offset": data.draw(mostly(offset))}
        buffers.append({"kind": "arena", "view_of": source, **view})
    pointer = {"buffer": data.draw(st.sampled_from([1, 5, 6])), "offset": data.draw(mostly(offset))}
    made[0]["args"][1] = pointer | ({"bytes": data.draw(mostly(some_bytes))} if data.draw(st.booleans()) else {})
    made[0]["args"][2] = {"int": data.draw(mostly(number))}
    if data.draw(st.booleans()):
        needed = {"left": data.draw(number), "right": data.draw(number), "where": data.draw(wild)}
        parts.manifest["requirements"] = [{"layer": "a", "relation": data.draw(relation), "fault": "?", **needed}]
    if data.draw(st.booleans()):
        with_contracts(parts)
    try:
        one = Follower(manifest_of(parts))
    except ValueError:
        return  # it has no meaning for the first length
    if one.lengths is None:
        return
    for n in data.draw(st.lists(st.integers(1, 70), max_size=4)):
        if one.follow(n) == 0:
            np.testing.assert_array_equal(one.parameters, one.filled(one.binder.bind([(n, 4)])))


@pytest.mark.parametrize("has_contracts", [False, True])
def test_a_plain_plan_is_followed_from_length_to_length(tiny: Maker, has_contracts: bool) -> None:
    parts = plain(tiny())
    one = Follower(manifest_of(with_contracts(parts) if has_contracts else parts))
    assert one.follow(_FIRST) == 0
    for n in (5, 6, 900, 7):
        assert one.follow(n, changed=0b01) == 0
        np.testing.assert_array_equal(one.parameters, one.filled(one.binder.bind([(n, 4)])))


def test_nothing_but_a_change_is_followed(tiny: Maker) -> None:
    one = Follower(manifest_of(with_contracts(plain(tiny()))))
    assert one.lengths is not None
    assert len(one.lengths.following(0)) == 0
    assert 0 < len(one.lengths.following(0b01)) < len(one.lengths.lengths_code)


def test_a_launch_that_leaves_its_buffer_goes_no_further(tiny: Maker) -> None:
    """It fits four rows alone; what the contract says is what finds it out."""
    parts = plain(tiny())
    parts.manifest["launches"][0]["args"][2]["int"] = ["*", "n", "n"]
    assert Follower(manifest_of(with_contracts(parts))).follow(_FIRST) == 0
    assert Follower(manifest_of(with_contracts(parts))).follow(_FIRST + 1) > 0


def test_a_buffer_that_outgrows_its_place_goes_no_further(tiny: Maker) -> None:
    one = Follower(manifest_of(plain(tiny())))
    assert one.lengths is not None
    one.numbers[list(one.lengths.slots)] = 16 * 9
    assert [one.follow(n) == 0 for n in (8, 9, 10, 9)] == [True, True, False, True]


@pytest.mark.parametrize("shape", [(0, 4), (5, 3), (1 << 62, 4), (5, 0)])
def test_other_shapes_go_no_further(tiny: Maker, shape: tuple[int, int]) -> None:
    one = Follower(manifest_of(plain(tiny())))
    found = one.lengths
    assert found is not None
    one.numbers[list(found.given[0])] = shape
    code = found.lengths_code
    assert _FOLLOW(code.ctypes.data, len(code), one.numbers.ctypes.data, one.parameters.ctypes.data) > 0


def test_a_profile_is_kept(tiny: Maker) -> None:
    parts = plain(tiny())
    parts.manifest["profiles"] = [{"x": {"min": [2, 4], "opt": [4, 4], "max": [6, 4]}}]
    one = Follower(manifest_of(parts))
    assert [one.follow(n) == 0 for n in (1, 2, 6, 7)] == [False, True, True, False]


def _output_of_the_arena(manifest: dict[str, Any]) -> None:
    manifest["outputs"].append({"name": "z", "dtype": "float32", "shape": [8], "buffer": 4})


def _branch(manifest: dict[str, Any]) -> None:
    manifest["program"] = [0, {"if": {"buffer": 0, "offset": 0}, "then": [1], "else": []}, 2]


def _border(manifest: dict[str, Any]) -> None:
    manifest["buffers"][1] |= {"halo": "a"}


def _size(manifest: dict[str, Any]) -> None:
    manifest["sizes"] = ["k"]


@pytest.mark.parametrize("change", [_output_of_the_arena, _branch, _border, _size])
def test_what_needs_more_is_bound_shape_by_shape(tiny: Maker, change: Callable[[dict[str, Any]], None]) -> None:
    parts = plain(tiny())
    change(parts.manifest)
    assert Follower(manifest_of(parts)).lengths is None
