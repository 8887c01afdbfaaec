"""What the machine that builds can run: its vector width and instruction set, as compile targets."""

from __future__ import annotations

import os

from mlirt.dialects.target import Target
from mlirt.errors import InvalidInputError
from mlirt.runtime.host_cpu import host_features, thread_count

_AVX2 = ("avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "popcnt", "movbe", "sse4.2")
# The features that generated code uses beyond the baseline, by vector width.
_NEEDED = {
    512: ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", *_AVX2),
    256: _AVX2,
    128: (),
}
WIDTHS = tuple(_NEEDED)


def cpu_target(vector_bits: int | None = None) -> Target:
    """This machine as a target; MLIRT_VECTOR_BITS or the argument force narrower vectors.

    Raises `InvalidInputError` for a width that is not 128, 256 or 512, or that this machine lacks.
    """
    wish = vector_bits or int(os.environ.get("MLIRT_VECTOR_BITS", "0") or 0)
    if wish and wish not in WIDTHS:
        raise InvalidInputError(
            f"vectors of {wish} bits are not supported: expected one of {', '.join(map(str, WIDTHS))}"
        )
    available = host_features()
    widest = next(bits for bits, needed in _NEEDED.items() if available.issuperset(needed))
    if wish > widest:
        raise InvalidInputError(f"vectors of {wish} bits were asked for, this machine has {widest}")
    bits = wish or widest
    return Target("cpu", bits, frozenset(_NEEDED[bits]), "", thread_count())


def cuda_target() -> Target:
    """The GPUs that cubins are made for; none needs to be here."""
    return Target("cuda", 128, frozenset(), "sm_90a", 1)
