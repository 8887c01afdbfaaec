"""The native code that follows lengths: each instruction does what its formula says, or nothing goes on."""

import ctypes

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from mlirt.builder.spmd_main import main_object
from mlirt.runtime.cpu_job import follower
from mlirt.runtime.expressions import LIMIT, OPERATORS, ExpressionError
from mlirt.runtime.llvm_binding import llvm
from mlirt.runtime.object_linker import LinkedCode
from mlirt.runtime.worker_pool import LENGTHS

_CODE = LinkedCode({"main": memoryview(main_object(llvm().get_process_triple()))}, [("main", LENGTHS)])
_FOLLOW = follower(_CODE.addresses["main", LENGTHS])
_NAMES = ["+", "-", "*", "//", "%", "max", "min", "broadcast", "if"]
_NATURAL, _EQUAL, _WORD, _UNKNOWN = 9, 10, 11, 12
_COUNT = 8
values = st.one_of(
    st.integers(-20, 20),
    st.sampled_from([LIMIT, -LIMIT, LIMIT - 1, 1 << 31, -(1 << 31), (1 << 31) + 1, 1 << 32]),
    st.integers(-LIMIT, LIMIT),
)
place = st.integers(0, _COUNT - 1)
instruction = st.tuples(st.integers(0, _UNKNOWN), place, place, place, place)


def carried_out(code: list[tuple[int, ...]], numbers: list[int], words: list[int]) -> int:
    """The same in Python's whole numbers."""
    for done, (operation, to, a, b, c) in enumerate(code, 1):
        left, right = numbers[a], numbers[b]
        if operation == _WORD:
            words[to] = ctypes.c_int64(left + right).value
        elif operation in (_NATURAL, _EQUAL):
            if left < 0 if operation == _NATURAL else left != right:
                return done
        elif operation < _NATURAL:
            try:
                name = _NAMES[operation]
                result = (right if left >= 0 else numbers[c]) if name == "if" else OPERATORS[name](left, right)
            except ExpressionError:
                return done
            if not -LIMIT <= result <= LIMIT:
                return done
            numbers[to] = result
        else:
            return done
    return 0


@given(st.lists(instruction, max_size=30), st.lists(values, min_size=_COUNT, max_size=_COUNT))
@example([(0, 0, 1, 1, 0)], [LIMIT] * _COUNT)
@example([(1, 0, 1, 2, 0)], [0, -LIMIT, LIMIT, *[0] * 5])
@example([(3, 0, 1, 2, 0), (4, 3, 1, 2, 0)], [0, -7, 2, *[0] * 5])
@example([(3, 0, 1, 2, 0), (4, 3, 1, 2, 0)], [0, 7, -2, *[0] * 5])
@example([(3, 0, 1, 2, 0)], [0, 7, 0, *[0] * 5])
def test_the_same_as_in_python(code: list[tuple[int, ...]], given_numbers: list[int]) -> None:
    numbers, words = np.array(given_numbers, np.int64), np.zeros(_COUNT, np.int64)
    rows = np.array(code, np.int32).reshape(len(code), 5)
    want_numbers, want_words = list(given_numbers), [0] * _COUNT
    stopped = carried_out(code, want_numbers, want_words)
    assert _FOLLOW(rows.ctypes.data, len(code), numbers.ctypes.data, words.ctypes.data) == stopped
    assert numbers.tolist() == want_numbers
    assert words.tolist() == want_words
