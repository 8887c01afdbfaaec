"""Which GPU rt-exec uses: the process sees that one alone, so that it is device 0 for all that follows."""

from __future__ import annotations

import os

from mlirt.errors import InvalidInputError

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def choose_device(number: int) -> None:
    """Use a GPU by its number among the visible ones; raises `InvalidInputError` where there are not so many."""
    if not number:
        return
    from mlirt.builder.host import gpu_is_here

    before = os.environ.get(_VISIBLE)
    names = [] if before is None else before.split(",")
    os.environ[_VISIBLE] = str(number) if before is None else names[number] if number < len(names) else ""
    if not gpu_is_here():
        if before is None:
            del os.environ[_VISIBLE]
        else:
            os.environ[_VISIBLE] = before
        raise InvalidInputError(f"--device={number}: there is no such GPU; their numbers start with 0")
