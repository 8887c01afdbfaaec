"""numba and llvmlite, which carry no type information, under names of type `Any`."""

from importlib import import_module
from typing import Any

numpy: Any = import_module("numpy")
if not hasattr(numpy, "row_stack"):
    # NumPy 2.5 has no such name any more, and numba-cuda 0.30 asks for it when it is imported.
    numpy.row_stack = numpy.vstack
# First: importing numba.cuda sets up the redirection of numba.core to numba-cuda's own copies.
cuda: Any = import_module("numba.cuda")
ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.core.types")
intrinsic: Any = import_module("numba.cuda.extending").intrinsic
# The same, which is told of plain numbers that they are such.
intrinsic_of_literals: Any = import_module("numba.cuda.extending")._intrinsic(target="cuda", prefer_literal=True)
