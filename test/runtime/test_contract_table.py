"""Contracts of all launches as one table: what each contract says by itself, with each distinct operation once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from growth_networks import dynamic_images
from hypothesis import assume, given
from hypothesis import strategies as st

import mlirt
from mlirt.runtime import contract_table, extents
from mlirt.runtime.contract_table import ContractTable, NotTabledError, Terms
from mlirt.runtime.engine import Engine
from mlirt.runtime.extents import Contract, read_contracts
from mlirt.runtime.launch_proofs import LaunchProofs
from mlirt.runtime.plan_formulas import PlanFormulas
from mlirt.runtime.shape_binding import ShapeBinder

_ARGS = ["ptr", "ptr", "i64", "i64", "i32"]
_INTEGERS = (2, 3, 4)


def contract_of(**parts: object) -> Contract:
    """A contract of two pointers and three integers."""
    record: dict[str, object] = {
        **{"objects": [], "args": _ARGS, "block": [1, 1, 1], "shared_bytes": 0, "cluster": 1, "signed": [2]},
        **{"constants": [], "numbers": [["const", 0]], "conditions": [], "extents": [], "unproved": []},
        **parts,
    }
    section = json.dumps({"kernels": {"k": [record]}, "sealed": []}).encode()
    return read_contracts(section).kernels["k"][0]


@st.composite
def contracts(draw: st.DrawFn) -> Contract:
    numbers: list[list[object]] = [["const", 0], ["arg", 2], ["arg", 3], ["arg", 4]]
    for _ in range(draw(st.integers(0, 12))):
        operation = draw(st.sampled_from(["const", "grid", "+", "*", "//", "%", "max", "min", "if"]))
        if operation in ("const", "grid"):
            numbers.append([operation, draw(st.integers(-9, 9) if operation == "const" else st.integers(0, 2))])
        else:
            operands = st.integers(0, len(numbers) - 1)
            numbers.append([operation, *(draw(operands) for _ in range(3 if operation == "if" else 2))])
    some = st.integers(0, len(numbers) - 1)
    extent = st.tuples(st.sampled_from([0, 1]), st.none(), st.sampled_from([1, 4]), some, some) | st.tuples(
        st.none(), st.integers(0, 64), st.sampled_from([1, 4]), some, some
    )
    guards = st.lists(some, max_size=2)
    return contract_of(
        numbers=numbers,
        constants=draw(st.sampled_from([[], [[3, 2]], [[4, -1]]])),
        conditions=[[draw(some), *draw(guards)] for _ in range(draw(st.integers(0, 2)))],
        extents=[[*draw(extent), *draw(guards)] for _ in range(draw(st.integers(0, 3)))],
    )


def found_by(table: ContractTable, terms: Terms, formulas: Sequence[int]) -> dict[int, tuple[int, int]] | None:
    """What the table says of the bytes of each pointer; None where the contract is not kept."""
    values = table.evaluated(formulas)
    if values is None or any(values[number] < 0 for number in terms.natural):
        return None
    found: dict[int, tuple[int, int]] = {}
    for one in terms.touched:
        low, high = int(values[one.low]), int(values[one.high])
        if low <= high and values[one.guard] >= 0:
            start, end = low * one.width, (high + 1) * one.width
            before = found.get(one.place, (start, end))
            found[one.place] = min(start, before[0]), max(end, before[1])
    return found


@given(contracts(), st.tuples(*[st.integers(-3, 9)] * 3), st.sets(st.sampled_from(_INTEGERS)))
def test_the_same_as_the_contract_alone(contract: Contract, integers: tuple[int, ...], symbols: set[int]) -> None:
    """`symbols`: the integers that are formulas; of the others the value is known when the table is made."""
    expected = contract.extents_of([None, None, *integers], (1, 1, 1))
    table = ContractTable()
    numbers = {
        place: table.formula(place) if place in symbols else table.constant(value)
        for place, value in zip(_INTEGERS, integers, strict=True)
    }
    try:
        found = found_by(table, table.terms(contract, numbers), [0, 0, *integers])
    except NotTabledError as error:
        assume("very large" not in str(error))
        found = None
    assert found == (None if isinstance(expected, str) else expected)


def test_numbers_of_many_bits_are_refused_before_they_grow() -> None:
    squares = [["*", i, i] for i in range(3, 60)]
    contract = contract_of(numbers=[["const", 0], ["const", 0], ["const", 0], ["arg", 3], *squares])
    table = ContractTable()
    with pytest.raises(NotTabledError, match="may become very large"):
        table.terms(contract, {place: table.formula(place) for place in _INTEGERS})
    with pytest.raises(NotTabledError, match="too large"):
        table.terms(contract, {place: table.constant(9) for place in _INTEGERS})
    assert len(table) == 0
    table.terms(contract_of(numbers=[["arg", 3], ["*", 0, 0]]), {place: table.formula(place) for place in _INTEGERS})
    assert len(table) == 1
    assert table.evaluated([2**32] * 5) is None


@pytest.mark.parametrize("value", [2**61, 2**62, 2**63, 2**64])
def test_a_number_that_the_machine_does_not_hold_proves_nothing(value: int) -> None:
    table = ContractTable()
    table.apply("+", table.formula(0), table.formula(1))
    found = table.evaluated([value - 5, 5])
    assert (found is None) == (value >= 2**62)
    assert table.evaluated([5 - value, -5]) is None or value < 2**62


def _engine(layers: int, **options: Any) -> Engine:
    engine = mlirt.compile(dynamic_images(layers), target="cpu", **options)
    assert isinstance(engine, Engine)
    return engine


def test_more_launches_need_no_more_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Binding a shape evaluates what is distinct, and no contract by itself."""
    made: list[ContractTable] = []
    alone: list[int] = []
    plain, plain_run = ContractTable.evaluated, getattr(extents, "_run")

    def counted(table: ContractTable, formulas: Sequence[int]) -> np.ndarray | None:
        made.append(table)
        return plain(table, formulas)

    def run(*arguments: Any) -> Any:
        alone.append(1)
        return plain_run(*arguments)

    operations: list[int] = []
    for layers in (10, 40):
        manifest = _engine(layers).plan.manifest
        binder = ShapeBinder(manifest)
        with monkeypatch.context() as patch:
            patch.setattr(contract_table.ContractTable, "evaluated", counted)
            patch.setattr(extents, "_run", run)
            binder.bind([(1, 4, 9, 8)])
            binder.bind([(2, 4, 12, 8)])
        assert len(made) == 2
        assert not alone
        operations.append(len(made[0]))
        in_contracts = sum(len(one.numbers) for alike in manifest.contracts.values() for one in alike)
        assert operations[-1] < in_contracts
        made.clear()
    assert operations[0] == operations[1]


def test_what_has_no_symbols_is_looked_at_once() -> None:
    manifest = _engine(5, input_shapes={"x": (1, 4, 8, 8)}).plan.manifest
    formulas = PlanFormulas(manifest)
    proofs: LaunchProofs = formulas.proofs
    assert len(proofs.table) == 0
