"""llvmlite's binding to LLVM, imported and initialised on first use; it has no types, so it is `Any` from here on."""

from functools import cache
from importlib import import_module
from typing import Any


@cache
def llvm() -> Any:
    """The module `llvmlite.binding`, ready to make and load code for this machine."""
    binding = import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding
