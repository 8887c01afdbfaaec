"""Contracts of kernels in a plan: launches that could leave their buffers are refused when shapes are bound."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime.contract_checks import contract_record, contracts_section, sealed_contracts
from mlirt.runtime.engine import load
from mlirt.runtime.extents import Seals, read_contracts
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.plan_file import make_plan, plan_bytes, read_plan
from mlirt.runtime.shape_binding import bind_shapes

Maker = Callable[[], Any]

# Of both kernels of the tiny plan: elements 0 to count - 1 of both pointers.
_NUMBERS = [["arg", 2], ["const", -1], ["+", 0, 1]]
_EXTENTS = [[0, None, 4, 3, 2, 2], [1, None, 4, 3, 2, 2]]


def with_contracts(parts: Any) -> Any:
    """The tiny plan with what its kernels touch."""
    kernels = {
        kernel["symbol"]: [
            contract_record(kernel)
            | {"signed": [], "numbers": [*_NUMBERS, ["const", 0]], "extents": _EXTENTS, "unproved": []}
        ]
        for kernel in parts.manifest["kernels"]
    }
    parts.sections["extents"] = contracts_section(kernels, [])
    return parts


def manifest_of(parts: Any) -> Manifest:
    return make_plan(parts.manifest, parts.sections, parts.weights).manifest


def put(record: Any, place: tuple[Any, ...], value: object) -> None:
    """Change a field."""
    for key in place[:-1]:
        record = record[key]
    record[place[-1]] = value


def integer(parts: Any, launch: int) -> dict[str, Any]:
    """The record of the number of elements that a launch passes."""
    return parts.manifest["launches"][launch]["args"][2]


def test_launches_that_fit_are_bound(tiny: Maker) -> None:
    parts = with_contracts(tiny())
    for n in (0, 1, 7):
        bind_shapes(manifest_of(parts), [(n, 4)])
    x = np.ones((3, 4), np.float32)
    want = load(plan_bytes(tiny().manifest, tiny().sections, tiny().weights)).run({"x": x})
    found = load(plan_bytes(parts.manifest, parts.sections, parts.weights)).run({"x": x})
    for name, expected in want.items():
        np.testing.assert_array_equal(found[name], expected)


@pytest.mark.parametrize("formula", [4095, ["+", ["*", "n", 4], 1], ["*", "n", 5], 2**40])
def test_a_number_that_does_not_fit_the_buffers_is_refused(tiny: Maker, formula: object) -> None:
    parts = with_contracts(tiny())
    integer(parts, 0)["int"] = formula
    layer = parts.manifest["launches"][0]["layer"]
    engine = load(plan_bytes(parts.manifest, parts.sections, parts.weights))
    with pytest.raises(PlanError, match=f"layer {layer}: its kernel would touch bytes 0 to [0-9]+ of a buffer of 48"):
        engine.run({"x": np.ones((3, 4), np.float32)})


@pytest.mark.parametrize(
    ("formula", "fault"),
    [(-1, "argument 2 is -1, which must not be negative"), (2**62, "its numbers are too large")],
)
def test_numbers_that_make_no_sense(tiny: Maker, formula: object, fault: str) -> None:
    parts = with_contracts(tiny())
    integer(parts, 0)["int"] = formula
    with pytest.raises(PlanError, match=fault):
        bind_shapes(manifest_of(parts), [(3, 4)])


def test_a_pointer_may_not_move_a_launch_out(tiny: Maker) -> None:
    parts = with_contracts(tiny())
    parts.manifest["launches"][0]["args"][0]["offset"] = 4
    with pytest.raises(PlanError, match="would touch bytes 4 to 52 of a buffer of 48 bytes"):
        bind_shapes(manifest_of(parts), [(3, 4)])


def test_another_thread_may_forget_what_was_found(tiny: Maker) -> None:
    """Contexts of several threads bind shapes with the same contracts."""

    class Forgetful(dict[Any, Any]):
        def __setitem__(self, key: object, value: object) -> None:
            super().__setitem__(key, value)
            self.clear()

    record = json.loads(with_contracts(tiny()).sections["extents"])["kernels"]["scale"][0]
    contract = read_contracts(contracts_section({"scale": [record]}, [])).kernels["scale"][0]
    forgetful = replace(contract, _known=Forgetful())
    for count in (5, 5, 7):
        assert forgetful.extents_of([None, None, count, 1.0, 1.0], (1, 1, 1)) == {0: (0, 4 * count), 1: (0, 4 * count)}


def test_conditions_guards_and_memory_of_its_own(tiny: Maker) -> None:
    parts = with_contracts(tiny())
    record = json.loads(parts.sections["extents"])["kernels"]["scale"][0]
    contract = read_contracts(contracts_section({"scale": [record]}, [])).kernels["scale"][0]
    args = [None, None, 5, 1.0, 1.0]
    assert contract.extents_of(args, (1, 1, 1)) == {0: (0, 20), 1: (0, 20)}
    for changed, found in [
        ({"conditions": [[1]]}, "its numbers contradict each other"),
        ({"conditions": [[1, 1]]}, {0: (0, 20), 1: (0, 20)}),
        ({"extents": [[None, 19, 4, 3, 2]]}, "it reaches bytes 0 to 20 of its own memory of 19 bytes"),
        ({"extents": [[0, None, 4, 3, 2, 1]]}, {}),
        ({"numbers": [["grid", 1], ["const", 0], ["//", 0, 1], ["const", 0]]}, {0: (0, 8), 1: (0, 8)}),
    ]:
        other = read_contracts(contracts_section({"": [{**record, **changed}]}, [])).kernels[""][0]
        assert other.extents_of(args, (1, 1, 1)) == found
    empty = replace(contract, _known={}).extents_of([None, None, 0, 1.0, 1.0], (1, 1, 1))
    assert empty == {}


@pytest.mark.parametrize(
    ("place", "value", "fault"),
    [
        (("kernels", 0, "symbol"), "reverse", "its code has another signature"),
        (("kernels", 0, "object"), "reverse.o", "its code is in another section"),
        (("kernels", 0, "args"), ["ptr", "ptr", "i64", "f32", "f64"], "its code has another signature"),
        (("kernels", 0, "shared_bytes"), 64, "its code has another signature"),
    ],
)
def test_a_kernel_is_the_one_that_its_contract_is_of(
    tiny: Maker, place: tuple[Any, ...], value: object, fault: str
) -> None:
    parts = with_contracts(tiny())
    put(parts.manifest, place, value)
    with pytest.raises(PlanError, match=fault):
        manifest_of(parts)


def test_a_file_without_contracts_is_refused(tiny: Maker) -> None:
    parts = with_contracts(tiny())
    data = plan_bytes(parts.manifest, parts.sections, parts.weights)
    assert data.count(b'["extents"') == 1
    import hashlib

    renamed = bytearray(data.replace(b'["extents"', b'["extentz"'))
    size = int.from_bytes(renamed[24:32], "little")
    renamed[32:64] = hashlib.sha256(renamed[:32] + renamed[64 : 64 + size]).digest()
    with pytest.raises(PlanError, match="does not say what its kernels touch"):
        read_plan(bytes(renamed))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("launches", 0, "args", 2, "int"), 3),
        (("launches", 0, "args", 0, "offset"), 4),
        (("buffers", 1, "bytes"), 4),
        (("launches", 0, "grid"), [2, 1, 1]),
        (("launches", 0, "args", 3, "float"), 9.0),
    ],
)
def test_launches_of_which_nothing_is_proved_are_sealed(tiny: Maker, place: tuple[Any, ...], value: object) -> None:
    parts = tiny()
    parts.sections["extents"] = sealed_contracts(parts.manifest)
    manifest_of(parts)
    put(parts.manifest, place, value)
    with pytest.raises(PlanError, match=r"launches\[0\] .*: its numbers are not those that it was made with"):
        manifest_of(parts)


@pytest.mark.parametrize("program", [[1], [0], [1, {"size": "k", "value": 1}], [{"size": "k", "value": 2}, 1]])
def test_a_seal_covers_what_sizes_become_as_a_program_runs(tiny: Maker, program: list[object]) -> None:
    manifest = tiny().manifest | {"program": [{"size": "k", "value": 1}, 1]}
    assert Seals(manifest).of(0) == Seals(manifest).of(0)
    assert Seals(manifest).of(0) != Seals(manifest | {"program": program}).of(0)


NONSENSE: list[tuple[str, object]] = [
    ("numbers", [["+", 0, 0]]),
    ("numbers", [["arg", 0]]),
    ("numbers", [["arg", 9]]),
    ("numbers", [["exec", 1]]),
    ("numbers", [["const", 2**62]]),
    ("conditions", [[9]]),
    ("conditions", [[]]),
    ("extents", [[2, None, 4, 0, 0]]),
    ("extents", [[0, 8, 4, 0, 0]]),
    ("extents", [[0, None, 4, 0]]),
    ("unproved", [7]),
]


@pytest.mark.parametrize(("key", "value"), NONSENSE)
def test_a_contract_that_makes_no_sense_is_refused(tiny: Maker, key: str, value: object) -> None:
    record = {**contract_record(tiny().manifest["kernels"][0]), "numbers": [["arg", 2]], key: value}
    with pytest.raises(PlanError, match=r"extents\['scale'\]"):
        read_contracts(contracts_section({"scale": [record]}, []))
    with pytest.raises(PlanError, match="is no JSON"):
        read_contracts(b"{")


SIGN_AND_EXPONENT = {"buffer": 0, "offset": 3}
"""A byte of the input, which is 0 where its first number is."""


@pytest.mark.parametrize(
    ("program", "zeros", "ones"),
    [
        ([0, {"if": SIGN_AND_EXPONENT, "then": [1], "else": []}, 2], None, "its kernel would touch bytes 0 to 60"),
        ([0, {"while": SIGN_AND_EXPONENT, "before": [], "body": [1]}, 2], None, "its kernel would touch bytes 0 to 60"),
        (
            [0, {"require": SIGN_AND_EXPONENT, "message": "x begins with 0"}, 1, 2],
            "x begins with 0",
            "its kernel would touch bytes 0 to 60",
        ),
    ],
)
def test_a_launch_that_a_run_does_not_come_to_is_in_nobodys_way(
    tiny: Maker, program: list[Any], zeros: str | None, ones: str
) -> None:
    """The second launch would touch three elements more than there are."""
    parts = with_contracts(tiny())
    integer(parts, 1)["int"] = ["+", ["*", "n", 4], 3]
    parts.manifest["program"] = program
    engine = load(plan_bytes(parts.manifest, parts.sections, parts.weights))
    x = np.zeros((3, 4), np.float32)
    if zeros is None:
        engine.run({"x": x})
        engine.context.run_timed({"x": x})
    else:
        with pytest.raises(InvalidInputError, match=zeros):
            engine.run({"x": x})
    for run in (engine.run, engine.context.run_timed):
        with pytest.raises(InvalidInputError, match=ones):
            run({"x": x + 1})


def test_a_launch_that_every_run_comes_to_is_refused_before_it(tiny: Maker) -> None:
    parts = with_contracts(tiny())
    integer(parts, 1)["int"] = ["+", ["*", "n", 4], 3]
    choice: dict[str, object] = {"if": SIGN_AND_EXPONENT, "then": [], "else": []}
    parts.manifest["program"] = [choice, 0, 1, {"require": SIGN_AND_EXPONENT, "message": "x begins with 0"}, 2]
    with pytest.raises(PlanError, match="its kernel would touch bytes 0 to 60 of a buffer of 48"):
        bind_shapes(manifest_of(parts), [(3, 4)])
