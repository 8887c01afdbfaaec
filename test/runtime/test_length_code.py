"""Instructions that follow lengths: what needs none is computed before, and each knows what it follows from."""

from collections.abc import Callable

import pytest

from mlirt.runtime.length_code import LengthCode, UnfitError


def test_what_follows_from_no_length_is_computed_at_once() -> None:
    code = LengthCode()
    six = code.apply("*", code.constant(2), code.constant(3))
    assert code.value_of(six) == 6
    code.natural(six)
    code.equal(six, code.constant(6))
    code.at_most(six, code.constant(7))
    assert len(code) == 0


def _a_negative_number(code: LengthCode) -> None:
    code.natural(code.constant(-1))


def _two_that_differ(code: LengthCode) -> None:
    code.equal(code.constant(1), code.constant(2))


def _too_much(code: LengthCode) -> None:
    code.at_most(code.constant(3), code.constant(2))


def _a_division_by_nothing(code: LengthCode) -> None:
    code.apply("//", code.constant(3), code.naught)


def _a_large_product(code: LengthCode) -> None:
    code.apply("*", code.constant(1 << 40), code.constant(1 << 40))


@pytest.mark.parametrize(
    "refused", [_a_negative_number, _two_that_differ, _too_much, _a_division_by_nothing, _a_large_product]
)
def test_what_never_holds_is_told_at_once(refused: Callable[[LengthCode], None]) -> None:
    with pytest.raises(UnfitError):
        refused(LengthCode())


def test_equal_operations_are_one_and_idle_ones_none() -> None:
    code = LengthCode()
    (n,) = code.open(1, 0)
    twice = code.scaled(n, 2)
    assert code.scaled(n, 2) == twice
    assert code.apply("+", n, code.naught) == code.scaled(n, 1) == code.apply("//", n, code.constant(1)) == n
    assert code.apply("-", n, code.naught) == code.apply("if", code.constant(-1), twice, n) == n
    code.equal(twice, twice)
    assert len(code) == 1


def test_each_instruction_knows_what_it_follows_from() -> None:
    code = LengthCode()
    n, m = code.open(2, 0)
    (address,) = code.open(1)
    code.natural(code.apply("+", n, code.scaled(m, 2)))
    code.word(0, code.scaled(n, 4))
    code.word(1, address, m)
    rows = code.instructions().tolist()
    causes = code.causes()
    assert [row[0] for row in rows] == [2, 0, 2, 9, 11, 11]
    assert causes == [0b10, 0b11, 0b01, 0b11, 0b01, 0b10]
