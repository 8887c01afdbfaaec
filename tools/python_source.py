"""The Python source that a code generator writes for kernel IR."""

from __future__ import annotations

from importlib import import_module

from xdsl.dialects.builtin import ModuleOp

from mlirt.errors import InvalidInputError

EMITTERS = ("numba-cpu", "numba-cuda")


def python_source(module: ModuleOp, emitter: str) -> str:
    """The source of a module's kernels; `emitter` is one of `EMITTERS`.

    Raises `InvalidInputError` for a network of which no kernels have been made yet.
    """
    names = {op.name for op in module.walk()} - {"trt.constant"}
    if "kernel.func" not in names and any(name.startswith(("trt.", "fused.")) for name in names):
        raise InvalidInputError("no kernels have been made of this network yet: add --to memory (rt-opt)")
    return import_module(f"mlirt.codegen.{emitter.replace('-', '_')}").emit(module)
