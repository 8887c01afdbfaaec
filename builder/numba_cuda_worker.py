"""The process that runs numba-cuda: source of a kernel in, its PTX and cubins out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.compiler_process import serve


def answer(request: dict[str, Any]) -> tuple[dict[str, Any], Sequence[bytes]]:
    """The PTX of a kernel for the architecture `front`, unless it is given as `text`; behind it one cubin for each of
    `codes`, and what the `assembler` says about it.
    """
    from mlirt.builder.numba_cuda_compiler import compile_kernel, ptx_text
    from mlirt.codegen.numba_cuda.kernel_text import KernelSource

    given: dict[str, Any] = request["source"]
    given["arguments"] = tuple(given["arguments"])
    source = KernelSource(**given)
    text = request["text"] or ptx_text(source, request["front"])
    cubins = compile_kernel(source, request["codes"], text, request["assembler"])
    made = [(code, cubin.registers, cubin.spilled_bytes, cubin.remark) for code, cubin in cubins.items()]
    return {"made": made}, [text.encode(), *(cubin.code for cubin in cubins.values())]


if __name__ == "__main__":
    serve(answer)
