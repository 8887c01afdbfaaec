"""Numbers that look random and follow from a seed, the number of the run and the place of an element.

There is no state: two runs differ because their numbers do, and the same run gives the same numbers on every target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

# Shifts and factors of a permutation of 32-bit words in which each bit of the input flips half of the output's.
SHIFTS = (16, 15, 16)
FACTORS = (0x7FEB352D, 0x846CA68B)
# As many bits of a word as a float32 holds exactly.
FLOAT_BITS = 24
WORD_BITS = 32
# What tells the second stream of numbers of a seed from its first.
SECOND_STREAM = 0x5BD1E995


def mixed(words: Array) -> Array:
    """The permutation, element by element; `words` are uint32."""
    import numpy as np

    words = words ^ (words >> np.uint32(SHIFTS[0]))
    for factor, shift in zip(FACTORS, SHIFTS[1:], strict=True):
        words = words * np.uint32(factor)
        words = words ^ (words >> np.uint32(shift))
    return words


def first_word(seed: int) -> int:
    """What a seed, of which 32 bits count, becomes before a run's number is added to it."""
    import numpy as np

    with np.errstate(over="ignore"):
        return int(mixed(np.asarray(seed % 2**WORD_BITS, np.uint32)))


def uniform(seed: int, run: int, count: int) -> Array:
    """`count` float32 numbers of [0, 1)."""
    import numpy as np

    with np.errstate(over="ignore"):
        start = mixed(np.asarray(first_word(seed), np.uint32) + np.uint32(run % 2**WORD_BITS))
        words = mixed(start ^ mixed(np.arange(count).astype(np.uint32)))
    return (words >> np.uint32(WORD_BITS - FLOAT_BITS)).astype(np.float32) * np.float32(2.0**-FLOAT_BITS)


def normal(seed: int, run: int, count: int) -> Array:
    """`count` float32 numbers of the normal distribution, by Box and Muller's way."""
    import numpy as np

    radius = np.sqrt(np.float32(-2) * np.log(np.float32(1) - uniform(seed, run, count)))
    return radius * np.cos(np.float32(2 * np.pi) * uniform(seed ^ SECOND_STREAM, run, count))
