"""The functions by which compiled code reports errors, which kernels of plans never do."""

import re

_ERROR_PATH = re.compile(r"^(NRT_\w+|numba_\w+|_?Py[A-Z]\w*|_Py_\w+)$")


def is_error_path(symbol: str) -> bool:
    """Whether a function is one of them."""
    return _ERROR_PATH.match(symbol) is not None
