"""Sizes that only the run tells follow the formulas of sizes that are known."""

from mlirt.runtime.program import Branch, Place, SizeCheck, Step, launches, never_run
from mlirt.runtime.size_guesses import refined

HERE = Place(0, 0)


def iteration(number: int) -> Branch:
    """The iteration of a loop: size k is one more than the one before, or the same; launch 2 k + 1 or 2 k goes with
    it.
    """
    before, name = "n" if number == 0 else f"s{number - 1}", f"s{number}"
    grown = (SizeCheck(name, None, ("+", before, 1)), 2 * number + 1)
    return Branch(HERE, grown, (SizeCheck(name, None, before), 2 * number))


ITERATIONS: tuple[Step, ...] = tuple(iteration(number) for number in range(4))
NOTHING = {f"s{number}": 1 for number in range(4)}


def test_at_first_all_iterations_take_place() -> None:
    assert refined(ITERATIONS, {"n": 5, **NOTHING}) == {"n": 5, "s0": 6, "s1": 7, "s2": 8, "s3": 9}


def test_behind_the_last_iteration_there_is_none() -> None:
    """The run has told that the third iteration was none."""
    guess = {"n": 5, "s0": 6, "s1": 7, "s2": 7, "s3": 9}
    assert refined(ITERATIONS, guess, "s2") == {"n": 5, "s0": 6, "s1": 7, "s2": 7, "s3": 7}


def test_what_agrees_stays() -> None:
    guess = {"n": 5, "s0": 6, "s1": 6, "s2": 7, "s3": 7}
    assert refined(ITERATIONS, guess) == guess


def test_the_size_that_the_run_has_told_decides_between_two() -> None:
    """Each branch has two sizes, of which the run tells one at a time."""
    both = (SizeCheck("a", None, 3), SizeCheck("b", None, 4), 0)
    other = (SizeCheck("a", None, 5), SizeCheck("b", None, 6), 1)
    program = (Branch(HERE, both, other),)
    assert refined(program, {"a": 5, "b": 4}, "a") == {"a": 5, "b": 6}
    assert refined(program, {"a": 3, "b": 6}, "b") == {"a": 5, "b": 6}


def test_launches_behind_a_wrong_formula_never_run() -> None:
    values = {"n": 5, "s0": 6, "s1": 7, "s2": 7, "s3": 7}
    assert never_run(ITERATIONS, values) == ({0, 2, 5, 7}, False)
    values["s2"] = 99
    assert never_run(ITERATIONS, values) == ({0, 2, 4, 5, 6, 7}, True)
    assert set(launches(ITERATIONS)) == set(range(8))
