"""The process that runs numba: reads kernels from its input, writes object files to its output, one after the other.

A request is a line of JSON, `{"name": .., "source": ..}`. The answer is a line of JSON, `{"bytes": n}` before n bytes,
or `{"error": text}`. The process ends with its input, or after some idle seconds. What numba prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import select
import sys
from typing import BinaryIO

_IDLE_SECONDS = 20.0


def main() -> None:
    """Answer requests until there are none."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # A request comes only after the answer to the one before it, so none can hide in the buffer.
    while select.select([sys.stdin], [], [], _IDLE_SECONDS)[0]:
        line = sys.stdin.buffer.readline()
        if not line:
            return
        _answer(json.loads(line), answers)


def _answer(request: dict[str, str], answers: BinaryIO) -> None:
    from mlirt.builder.numba_cpu_compiler import compile_kernel

    try:
        code = compile_kernel(request["source"], request["name"])
    except Exception as error:
        _send(answers, {"error": f"{type(error).__name__}: {error}"})
    else:
        _send(answers, {"bytes": len(code)}, code)


def _send(answers: BinaryIO, header: dict[str, object], content: bytes = b"") -> None:
    answers.write(json.dumps(header).encode() + b"\n" + content)
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
