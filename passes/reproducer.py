"""A failure leaves a test: the IR before the failing pass, the command that fails on it, and the error."""

from __future__ import annotations

import tempfile
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.dialects.weights_file import write_weights
from mlirt.dialects.xdsl_compat import module_text


def write_reproducer(
    module: ModuleOp, ctx: Context, pass_: ModulePass, message: str, folder: Path | None
) -> Path | None:
    """Write `<pass>.mlir` (and its weights beside it); None where the disk does not let us."""
    try:
        target = Path(tempfile.mkdtemp(prefix="mlirt-reproducer-")) if folder is None else folder
        target.mkdir(parents=True, exist_ok=True)
        path = target / f"{pass_.name}.mlir"
        spec = str(pass_.pipeline_pass_spec())
        path.write_text(
            f"// RUN: rt-opt %s -p '{spec}'\n// error: {message}\n\n{module_text(module)}", encoding="utf-8"
        )
        write_weights(module, ctx, path.with_suffix(".safetensors"))
    except OSError:
        return None
    return path
