"""The process that runs numba: source of a kernel in, an object file out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.compiler_process import serve


def answer(request: dict[str, Any]) -> tuple[dict[str, Any], Sequence[bytes]]:
    """The object file of a kernel."""
    from mlirt.builder.numba_cpu_compiler import compile_kernel

    try:
        return {}, [compile_kernel(request["source"], request["name"])]
    except MemoryError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return {"error": f"numba refuses the generated source: {reason[:500]}"}, []


if __name__ == "__main__":
    serve(answer)
