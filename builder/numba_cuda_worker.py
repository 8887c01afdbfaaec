"""The process that runs numba-cuda: source of a kernel in, cubins out, or the PTX that they are made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.compiler_process import serve


def answer(request: dict[str, Any]) -> tuple[dict[str, Any], Sequence[bytes]]:
    """One cubin for each architecture, and what the assembler says about it; with the `form` `ptx` that text."""
    from mlirt.builder.numba_cuda_compiler import assembled_texts, compile_kernel
    from mlirt.codegen.numba_cuda.kernel_text import KernelSource

    given: dict[str, Any] = request["source"]
    given["arguments"] = tuple(given["arguments"])
    source = KernelSource(**given)
    if request.get("form") == "ptx":
        return {}, [text.encode() for text in assembled_texts(source, request["architectures"]).values()]
    cubins = compile_kernel(source, request["architectures"])
    made = [(architecture, cubin.registers, cubin.spilled_bytes) for architecture, cubin in cubins.items()]
    return {"made": made}, [cubin.code for cubin in cubins.values()]


if __name__ == "__main__":
    serve(answer)
