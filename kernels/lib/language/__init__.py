"""The kernel language: Python functions that are read into kernel IR.

A function under `@kernel` is not run: its syntax tree is read, statement by statement, and what it computes on values
that are known at run time only becomes ops of the kernel that is being built. Values of Python are known when the
kernel is read: arithmetic on them is done at once, `if` on them is decided, and a loop over a list of them is unrolled.
A loop over `range`, `while`, and `if` on a value of the run become `scf`; they carry the names that they assign.
"""

from mlirt.kernels.lib.language.context import build, builder
from mlirt.kernels.lib.language.errors import KernelLanguageError
from mlirt.kernels.lib.language.functions import kernel
from mlirt.kernels.lib.language.values import Index, Value, value_of

__all__ = ["Index", "KernelLanguageError", "Value", "build", "builder", "kernel", "value_of"]
