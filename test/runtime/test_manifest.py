"""Every rule of the manifest has a plan that breaks it, and a message that names the place."""

from collections.abc import Callable
from typing import Any

import pytest

from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime.bound_launch import Address
from mlirt.runtime.plan_file import make_plan
from mlirt.runtime.shape_binding import bind_shapes

Maker = Callable[[], Any]


def set_at(tree: Any, path: str, value: object) -> None:
    *parents, last = path.split(".")
    for key in parents:
        tree = tree[int(key) if key.isdigit() else key]
    tree[int(last) if last.isdigit() else last] = value


def length(relation: str, left: object, right: object, where: object = 1) -> dict[str, object]:
    """A requirement on lengths of the layer `join`."""
    fault = "lengths {left} and {right}"
    return {"layer": "join", "relation": relation, "left": left, "right": right, "where": where, "fault": fault}


BROKEN: list[tuple[str, object, str]] = [
    ("inputs.0.counts_runs", True, "the number of a run is one int64"),
    ("outputs.0.counts_runs", True, "counts_runs"),
    ("colour", 1, "plan.colour: is no field"),
    ("name", None, "plan.name: is missing"),
    ("target.kind", "tpu", "target.kind: expected 'cpu' or 'cuda', got 'tpu'"),
    ("target.features", "avx2", "target.features: expected a list"),
    ("symbols.0.axis", 1, "axis 1 of input 'x' is not the symbol 'n'"),
    ("symbols.0.input", 1, "symbols[0].input: 1 is no index of the 1 inputs"),
    ("inputs.0.dtype", "float31", "inputs[0].dtype: unknown data type"),
    ("inputs.0.shape", ["m", 4], "inputs[0].shape: unknown symbol 'm'"),
    ("inputs.0.buffer", 1, "inputs[0].buffer: buffer 1 is no input buffer"),
    ("inputs.0.buffer", 99, "inputs[0].buffer: 99 is no index of the 5 buffers"),
    ("outputs.1.name", "y", "plan.outputs: two of them have one name"),
    ("buffers.0.kind", "heap", "buffers[0].kind: expected 'arena'"),
    ("buffers.1.bytes", ["/", "n", 2], "buffers[1].bytes: a formula is"),
    ("buffers.1.last", 0, "launches[1] (turn) uses buffer 1 outside of its lifetime [0, 0]"),
    ("buffers.4.last", -1, "buffers[4].last: expected a whole number"),
    ("buffers.1.align", 48, "buffers[1].align: 48 is no power of two"),
    ("buffers.3.weight", "v", "buffers[3].weight: there is no weight 'v'"),
    ("buffers.3.bytes", 33, "buffers[3].bytes: weight 'w' has 32 bytes"),
    ("buffers.4.view_of", 4, "view_of: the views lead in a circle"),
    ("kernels.0.object", "nowhere", "kernels[0].object: there is no section 'nowhere'"),
    ("kernels.0.args.0", "i128", "kernels[0].args: expected types of ptr"),
    ("kernels.0.block", [64, 64, 1], "kernels[0].block: expected three sizes"),
    ("launches.0.kernel", 2, "launches[0].kernel: 2 is no index of the 2 kernels"),
    ("launches.0.args", [], "launches[0].args: kernel 'scale' takes 5 arguments, got 0"),
    ("launches.0.args.0", {"int": 3}, "launches[0].args[0].int: is no field"),
    ("launches.0.args.2", {"buffer": 0}, "launches[0].args[2].buffer: is no field"),
    ("launches.0.args.3", {"float": "many"}, "launches[0].args[3].float: expected a number"),
    ("launches.0.serial", 1, "launches[0].serial: expected true or false"),
    ("requirements", [{"layer": "join", "relation": "equal", "left": "n"}], "requirements[0].right: is missing"),
    ("requirements", [length("equal", "n", "m")], "requirements[0].right: unknown symbol 'm'"),
    ("requirements", [length("less", "n", 1)], "requirements[0].relation: 'less' is none of equal, equal_or_one"),
    ("program", [length("equal", "n", "m")], "program[0].right: unknown symbol 'm'"),
    ("inputs.0.needed_by", ["join"], "inputs[0].needed_by: expected 2 layers, got 1"),
    ("main", "nowhere", "plan.main: there is no section 'nowhere'"),
    ("layers", [3], "layers[0]: expected an object"),
    ("profiles", [{"x": {"min": [1, 4], "opt": [9, 4], "max": [8, 4]}}], "min <= opt <= max"),
    ("profiles", [{"x": {"min": [1], "opt": [2], "max": [8]}}], "expected 2 dimensions"),
    ("profiles", [{"q": {}}], "profiles[0].q: is no field"),
]


@pytest.mark.parametrize(("path", "value", "message"), BROKEN)
def test_what_breaks_a_rule_is_refused(tiny: Maker, path: str, value: object, message: str) -> None:
    parts = tiny()
    set_at(parts.manifest, path, value)
    with pytest.raises(PlanError) as caught:
        make_plan(parts.manifest, parts.sections, parts.weights)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "launches.0.args.0",
            {"buffer": 0, "offset": 33},
            "launch 0 (double), argument 0: reaches beyond the 32 bytes",
        ),
        ("launches.0.args.0", {"buffer": 0, "offset": 1, "bytes": ["*", "n", 16]}, "reaches beyond the 32 bytes"),
        ("launches.0.args.0", {"buffer": 0, "offset": ["-", 0, "n"]}, "offset is -2"),
        ("buffers.1.bytes", ["-", "n", 3], "size of buffer 1 is -1"),
        ("buffers.1.bytes", ["//", "n", ["-", "n", 2]], "division by zero"),
        ("buffers.2.bytes", ["*", "n", 99], "buffer of 'y' has 198 bytes, its tensor 32"),
        ("buffers.4.bytes", 31, "buffer of 'z' has 31 bytes, its tensor 32"),
        ("outputs.0.shape", ["n", ["-", 0, "n"]], "a dimension of 'y' is -2"),
        ("launches.0.args.2", {"int": ["*", ["*", "n", 2**61], 8]}, "beyond 2^62"),
    ],
)
def test_what_makes_no_sense_for_a_shape_is_refused(tiny: Maker, path: str, value: object, message: str) -> None:
    parts = tiny()
    set_at(parts.manifest, path, value)
    plan = make_plan(parts.manifest, parts.sections, parts.weights)
    with pytest.raises(PlanError) as caught:
        bind_shapes(plan.manifest, [(2, 4)])
    assert message in str(caught.value)


def test_lengths_that_must_be_equal_are_checked_for_each_shape(tiny: Maker) -> None:
    parts = tiny()
    parts.manifest["requirements"] = [length("equal", "n", ["*", 2, ["//", "n", 2]])]
    manifest = make_plan(parts.manifest, parts.sections, parts.weights).manifest
    assert bind_shapes(manifest, [(4, 4)]).values == {"n": 4}
    with pytest.raises(InvalidInputError, match=r"layer join: lengths 3 and 2 \(n and 2\*\(n//2\)\).* x=\(3, 4\)"):
        bind_shapes(manifest, [(3, 4)])
    set_at(parts.manifest, "requirements.0.right", ["//", 4, "n"])
    with pytest.raises(PlanError, match=r"layer join has no meaning for .*division by zero"):
        bind_shapes(make_plan(parts.manifest, parts.sections, parts.weights).manifest, [(0, 4)])


@pytest.mark.parametrize(
    ("requirement", "rows"),
    [
        (length("equal", "n", 3), {3: True, 2: False}),
        (length("equal_or_one", "n", 3), {1: True, 3: True, 0: False, 2: False, 4: False}),
        (length("equal_or_one", "n", ["broadcast", "n", 4]), {1: True, 4: True}),
        (length("at_least", "n", 3), {3: True, 4: True, 2: False}),
        (length("at_least", "n", 3, "n"), {0: True, 2: False}),
        (length("multiple", "n", 3), {0: True, 3: True, 6: True, 4: False}),
        (length("multiple", "n", ["-", "n", "n"]), {0: True, 3: False}),
    ],
)
def test_each_relation_between_lengths(tiny: Maker, requirement: dict[str, object], rows: dict[int, bool]) -> None:
    parts = tiny()
    parts.manifest["requirements"] = [requirement]
    manifest = make_plan(parts.manifest, parts.sections, parts.weights).manifest
    for count, holds in rows.items():
        if holds:
            assert bind_shapes(manifest, [(count, 4)]).values == {"n": count}
        else:
            with pytest.raises(InvalidInputError, match=rf"layer join: lengths {count} and .* x=\({count}, 4\); give"):
                bind_shapes(manifest, [(count, 4)])


def test_the_layer_that_needs_a_length_of_an_input_is_named(tiny: Maker) -> None:
    parts = tiny()
    set_at(parts.manifest, "inputs.0.needed_by", ["", "join"])
    manifest = make_plan(parts.manifest, parts.sections, parts.weights).manifest
    with pytest.raises(InvalidInputError, match="dimension 1 must be 4, not 5, as layer join needs it"):
        bind_shapes(manifest, [(2, 5)])


def test_no_place_in_a_buffer_without_bytes_is_needed(tiny: Maker) -> None:
    """The second column of no rows has no address; the kernel is given one inside of the buffer."""
    parts = tiny()
    set_at(parts.manifest, "launches.0.args.0", {"buffer": 0, "offset": 8})
    parts.manifest["buffers"].append({"kind": "arena", "bytes": 0, "view_of": 4, "view_offset": 25})
    manifest = make_plan(parts.manifest, parts.sections, parts.weights).manifest
    assert bind_shapes(manifest, [(0, 4)]).launches[0].args[0] == Address(0, 0)
    assert bind_shapes(manifest, [(2, 4)]).launches[0].args[0] == Address(0, 8)
    set_at(parts.manifest, "kernels.0.written", [])
    set_at(parts.manifest, "launches.0.args.0", {"buffer": 0, "offset": 0, "bytes": 1})
    with pytest.raises(PlanError, match="reaches beyond the 0 bytes"):
        bind_shapes(make_plan(parts.manifest, parts.sections, parts.weights).manifest, [(0, 4)])


def test_a_launch_that_writes_nothing_has_no_blocks(tiny: Maker) -> None:
    """Nor does it matter where in its operands it would begin."""
    parts = tiny()
    set_at(parts.manifest, "kernels.0.written", [1])
    set_at(parts.manifest, "launches.0.args.0", {"buffer": 3, "offset": 99})
    manifest = make_plan(parts.manifest, parts.sections, parts.weights).manifest
    idle = bind_shapes(manifest, [(0, 4)]).launches[0]
    assert (idle.args[0], idle.grid) == (Address(3, 0), (0, 0, 0))
    with pytest.raises(PlanError, match="reaches beyond the 32 bytes"):
        bind_shapes(manifest, [(2, 4)])


def test_given_offsets_are_used_and_verified(tiny: Maker) -> None:
    parts = tiny()
    buffers = parts.manifest["buffers"]
    buffers[1]["offset"], buffers[4]["offset"] = 512, ["*", "n", 0]
    assert bind_shapes(make_plan(parts.manifest, parts.sections, parts.weights).manifest, [(2, 4)]).offsets == {
        1: 512,
        4: 0,
    }
    buffers[1]["offset"], buffers[4]["offset"], buffers[4]["first"] = 0, 0, 1
    with pytest.raises(PlanError, match="overlap"):
        bind_shapes(make_plan(parts.manifest, parts.sections, parts.weights).manifest, [(2, 4)])


def test_a_view_beyond_its_buffer_is_refused(tiny: Maker) -> None:
    parts = tiny()
    parts.manifest["buffers"].append({"kind": "arena", "bytes": 8, "view_of": 4, "view_offset": 25})
    with pytest.raises(PlanError, match="buffer 5 reaches beyond buffer 4"):
        bind_shapes(make_plan(parts.manifest, parts.sections, parts.weights).manifest, [(2, 4)])


BROKEN_MAPS: list[tuple[dict[str, object], str]] = [
    ({"element": "complex"}, "element: 'complex' is no element"),
    ({"swizzle": 48}, "swizzle: expected one of"),
    ({"element": "float16", "tf32": True}, "tf32: only float32 is rounded, not float16"),
    ({"tf32": 1}, "tf32: expected true or false"),
    ({"steps": [4]}, "steps: 1 steps for 2 sizes"),
    ({"box": [8]}, "box: 1 lengths do not fit 2 dimensions"),
    ({"box": [8, 5000]}, "box: expected whole numbers in [1, 1024]"),
    ({"buffer": 77}, "buffer: 77 is no index"),
    ({"lower": [0]}, "stride: a window over 2 dimensions has 0 strides"),
    ({"colour": 1}, "colour: is no field"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN_MAPS)
def test_what_breaks_a_rule_of_maps_is_refused(tiny: Maker, change: dict[str, object], message: str) -> None:
    parts = tiny()
    fine = {"buffer": 0, "element": "float32", "sizes": ["n", 4], "steps": [16, 4], "box": [8, 4]}
    parts.manifest["kernels"][1]["args"][0] = "map"
    parts.manifest["launches"][1]["args"][0] = {"map": {**fine, **change}}
    with pytest.raises(PlanError) as caught:
        make_plan(parts.manifest, parts.sections, parts.weights)
    assert "launches[1].args[0].map." in str(caught.value)
    assert message in str(caught.value)
