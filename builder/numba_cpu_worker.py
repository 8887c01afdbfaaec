"""The process that runs numba: source of a kernel in, an object file out, or the text of what it is made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.compiler_process import serve


def answer(request: dict[str, Any]) -> tuple[dict[str, Any], Sequence[bytes]]:
    """The object file of a kernel; with a `form` of `llvm` or `asm` that text of it."""
    from mlirt.builder.numba_cpu_compiler import assembly, compile_kernel, llvm_ir

    source, name, form = request["source"], request["name"], request.get("form", "")
    try:
        if form:
            return {}, [{"llvm": llvm_ir, "asm": assembly}[form](source, name).encode()]
        return {}, [compile_kernel(source, name)]
    except MemoryError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return {"error": f"numba refuses the generated source: {reason[:500]}"}, []


if __name__ == "__main__":
    serve(answer)
