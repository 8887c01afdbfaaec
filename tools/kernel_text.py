"""The kernels of a module as text: the Python source that a code generator writes, and what compilers make of it."""

from __future__ import annotations

from importlib import import_module

from xdsl.dialects.builtin import ModuleOp

from mlirt.errors import InvalidInputError

EMITTERS = ("numba-cpu", "numba-cuda")
FORMS = {"numba-cpu": "cpu", "llvm": "cpu", "asm": "cpu", "numba-cuda": "cuda", "ptx": "cuda", "sass": "cuda"}
"""The texts that there are of kernels, each with the target whose kernels have it."""


def kernel_text(module: ModuleOp, form: str) -> str:
    """The text of a module's kernels; `form` is one of `FORMS`.

    Raises `InvalidInputError` for a network of which no kernels have been made yet, or kernels of another target.
    """
    names = {op.name for op in module.walk()} - {"trt.constant"}
    if "kernel.func" not in names and any(name.startswith(("trt.", "fused.")) for name in names):
        raise InvalidInputError("no kernels have been made of this network yet: add --to memory (rt-opt)")
    if FORMS[form] == "cpu" and any("block_size" in op.attributes for op in module.ops):
        raise InvalidInputError(f"{form} is the text of kernels for cpu, and these are for cuda")
    if form in EMITTERS:
        return import_module(f"mlirt.codegen.{form.replace('-', '_')}").emit(module)
    from mlirt.builder.machine_texts import machine_text

    return machine_text(module, form)
