"""The Python source that a code generator writes for kernel IR."""

from __future__ import annotations

from importlib import import_module

from xdsl.dialects.builtin import ModuleOp

EMITTERS = ("numba-cpu", "numba-cuda")


def python_source(module: ModuleOp, emitter: str) -> str:
    """The source of a module's kernels; `emitter` is one of `EMITTERS`."""
    return import_module(f"mlirt.codegen.{emitter.replace('-', '_')}").emit(module)
